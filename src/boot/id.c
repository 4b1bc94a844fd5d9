#include "boot/id.h"

#include <endian.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/param.h"
#include "boot/root.h"
#include "net/psk.h"

static const char id_magic[9] = "WEFTID01";

/* A fingerprint of this boot of this host and of the network namespace: Unix names reach
 * no further. 0 when the system does not say. */
static uint64_t home_read(void)
{
	struct {
		char boot[64];
		uint64_t namespace;
	} facts = {0};
	unsigned char digest[AUTH_TAG_BYTES];
	struct stat info;
	uint64_t home;
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, facts.boot, sizeof(facts.boot));

	if (fd >= 0)
		close(fd);
	if (n <= 0 || stat("/proc/self/ns/net", &info))
		return 0;
	facts.namespace = info.st_ino;
	auth_digest(&facts, sizeof(facts), digest);
	memcpy(&home, digest, sizeof(home));
	return home;
}

/* Once per process. */
static void secret_is_missing(const char *text)
{
	static atomic_bool is_said;

	if (!atomic_exchange(&is_said, true))
		log_warn("NCCL_COMM_ID is %s and WEFT_SECRET is not set: whoever knows "
			 "the address can join the communicator; set WEFT_SECRET to the "
			 "same text on all ranks",
			text);
}

/* Everybody who has the same texts makes the same id. */
static enum err id_from_text(const char *text, struct id_body *body)
{
	const char *shared = param_text(PARAM_SECRET);
	unsigned char key[AUTH_KEY_BYTES];
	enum err e = addr_parse(text, &body->addr);

	if (e)
		return e;
	if (!shared)
		secret_is_missing(text);
	auth_digest(shared ? shared : "", shared ? strlen(shared) : 0, key);
	auth_tag(key, "comm id", text, strlen(text), body->secret);
	auth_wipe(key, sizeof(key));
	return OK;
}

void id_log(const struct id_body *body)
{
	static atomic_bool is_said;
	char text[ADDR_LOG_BYTES];

	if (!log_is_on(LOG_INFO, LOG_INIT | LOG_BOOTSTRAP) ||
		atomic_exchange(&is_said, true))
		return;
	addr_print_log(&body->addr, text);
	log_info(LOG_INIT | LOG_BOOTSTRAP, "Bootstrap: Using %s", text);
}

uint64_t boot_timeout_ns(void)
{
	return (uint64_t)param_int(PARAM_BOOT_TIMEOUT) * CLOCK_SEC;
}

enum err id_root_start(const struct id_body *body)
{
	struct root_args args = {.addr = body->addr, .timeout_ns = boot_timeout_ns()};
	enum err e;

	memcpy(args.secret, body->secret, sizeof(args.secret));
	args.is_sealed = psk_get(args.psk);
	e = root_start(&args);
	auth_wipe(&args, sizeof(args));
	return e;
}

enum err boot_id_create(struct boot_id *id)
{
	const char *text = param_text(PARAM_COMM_ID);
	struct id_body body = {0};
	char where[ADDR_TEXT_BYTES];
	enum err e = auth_init();

	if (e)
		return e;
	memcpy(body.magic, id_magic, sizeof(body.magic));
	if (text) {
		e = id_from_text(text, &body);
	} else {
		addr_random(&body.addr);
		auth_random(body.secret, sizeof(body.secret));
		body.home = home_read();
		e = id_root_start(&body);
		if (e == ERR_AGAIN)
			e = err_set(ERR_SYSTEM, "a random socket name is taken");
	}
	if (e)
		return e;
	memcpy(id->bytes, &body, sizeof(body));
	id_log(&body);
	addr_print(&body.addr, where);
	log_info(LOG_BOOTSTRAP, "boot: id %#llx, root at %s",
		(unsigned long long)boot_id_hash(id), where);
	auth_wipe(&body, sizeof(body));
	return OK;
}

void boot_id_drop(const struct boot_id *id)
{
	struct id_body body;

	memcpy(&body, id->bytes, sizeof(body));
	root_stop(&body.addr);
	auth_wipe(&body, sizeof(body));
}

uint64_t boot_id_hash(const struct boot_id *id)
{
	unsigned char digest[AUTH_TAG_BYTES];
	uint64_t hash;

	auth_digest(id->bytes, sizeof(id->bytes), digest);
	memcpy(&hash, digest, sizeof(hash));
	return le64toh(hash);
}

enum err id_read(const struct boot_id *id, struct id_body *body)
{
	static const unsigned char zeros[sizeof(body->zero)];
	uint64_t home;

	memcpy(body, id->bytes, sizeof(*body));
	if (memcmp(body->magic, id_magic, sizeof(body->magic)) || body->addr.zero ||
		body->addr.family < ADDR_UNIX || body->addr.family > ADDR_IPV6 ||
		memcmp(body->zero, zeros, sizeof(zeros)))
		return err_set(ERR_ARGUMENT,
			"the unique id was not made by this version of the library");
	home = body->addr.family == ADDR_UNIX ? home_read() : 0;
	if (home && body->home && home != body->home)
		return err_set(ERR_USAGE,
			"the unique id was made on another host or in another network "
			"namespace: set NCCL_COMM_ID=address:port on all ranks");
	return OK;
}
