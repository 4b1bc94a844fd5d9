/*
 * What comes over a boot connection, to a root, a porch or a rank, and over a strand of
 * the control channel, before and after the other end has proved itself. The first byte
 * says which end is spoken to; an odd one has the tags made right, so that what is behind
 * them is reached, too.
 */
#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "boot/guest.h"
#include "boot/id.h"
#include "boot/porch.h"
#include "boot/strand.h"
#include "boot/visit.h"
#include "net/addr.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const unsigned char secret[AUTH_KEY_BYTES] = "known";

struct input {
	const uint8_t *bytes;
	size_t left;
};

/* The next `count` bytes; zeros when there are no more. */
static void take(struct input *input, void *to, size_t count)
{
	size_t some = count < input->left ? count : input->left;

	memset(to, 0, count);
	if (some)
		memcpy(to, input->bytes, some);
	input->bytes += some;
	input->left -= some;
}

static void pair(int fds[2])
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds))
		abort();
}

static void put(int fd, const void *bytes, size_t count)
{
	if (count && send(fd, bytes, count, MSG_NOSIGNAL) < 0)
		return; /* it has hung up */
}

static void get(int fd, void *to, size_t count)
{
	memset(to, 0, count);
	if (recv(fd, to, count, 0) < 0)
		return;
}

/* ---- a root's guest ---- */

struct caller {
	int fd;
	struct guest *guest;
	struct auth_nonces nonces;
	unsigned char key[AUTH_KEY_BYTES];
};

static void guest_greet(struct caller *caller)
{
	struct wire_hello hello = {0};
	struct wire_challenge challenge;

	memcpy(hello.magic, wire_magic, sizeof(hello.magic));
	put(caller->fd, &hello, sizeof(hello));
	guest_move(caller->guest, secret);
	get(caller->fd, &challenge, sizeof(challenge));
	memcpy(caller->nonces.root, challenge.nonce, sizeof(challenge.nonce));
	auth_session(secret, &caller->nonces, caller->key);
}

static void guest_claim(struct caller *caller, struct input *input)
{
	unsigned char record[BOOT_RECORD_MAX + AUTH_TAG_BYTES];
	struct wire_claim claim;
	uint32_t bytes;

	take(input, &claim, sizeof(claim));
	claim.kind = htole32(le32toh(claim.kind) % (WIRE_PORCH + 2)); /* what there is */
	bytes = le32toh(claim.record_bytes) % (BOOT_RECORD_MAX + 2);
	claim.record_bytes = htole32(bytes);
	auth_tag(caller->key, "claim", &claim, offsetof(struct wire_claim, tag),
		claim.tag);
	put(caller->fd, &claim, sizeof(claim));
	bytes = bytes < BOOT_RECORD_MAX ? bytes : BOOT_RECORD_MAX;
	take(input, record, bytes);
	auth_tag(caller->key, "record", record, bytes, record + bytes);
	put(caller->fd, record, bytes + AUTH_TAG_BYTES);
	guest_move(caller->guest, secret);
}

static void guest_say(struct caller *caller, struct input *input)
{
	static unsigned char place[BOOT_GATHER_MAX];
	unsigned char record[BOOT_GATHER_MAX + AUTH_TAG_BYTES];
	struct wire_say say;
	uint32_t bytes;

	take(input, &say, sizeof(say));
	say.what = htole32(le32toh(say.what) % (WIRE_IS_LOST + 2));
	bytes = le32toh(say.record_bytes) % (BOOT_GATHER_MAX + 2);
	say.record_bytes = htole32(bytes);
	auth_tag(caller->key, "say", &say, offsetof(struct wire_say, tag), say.tag);
	put(caller->fd, &say, sizeof(say));
	bytes = bytes < BOOT_GATHER_MAX ? bytes : BOOT_GATHER_MAX;
	take(input, record, bytes);
	auth_tag(caller->key, "gather", record, bytes, record + bytes);
	put(caller->fd, record, bytes + AUTH_TAG_BYTES);
	guest_move(caller->guest, secret);
	if (caller->guest->phase == GUEST_HERE && guest_is_bringing(caller->guest))
		caller->guest->bring_to = place;
	guest_move(caller->guest, secret);
}

static void guest_fuzz(struct input *input, bool is_tagged)
{
	struct guest_news news = {.payload = (const void *)"all", .bytes = 3};
	struct caller caller = {0};
	int fds[2];

	pair(fds);
	caller.fd = fds[1];
	caller.guest = guest_create(fds[0], NULL, 0);
	if (!caller.guest)
		abort();
	if (is_tagged) {
		guest_greet(&caller);
		guest_claim(&caller, input);
		while (input->left && caller.guest->phase == GUEST_HERE) {
			guest_say(&caller, input);
			if (caller.guest->phase == GUEST_HERE &&
				caller.guest->round.has_said)
				guest_tell(caller.guest, &news);
		}
	} else {
		put(caller.fd, input->bytes, input->left);
		for (int i = 0; i < 4; i++)
			guest_move(caller.guest, secret);
	}
	guest_destroy(caller.guest);
	close(fds[1]);
}

/* ---- what a root says, to a rank and to a porch ---- */

