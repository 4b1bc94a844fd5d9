/*
 * The relay does to a connection what its plan says, and nothing else: what the tests of
 * faults between hosts stand on.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "detour.h"
#include "ranks.h"
#include "relay.h"

enum { BYTES = 300000, SILENT_MS = 150 };

/* Two ends of a connection of process 0 to process 1, which are on two hosts. */
struct line {
	struct relay relay;
	int ends[2];
};

static void line_open(struct line *line, enum relay_trouble trouble)
{
	struct relay_plan plan = {
		.seed = 7, .trouble = trouble, .kinds = RELAY_DATA, .host_of = {0, 1}};
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t bytes = sizeof(at);
	int door;

	relay_start(&line->relay, &plan); /* it keeps a copy of what is open now */
	door = socket(AF_INET, SOCK_STREAM, 0);
	detour_join(&line->relay, 1);
	EQ(bind(door, (const struct sockaddr *)&at, sizeof(at)), 0);
	EQ(listen(door, 1), 0);
	EQ(getsockname(door, (struct sockaddr *)&at, &bytes), 0);
	detour_join(&line->relay, 0);
	line->ends[0] = socket(AF_INET, SOCK_STREAM, 0);
	EQ(connect(line->ends[0], (const struct sockaddr *)&at, sizeof(at)), 0);
	line->ends[1] = accept(door, NULL, NULL);
	TRUE(line->ends[1] >= 0);
	close(door);
	/* nobody is there any more, and that is no trouble of the relay's */
	door = socket(AF_INET, SOCK_STREAM, 0);
	EQ(connect(door, (const struct sockaddr *)&at, sizeof(at)), -1);
	EQ(errno, ECONNREFUSED);
	close(door);
}

static void line_close(struct line *line)
{
	detour_join(NULL, 0);
	close(line->ends[0]);
	close(line->ends[1]);
	relay_stop(&line->relay);
}

/* How many bytes arrive; -1: a reset. `wrong` counts those that have changed. */
static long carry(struct line *line, int way, size_t count, int *wrong)
{
	struct pollfd ready = {.fd = line->ends[!way], .events = POLLIN};
	size_t sent = 0, got = 0;
	unsigned char piece[4096];

	*wrong = 0;
	while (got < count) {
		for (size_t i = 0; i < sizeof(piece); i++)
			piece[i] = (unsigned char)((sent + i) * 7 / 3);
		if (sent < count) {
			size_t bytes = count - sent < sizeof(piece) ? count - sent
								    : sizeof(piece);
			ssize_t n = send(line->ends[way], piece, bytes,
				MSG_DONTWAIT | MSG_NOSIGNAL);

			sent += n > 0 ? (size_t)n : 0;
		}
		if (poll(&ready, 1, sent < count ? 0 : SILENT_MS) > 0) {
			ssize_t n = recv(line->ends[!way], piece, sizeof(piece), 0);

			if (n < 0)
				return -1;
			if (n == 0)
				break;
			for (ssize_t i = 0; i < n; i++)
				*wrong += piece[i] !=
					  (unsigned char)((got + (size_t)i) * 7 / 3);
			got += (size_t)n;
		} else if (sent == count) {
			break;
		}
	}
	return (long)got;
}

static void say_kind(struct line *line)
{
	char first[8];

	EQ(send(line->ends[0], "WEFTNET1", 8, 0), 8);
	EQ(recv(line->ends[1], first, sizeof(first), MSG_WAITALL), 8);
}

static void check(enum relay_trouble trouble, long there, long back)
{
	struct line line;
	int wrong, wrong_back;
	long got;

	line_open(&line, trouble);
	say_kind(&line);
	EQ(carry(&line, 1, 5000, &wrong), 5000);
	EQ(wrong, 0);
	relay_strike(&line.relay);
	got = carry(&line, 0, BYTES, &wrong);
	rank_context("trouble %d: %ld bytes arrive, %d wrong", trouble, got, wrong);
	HOLDS(there == BYTES ? got == BYTES : got < BYTES);
	HOLDS(there >= 0 || got == there);
	got = carry(&line, 1, BYTES, &wrong_back);
	HOLDS(back == BYTES ? got == BYTES : got < BYTES);
	HOLDS((wrong + wrong_back > 0) == (trouble == RELAY_CORRUPT));
	HOLDS(trouble == RELAY_NONE || atomic_load(&line.relay.page->troubles) > 0);
	EQ(atomic_load(&line.relay.page->connections), 1);
	line_close(&line);
}

int main(void)
{
	check(RELAY_NONE, BYTES, BYTES);
	check(RELAY_DELAY, BYTES, BYTES);
	check(RELAY_TRICKLE, BYTES, BYTES);
	check(RELAY_RESET, -1, 0);
	check(RELAY_CUT, 0, 0);
	check(RELAY_HOLE, 0, 0);
	check(RELAY_HALF, 0, BYTES); /* process 0 is the victim: it hears only */
	check(RELAY_CORRUPT, BYTES, BYTES);
	return 0;
}
