#include "net/auth.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

enum { LABEL_BYTES = 16 };

static_assert(AUTH_KEY_BYTES == crypto_generichash_KEYBYTES, "one key is one hash key");
static_assert(AUTH_TAG_BYTES == crypto_generichash_BYTES, "one tag is one hash");

enum err auth_init(void)
{
	if (sodium_init() < 0)
		return err_set(ERR_SYSTEM, "libsodium finds no source of random bytes");
	return OK;
}

void auth_random(void *bytes, size_t count)
{
	randombytes_buf(bytes, count);
}

void auth_digest(const void *bytes, size_t count, unsigned char *out)
{
	crypto_generichash(out, AUTH_TAG_BYTES, bytes, count, NULL, 0);
}

/* The label has a fixed width, so no label and text can be read as another pair. */
void auth_tag(const unsigned char *key, const char *label, const void *bytes,
	size_t count, unsigned char *out)
{
	crypto_generichash_state state;
	unsigned char padded[LABEL_BYTES] = {0};
	size_t label_bytes = strlen(label);

	assert(label_bytes <= LABEL_BYTES);
	memcpy(padded, label, label_bytes);
	crypto_generichash_init(&state, key, AUTH_KEY_BYTES, AUTH_TAG_BYTES);
	crypto_generichash_update(&state, padded, sizeof(padded));
	crypto_generichash_update(&state, bytes, count);
	crypto_generichash_final(&state, out, AUTH_TAG_BYTES);
}

bool auth_check(const unsigned char *key, const char *label, const void *bytes,
	size_t count, const unsigned char *tag)
{
	unsigned char right[AUTH_TAG_BYTES];

	auth_tag(key, label, bytes, count, right);
	return sodium_memcmp(right, tag, sizeof(right)) == 0;
}

void auth_session(
	const unsigned char *secret, const struct auth_nonces *nonces, unsigned char *key)
{
	auth_tag(secret, "session key", nonces, sizeof(*nonces), key);
}

void auth_wipe(void *bytes, size_t count)
{
	sodium_memzero(bytes, count);
}
