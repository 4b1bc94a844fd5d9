/*
 * What goes over a strand of a session: in a large one, words that come together go
 * together, in order, each once; what cannot wait takes along what waits. A strand's
 * other end is held by the test.
 */
#include "boot/carry.h"

#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "boot/hub.h"
#include "boot/session.h"
#include "test.h"

enum { LARGE = 4096, SMALL = 8, WORDS = 200, PATIENCE_MS = 20000 };

static void on_message(
	void *arg, uint32_t from, uint32_t kind, const void *bytes, size_t size)
{
	(void)bytes;
	EQ(size, sizeof(uint32_t));
	EQ(from, 3);
	EQ(kind, 7);
	atomic_fetch_add((atomic_uint *)arg, 1);
}

static void on_lost(void *arg, uint32_t rank, const char *why)
{
	(void)arg;
	(void)rank;
	(void)why;
}

/* A session of which we are the last. When nobody calls it for a while it calls the
 * others: they take calls, and say nothing. */
struct place {
	int mute;
	struct control_peer *peers;
	struct control *control;
	struct strand *ours, *theirs;
	atomic_uint heard;
};

static struct strand *end_make(int fd, bool is_caller)
{
	struct strand *strand = strand_accept(fd, clock_ns());

	TRUE(strand);
	strand->is_caller = is_caller;
	strand->phase = STRAND_OPEN;
	return strand;
}

/* A rank's address: they are told apart by the last bytes, and one socket hears all. */
static struct addr mute_address(int fd, uint32_t rank)
{
	struct addr addr = {.family = ADDR_IPV4, .bytes = {127, 1}};
	struct sockaddr_in bound;
	socklen_t size = sizeof(bound);

	EQ(getsockname(fd, (struct sockaddr *)&bound, &size), 0);
	addr.port = ntohs(bound.sin_port);
	addr.bytes[2] = (unsigned char)(rank >> 8);
	addr.bytes[3] = (unsigned char)rank;
	return addr;
}

