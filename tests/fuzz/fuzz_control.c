/*
 * What a process that knows the key may say on the control channel: the bytes are the
 * heads and contents of frames, which go to a session by a strand of its own with right
 * tags.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "boot/hub.h"
#include "boot/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RANKS = 8 };

static struct control_peer peers[RANKS];
static volatile unsigned sum;

static void on_message(
	void *arg, uint32_t from, uint32_t kind, const void *bytes, size_t size)
{
	(void)arg;
	if (from >= RANKS)
		abort();
	sum += kind;
	for (size_t i = 0; i < size; i++)
		sum += ((const unsigned char *)bytes)[i];
}

static void on_lost(void *arg, uint32_t rank, const char *why)
{
	(void)arg;
	if (rank >= RANKS)
		abort();
	sum += (unsigned)strlen(why);
}

/* All on one host and this one the last: it calls nobody by itself. */
static void listen_once(void)
{
	static int is_done;
	struct addr addr;

	if (is_done)
		return;
	setenv("NCCL_CONF_FILE", "/nonexistent", 1);
	setenv("NCCL_OOB_NET_IFNAME", "=lo", 1);
	if (control_listen(&addr))
		abort();
	for (uint32_t i = 0; i < RANKS; i++) {
		peers[i].addr = addr;
		peers[i].addr.port = (uint16_t)(i < RANKS - 1 ? i + 1 : addr.port);
	}
	is_done = 1;
}

static void frames_send(struct strand *strand, const uint8_t *data, size_t size)
{
	while (size >= sizeof(struct strand_head) && strand_is_idle(strand)) {
		struct strand_head head;

		memcpy(&head, data, sizeof(head));
		data += sizeof(head);
		size -= sizeof(head);
		head.type %= 7; /* near what there is */
		head.origin %= RANKS + 2;
		head.number %= 16;
		head.after %= 16;
		head.bytes = head.bytes % 300 < size ? head.bytes % 300 : (uint32_t)size;
		strand_write(strand, &head, data, 1);
		data += head.bytes;
		size -= head.bytes;
	}
}

static struct strand *end_make(int fd, bool is_caller)
{
	struct strand *strand = strand_accept(fd, 0);

	if (!strand)
		abort();
	strand->is_caller = is_caller;
	strand->phase = STRAND_OPEN;
	return strand;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct control_args args = {.rank = RANKS - 1,
		.rank_count = RANKS,
		.peers = peers,
		.on_message = on_message,
		.on_lost = on_lost};
	struct strand *ours, *theirs;
	struct control *control;
	int fds[2];

	listen_once();
	if (control_open(&args, &control) ||
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds))
		abort();
	ours = end_make(fds[0], false);
	theirs = end_make(fds[1], true);
	ours->claim.from = 3;
	ours->claim.to = RANKS - 1;
	ours->claim.is_edge = size % 2;
	hub_lock();
	if (!session_adopt(control->session, ours))
		abort();
	frames_send(theirs, data, size);
	session_serve(ours, 1);
	hub_unlock();
	strand_destroy(theirs);
	control_close(control);
	return 0;
}
