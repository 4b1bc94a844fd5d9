#include "net/psk.h"

#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned char kept[AUTH_KEY_BYTES]; /* guarded by lock, as is the next */
static bool has_key;

/* The text itself is not kept. Hashed under a label of its own it is no key of anything
 * else, should the user use it elsewhere, too. */
enum err psk_set(const char *text)
{
	unsigned char digest[AUTH_TAG_BYTES];
	enum err e = auth_init();

	if (e)
		return e;
	if (text && strlen(text) < PSK_BYTES_LEAST)
		return err_set(ERR_ARGUMENT,
			"the pre-shared key has %zu bytes and should have at least %d",
			strlen(text), PSK_BYTES_LEAST);
	if (text)
		auth_digest(text, strlen(text), digest);
	pthread_mutex_lock(&lock);
	has_key = text != NULL;
	if (text)
		auth_tag(digest, "pre-shared key", "", 0, kept);
	else
		auth_wipe(kept, sizeof(kept));
	pthread_mutex_unlock(&lock);
	auth_wipe(digest, sizeof(digest));
	return OK;
}

bool psk_get(unsigned char key[AUTH_KEY_BYTES])
{
	bool found;

	pthread_mutex_lock(&lock);
	found = has_key;
	memcpy(key, kept, AUTH_KEY_BYTES);
	pthread_mutex_unlock(&lock);
	return found;
}
