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
#include "net/iface.h"
#include "net/psk.h"

static const char id_magic[9] = "WEFTID02";

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

/* The interface by which others reach this process. False: only loopback, or none. */
static bool iface_find(struct iface *iface)
{
	struct iface ifaces[IFACES_MAX];
	uint32_t count = 0;

	if (iface_list(IFACE_CONTROL, ifaces, &count))
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (!ifaces[i].is_loopback) {
			*iface = ifaces[i];
			return true;
		}
	return false;
}

/* Does the user speak of loopback, or is it only that this host knows itself by it? */
static bool is_meant_local(const char *text)
{
	return !strncmp(text, "127.", 4) || !strncmp(text, "[::1]", 5) ||
	       !strncmp(text, "localhost", 9);
}

/* Everybody who has the same texts makes the same secret. */
static enum err id_from_text(const char *text, struct id_body *body)
{
	const char *shared = param_text(PARAM_SECRET);
	unsigned char key[AUTH_KEY_BYTES];
	struct iface iface;
	enum err e = addr_parse(text, &body->addr);

	if (e)
		return e;
	/* the name of this host, at which others find it elsewhere */
	if (addr_is_loopback(&body->addr) && !is_meant_local(text) &&
		iface_find(&iface)) {
		iface.addr.port = body->addr.port;
		body->addr = iface.addr;
	}
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
	struct iface iface;

	if (!log_is_on(LOG_INFO, LOG_INIT | LOG_BOOTSTRAP) ||
		atomic_exchange(&is_said, true))
		return;
	if (iface_find(&iface))
		iface_print(&iface, text);
	else
		addr_print_log(&body->addr, text);
	log_info(LOG_INIT | LOG_BOOTSTRAP, "Bootstrap: Using %s", text);
}

uint64_t boot_timeout_ns(void)
{
	return (uint64_t)param_int(PARAM_BOOT_TIMEOUT) * CLOCK_SEC;
}

enum err id_root_start(struct id_body *body)
{
	struct root_args args = {
		.addr = body->addr, .away = body->away, .timeout_ns = boot_timeout_ns()};
	enum err e;

	memcpy(args.secret, body->secret, sizeof(args.secret));
	args.is_sealed = psk_get(args.psk);
	e = root_start(&args);
	body->away = args.away;
	auth_wipe(&args, sizeof(args));
	return e;
}

/* A list that names the loopback is meant so; one that names nothing is wrong, which is
 * said once. */
static void away_none(void)
{
	static atomic_flag is_told = ATOMIC_FLAG_INIT;
	struct iface ifaces[IFACES_MAX];
	char why[IFACE_NONE_BYTES];
	uint32_t count;

	iface_none(IFACE_CONTROL, why);
	if (iface_list(IFACE_CONTROL, ifaces, &count) || count)
		log_info(LOG_BOOTSTRAP, "boot: ranks of other hosts cannot come here: %s",
			why);
	else if (!atomic_flag_test_and_set(&is_told))
		log_warn("ranks of other hosts cannot come here: %s; correct or unset it",
			why);
}

/* Where ranks of other hosts are to come. That there is no interface for it is no matter
 * as long as none of them does; a wrong list of names is worth a line. */
static void away_choose(struct id_body *body)
{
	struct iface iface;

	if (iface_find(&iface))
		body->away = iface.addr;
	else if (param_text(PARAM_OOB_NET_IFNAME) || param_text(PARAM_SOCKET_IFNAME))
		away_none();
}

/* Random, and its root runs in this process. */
static enum err id_from_chance(struct id_body *body)
{
	enum err e;

	addr_random(&body->addr);
	auth_random(body->secret, sizeof(body->secret));
	body->home = home_read();
	away_choose(body);
	e = id_root_start(body);
	return e == ERR_AGAIN ? err_set(ERR_SYSTEM, "a random socket name is taken") : e;
}

static enum err id_create(const char *text, struct boot_id *id)
{
	struct id_body body = {0};
	char where[ADDR_TEXT_BYTES], away[ADDR_TEXT_BYTES] = "";
	enum err e = auth_init();

	if (e)
		return e;
	memcpy(body.magic, id_magic, sizeof(body.magic));
	e = text ? id_from_text(text, &body) : id_from_chance(&body);
	if (e)
		return e;
	memcpy(id->bytes, &body, sizeof(body));
	id_log(&body);
	addr_print(&body.addr, where);
	if (body.away.family)
		addr_print(&body.away, away);
	log_info(LOG_BOOTSTRAP, "boot: id %#llx, root at %s%s%s",
		(unsigned long long)boot_id_hash(id), where,
		body.away.family ? ", for other hosts at " : "", away);
	auth_wipe(&body, sizeof(body));
	return OK;
}

enum err boot_id_create(struct boot_id *id)
{
	return id_create(param_text(PARAM_COMM_ID), id);
}

enum err boot_id_create_here(struct boot_id *id)
{
	return id_create(NULL, id);
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

	struct id_body body;

	/* the address of a name may differ from host to host */
	memcpy(&body, id->bytes, sizeof(body));
	auth_digest(body.secret, sizeof(body.secret), digest);
	auth_wipe(&body, sizeof(body));
	memcpy(&hash, digest, sizeof(hash));
	return le64toh(hash);
}

bool id_porch(const struct id_body *body, struct addr *addr)
{
	uint64_t home = home_read();
	unsigned char tag[AUTH_TAG_BYTES];

	auth_tag(body->secret, "porch", &home, sizeof(home), tag);
	*addr = (struct addr){.family = ADDR_UNIX};
	memcpy(addr->bytes, tag, sizeof(addr->bytes));
	return home != 0;
}

static bool addr_is_odd(const struct addr *addr)
{
	return addr->zero || addr->family < ADDR_UNIX || addr->family > ADDR_IPV6;
}

enum err id_read(const struct boot_id *id, struct id_body *body, struct addr *to)
{
	static const unsigned char zeros[sizeof(body->zero)];
	bool has_away, is_home;
	uint64_t home;

	memcpy(body, id->bytes, sizeof(*body));
	has_away = memcmp(&body->away, zeros, sizeof(body->away)) != 0;
	if (memcmp(body->magic, id_magic, sizeof(body->magic)) ||
		addr_is_odd(&body->addr) || (has_away && addr_is_odd(&body->away)) ||
		memcmp(body->zero, zeros, sizeof(zeros)))
		return err_set(ERR_ARGUMENT,
			"the unique id was not made by this version of the library");
	*to = body->addr;
	if (body->addr.family != ADDR_UNIX)
		return OK;
	home = home_read();
	/* who does not know tries the Unix name only if there is nothing better */
	is_home = home && body->home ? home == body->home : !has_away;
	if (is_home)
		return OK;
	*to = body->away;
	if (!has_away)
		return err_set(ERR_USAGE,
			"the unique id was made on another host, or in another network "
			"namespace, where no network interface but loopback is used: see "
			"NCCL_SOCKET_IFNAME and NCCL_OOB_NET_IFNAME there, or set "
			"NCCL_COMM_ID=address:port on all ranks");
	return OK;
}