static int mute_listen(void)
{
	struct sockaddr_in any = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	TRUE(fd >= 0);
	EQ(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
	EQ(listen(fd, 256), 0);
	return fd;
}

static void place_make(struct place *place, uint32_t ranks)
{
	struct control_args args = {.rank = ranks - 1,
		.rank_count = ranks,
		.arg = &place->heard,
		.on_message = on_message,
		.on_lost = on_lost};
	int fds[2];

	*place = (struct place){
		.mute = mute_listen(), .peers = calloc(ranks, sizeof(*place->peers))};
	TRUE(place->peers);
	for (uint32_t i = 0; i < ranks - 1; i++)
		place->peers[i].addr = mute_address(place->mute, i);
	EQ(control_listen(&place->peers[ranks - 1].addr), OK);
	args.peers = place->peers;
	EQ(control_open(&args, &place->control), OK);
	EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
	place->ours = end_make(fds[0], false);
	place->theirs = end_make(fds[1], true);
	place->ours->claim = (struct strand_claim){3, ranks - 1, 1, 0, {0}};
	hub_lock();
	TRUE(session_adopt(place->control->session, place->ours, clock_ns()));
	hub_watch(place->ours);
	hub_unlock();
}

static void place_end(struct place *place)
{
	strand_destroy(place->theirs);
	control_close(place->control);
	control_unlisten();
	close(place->mute);
	free(place->peers);
}

static void word_say(struct place *place, uint32_t to, uint32_t word)
{
	EQ(control_send(place->control, to, 0, &word, sizeof(word)), OK);
}

struct seen {
	uint32_t frames, words, direct;
};

static void word_see(struct seen *seen, const struct strand_head *head, const void *bytes)
{
	uint32_t word;

	EQ(head->bytes, sizeof(word));
	memcpy(&word, bytes, sizeof(word));
	EQ(word, seen->words);
	seen->words++;
	seen->direct += head->type == BULLETIN_DIRECT;
}

static void frame_see(struct seen *seen, const struct strand *strand)
{
	const unsigned char *at = strand_bytes(strand);
	struct strand_head frame, head;
	uint32_t used = 0;

	strand_head(strand, &frame);
	if (frame.type == BULLETIN_BEAT)
		return;
	seen->frames++;
	if (frame.type != BULLETIN_MANY) {
		word_see(seen, &frame, at);
		return;
	}
	while (used < frame.bytes) {
		strand_head_get(at + used, &head);
		used += (uint32_t)sizeof(head);
		word_see(seen, &head, at + used);
		used += head.bytes;
	}
	EQ(used, frame.bytes);
}

static void words_await(struct place *place, struct seen *seen, uint32_t count)
{
	struct pollfd ready = {.fd = place->theirs->fd, .events = POLLIN};

	while (seen->words < count) {
		EQ(poll(&ready, 1, PATIENCE_MS), 1);
		while (strand_read(place->theirs, clock_ns()) == STRAND_FRAME)
			frame_see(seen, place->theirs);
		TRUE(place->theirs->phase == STRAND_OPEN);
	}
	EQ(seen->words, count);
}

/* In a session of so many a strand waits 131 ms for more: enough for a slow machine to
 * say most of it. */
static void a_crowd_speaks_together(void)
{
	struct place place;
	struct seen seen = {0};

	place_make(&place, LARGE);
	for (uint32_t word = 0; word < WORDS; word++)
		word_say(&place, CONTROL_ALL, word);
	words_await(&place, &seen, WORDS);
	TRUE(seen.frames < WORDS / 2);
	TRUE(seen.frames > 1); /* the first did not wait for the second */
	place_end(&place);
}

/* What is for one rank goes at once, behind what was said before it. */
static void what_is_urgent_takes_the_rest_along(void)
{
	struct place place;
	struct seen seen = {0};

	place_make(&place, LARGE);
	for (uint32_t word = 0; word < 20; word++)
		word_say(&place, word == 19 ? 3 : CONTROL_ALL, word);
	hub_lock();
	EQ(place.ours->held.cursor, place.control->session->log.end); /* nothing waits */
	hub_unlock();
	words_await(&place, &seen, 20);
	EQ(seen.direct, 1);
	place_end(&place);
}

/* Few have no need of it. */
static void in_a_small_session_nothing_waits(void)
{
	struct place place;
	struct seen seen = {0};

	place_make(&place, SMALL);
	for (uint32_t word = 0; word < WORDS; word++) {
		word_say(&place, CONTROL_ALL, word);
		words_await(&place, &seen, word + 1);
	}
	EQ(seen.frames, WORDS);
	place_end(&place);
}

static size_t word_put(unsigned char *at, uint32_t type, uint32_t number, uint32_t bytes)
{
	struct strand_head head = {.type = type,
		.origin = 3,
		.to = CONTROL_ALL,
		.number = number,
		.kind = 7,
		.bytes = bytes};

	strand_head_put(&head, at);
	memset(at + sizeof(head), 0, sizeof(uint32_t));
	return sizeof(head) + sizeof(uint32_t);
}

/* Two words, one that does not add up, and one that nobody looks at any more. */
static void a_frame_that_lies_is_left(uint32_t type, uint32_t bytes)
{
	unsigned char many[512];
	struct strand_head frame = {.type = BULLETIN_MANY};
	struct place place;

	place_make(&place, SMALL);
	frame.bytes = (uint32_t)word_put(many, BULLETIN_FLOOD, 1, 4);
	frame.bytes += (uint32_t)word_put(many + frame.bytes, BULLETIN_FLOOD, 2, 4);
	frame.bytes += (uint32_t)word_put(many + frame.bytes, type, 3, bytes);
	frame.bytes += (uint32_t)word_put(many + frame.bytes, BULLETIN_FLOOD, 3, 4);
	TRUE(strand_write(place.theirs, &frame, many, clock_ns()));
	frame = (struct strand_head){.type = BULLETIN_MANY, .bytes = 5};
	TRUE(strand_write(place.theirs, &frame, many, clock_ns()));
	/* what comes after it is heard */
	frame.bytes = (uint32_t)word_put(many, BULLETIN_FLOOD, 3, 4);
	TRUE(strand_write(place.theirs, &frame, many, clock_ns()));
	for (int i = 0; i < PATIENCE_MS && atomic_load(&place.heard) < 3; i++)
		usleep(1000);
	EQ(atomic_load(&place.heard), 3);
	place_end(&place);
}

int main(void)
{
	setenv("NCCL_CONF_FILE", "/nonexistent", 1);
	setenv("NCCL_OOB_NET_IFNAME", "=lo", 1);
	setenv("WEFT_SILENCE_SEC", "600", 1); /* nobody is given up */
	a_crowd_speaks_together();
	what_is_urgent_takes_the_rest_along();
	in_a_small_session_nothing_waits();
	a_frame_that_lies_is_left(BULLETIN_FLOOD, 4000000);
	a_frame_that_lies_is_left(BULLETIN_MANY, 4);
	a_frame_that_lies_is_left(BULLETIN_LEAVE, 4);
	return 0;
}