/* A verdict with right tags, and perhaps with the right payload. */
static void verdict_put(int fd, const unsigned char *key, struct input *input)
{
	unsigned char payload[300];
	struct wire_verdict verdict;
	uint32_t bytes;

	take(input, &verdict, sizeof(verdict));
	verdict.round = htole32(le32toh(verdict.round) % 3);
	verdict.code = htole32(le32toh(verdict.code) % (ERR_TIMEOUT + 3));
	bytes = le32toh(verdict.bytes) % (sizeof(payload) + 1);
	take(input, payload, bytes);
	if (verdict.zero % 4) {
		verdict.bytes = htole32(bytes);
		auth_digest(payload, bytes, verdict.digest);
	} else {
		verdict.bytes = htole32(le32toh(verdict.bytes) % (1 << 20));
	}
	auth_tag(key, "verdict", &verdict, offsetof(struct wire_verdict, tag),
		verdict.tag);
	put(fd, &verdict, sizeof(verdict));
	put(fd, payload, bytes);
}

static void porch_fuzz(struct input *input, bool is_tagged)
{
	struct porch porch = {0};
	const unsigned char *payload;
	enum err code;
	size_t bytes;
	int fds[2];

	pair(fds);
	porch.fd = fds[0];
	do {
		if (is_tagged)
			verdict_put(fds[1], porch.key, input);
		else
			put(fds[1], input->bytes, input->left);
		while (porch_hear(&porch, &code, &payload, &bytes))
			if (bytes && !memchr(payload, 0, bytes))
				porch.out_done = 0; /* all of it can be read */
	} while (is_tagged && input->left && !porch.is_gone);
	porch_fini(&porch);
	close(fds[1]);
}

static void visit_fuzz(struct input *input, bool is_tagged)
{
	struct visit visit = {.args = {.rank_count = 4}, .payload_bytes = 100};
	unsigned char records[100];
	int fds[2];

	pair(fds);
	visit.fd = fds[0];
	do {
		if (is_tagged)
			verdict_put(fds[1], visit.key, input);
		else
			put(fds[1], input->bytes, input->left);
		visit.deadline_ns = 1; /* nobody else will come */
	} while (!visit_hear(&visit, records) && input->left && is_tagged);
	visit_close(&visit);
	close(fds[1]);
}

/* ---- a strand of the control channel ---- */

static void strand_drain(struct strand *strand)
{
	struct strand_head head;

	for (;;) {
		enum strand_news news;

		if (strand->phase == STRAND_ASKED)
			strand_answer(strand, secret);
		news = strand_read(strand, 1);
		if (news == STRAND_NOTHING)
			return;
		if (news != STRAND_FRAME)
			continue;
		strand_head(strand, &head);
		if (head.bytes && !memchr(strand_bytes(strand), 0, head.bytes))
			strand->told_ns++; /* all of it can be read */
	}
}

/* Frames with right tags, as the caller would send them. */
static void frames_put(int fd, struct input *input)
{
	struct strand *other = strand_accept(dup(fd), 0);
	unsigned char bytes[512];

	if (!other)
		abort();
	other->is_caller = true;
	other->phase = STRAND_OPEN;
	while (input->left && other->phase == STRAND_OPEN && strand_is_idle(other)) {
		struct strand_head head;

		take(input, &head, sizeof(head));
		head.bytes %= sizeof(bytes);
		take(input, bytes, head.bytes);
		strand_write(other, &head, bytes, 1);
	}
	close(other->fd);
	other->fd = -1;
	strand_destroy(other);
}

static void strand_fuzz(struct input *input, bool is_tagged)
{
	struct strand *strand;
	int fds[2];

	pair(fds);
	strand = strand_accept(fds[0], 0);
	if (!strand)
		abort();
	if (is_tagged) {
		strand->phase = STRAND_OPEN; /* the keys are all zeros */
		frames_put(fds[1], input);
	} else {
		put(fds[1], input->bytes, input->left);
	}
	strand_drain(strand);
	strand_destroy(strand);
	close(fds[1]);
}

/* ---- an id, and an address in text ---- */

static void id_fuzz(struct input *input, bool is_text)
{
	struct boot_id id;
	struct id_body body;
	struct addr to;
	char text[128];

	if (is_text) {
		take(input, text, sizeof(text) - 1);
		text[sizeof(text) - 1] = '\0';
		if (text[0] && strspn(text, "0123456789.:[]abcdef") == strlen(text) &&
			!addr_parse(text, &to))
			addr_print(&to, text);
		return;
	}
	take(input, &id, sizeof(id));
	memcpy(id.bytes, "WEFTID02", 8);
	if (!id_read(&id, &body, &to))
		addr_print(&to, text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	uint8_t way;

	setenv("NCCL_CONF_FILE", "/nonexistent", 1);
	if (auth_init())
		abort();
	take(&input, &way, 1);
	switch (way / 2 % 5) {
	case 0:
		guest_fuzz(&input, way % 2);
		break;
	case 1:
		strand_fuzz(&input, way % 2);
		break;
	case 2:
		porch_fuzz(&input, way % 2);
		break;
	case 3:
		visit_fuzz(&input, way % 2);
		break;
	default:
		id_fuzz(&input, way % 2);
	}
	return 0;
}
