/*
 * A sealed connection: what is said arrives as it was said or not at all, whatever is
 * done to the bytes on the way, and nobody without the key gets a word in.
 */
#include "net/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/psk.h"
#include "test.h"

enum { WORDS_MAX = 1 << 16, WIRE_MAX = 1 << 18 };

static unsigned char one_key[AUTH_KEY_BYTES], other_key[AUTH_KEY_BYTES];

/* One direction through the middle: what came, and how much of it has gone on. */
struct lane {
	int from, to;
	unsigned char bytes[WIRE_MAX];
	size_t count, sent;
};

/* client - middle - server, all of it in this thread. */
struct line {
	int ends[2], middle[2]; /* of the client, of the server */
	struct seal *client, *server;
	struct lane up, down; /* to the server, to the client */
};

static struct line line;

static void pair_make(int *end, int *middle)
{
	int pair[2];

	EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	*end = pair[0];
	*middle = pair[1];
}

static void line_open(const unsigned char *client_key, const unsigned char *server_key)
{
	for (int i = 0; i < 2; i++)
		pair_make(&line.ends[i], &line.middle[i]);
	line.client = client_key ? seal_create(line.ends[0], SEAL_CLIENT, client_key)
				 : NULL;
	line.server = server_key ? seal_create(line.ends[1], SEAL_SERVER, server_key)
				 : NULL;
	line.up = (struct lane){.from = line.middle[0], .to = line.middle[1]};
	line.down = (struct lane){.from = line.middle[1], .to = line.middle[0]};
}

static void line_close(void)
{
	seal_destroy(line.client);
	seal_destroy(line.server);
	for (int i = 0; i < 2; i++) {
		close(line.ends[i]);
		close(line.middle[i]);
	}
}

/* What to do to the bytes; `at` is the first that is new. */
typedef void tamper(struct lane *lane, size_t at);

static void lane_move(struct lane *lane, tamper *hand)
{
	size_t at = lane->count;
	ssize_t n;

	while ((n = recv(lane->from, lane->bytes + lane->count, WIRE_MAX - lane->count,
			0)) > 0)
		lane->count += (size_t)n;
	if (hand && lane->count > at)
		hand(lane, at);
	while (lane->sent < lane->count) {
		n = send(lane->to, lane->bytes + lane->sent, lane->count - lane->sent,
			MSG_NOSIGNAL);
		if (n < 0)
			return;
		lane->sent += (size_t)n;
	}
}

static tamper *up_hand, *down_hand;

static void line_move(void)
{
	lane_move(&line.up, up_hand);
	lane_move(&line.down, down_hand);
}

/* How a conversation went: what each end has heard, and how it ended. */
struct heard {
	unsigned char bytes[WORDS_MAX];
	size_t count;
	int error; /* errno of the end; 0: none yet, or an orderly end */
	bool is_ended;
};

static struct heard at_server, at_client;

static void hear(struct seal *seal, struct heard *heard)
{
	ssize_t n;

	if (!seal || heard->error || heard->is_ended)
		return;
	do {
		n = seal_recv(
			seal, heard->bytes + heard->count, WORDS_MAX - heard->count);
		heard->count += n > 0 ? (size_t)n : 0;
	} while (n > 0);
	heard->is_ended = n == 0;
	heard->error = n < 0 && errno != EAGAIN ? errno : 0;
}

/* Say all of it; the other end hears in between. */
static void say(const unsigned char *words, size_t count, bool is_end)
{
	size_t said = 0;

	for (int turn = 0; turn < 200; turn++) {
		ssize_t n = said < count
				    ? seal_send(line.client, words + said, count - said)
				    : 0;

		said += n > 0 ? (size_t)n : 0;
		seal_flush(line.client);
		line_move();
		hear(line.server, &at_server);
		hear(line.client, &at_client);
		line_move();
		if (said == count && is_end && !seal_has_output(line.client)) {
			EQ(seal_end(line.client), 0);
			is_end = false;
		}
	}
}

static void begin(const unsigned char *client_key, const unsigned char *server_key)
{
	memset(&at_server, 0, sizeof(at_server));
	memset(&at_client, 0, sizeof(at_client));
	line_open(client_key, server_key);
}

static unsigned char words[WORDS_MAX];

static void test_there_and_back(void)
{
	const size_t counts[] = {1, 4096, 4097, 50000};

	for (int i = 0; i < 4; i++) {
		begin(one_key, one_key);
		EQ(seal_events(line.client, POLLOUT), POLLIN | POLLOUT); /* its hello */
		say(words, counts[i], true);
		EQ(at_server.count, counts[i]);
		TRUE(!memcmp(at_server.bytes, words, counts[i]));
		TRUE(at_server.is_ended);
		EQ(seal_send(line.server, "answer", 6), 6);
		line_move();
		hear(line.client, &at_client);
		EQ(at_client.count, 6);
		TRUE(!memcmp(at_client.bytes, "answer", 6));
		EQ(seal_events(line.client, POLLIN), POLLIN);
		line_close();
	}
}

/* The same words look different each time, and nowhere like themselves. */
static void test_hidden(void)
{
	static unsigned char before[WIRE_MAX];
	size_t count;

	begin(one_key, one_key);
	say(words, 3000, false);
	count = line.up.count;
	memcpy(before, line.up.bytes, count);
	TRUE(!memmem(before, count, words, 8));
	line_close();
	begin(one_key, one_key);
	say(words, 3000, false);
	EQ(line.up.count, count);
	for (size_t at = 8; at + 16 <= count; at++) /* after the magic */
		TRUE(memcmp(before + at, line.up.bytes + at, 16));
	line_close();
}

/* ---- hostile middles ---- */

static size_t target;	  /* which byte of the lane */
static unsigned char bit; /* what is changed of it */

static void flip(struct lane *lane, size_t at)
{
	if (target >= at && target < lane->count)
		lane->bytes[target] ^= bit;
}

/* Whatever was heard is the beginning of what was said. */
static void check_prefix(size_t count)
{
	TRUE(at_server.count <= count);
	TRUE(!memcmp(at_server.bytes, words, at_server.count));
	TRUE(!at_server.is_ended);
}

static void test_flipped(void)
{
	enum { COUNT = 40 };
	size_t up, down;

	begin(one_key, one_key);
	say(words, COUNT, false);
	up = line.up.count;
	down = line.down.count;
	line_close();
	for (target = 0; target < up; target++) {
		bit = (unsigned char)(1 << target % 8);
		up_hand = flip;
		begin(one_key, one_key);
		say(words, COUNT, true);
		up_hand = NULL;
		check_prefix(COUNT);
		TRUE(at_server.count < COUNT || at_server.error == EPROTO);
		line_close();
	}
	for (target = 0; target < down; target++) {
		down_hand = flip;
		begin(one_key, one_key);
		say(words, COUNT, false);
		down_hand = NULL;
		EQ(at_server.count, 0); /* the client has not said a word to it */
		EQ(at_client.error, EPROTO);
		TRUE(seal_fault(line.client));
		line_close();
	}
}

static void cut(struct lane *lane, size_t at)
{
	(void)at;
	if (lane->count > target)
		lane->count = target;
}

/* An end that was not said is none, wherever it comes. */
static void test_cut(void)
{
	enum { COUNT = 40 };
	size_t up;

	begin(one_key, one_key);
	say(words, COUNT, true);
	up = line.up.count;
	line_close();
	for (target = 0; target < up; target++) {
		up_hand = cut;
		begin(one_key, one_key);
		say(words, COUNT, true);
		up_hand = NULL;
		shutdown(line.middle[1], SHUT_WR);
		hear(line.server, &at_server);
		check_prefix(COUNT);
		EQ(at_server.error, ECONNRESET);
		line_close();
	}
}

static size_t repeat_from, repeat_count;

/* Send a stretch of the lane a second time. */
static void repeat(struct lane *lane, size_t at)
{
	if (at > repeat_from + repeat_count || lane->count < repeat_from + repeat_count)
		return;
	memmove(lane->bytes + repeat_from + 2 * repeat_count,
		lane->bytes + repeat_from + repeat_count,
		lane->count - repeat_from - repeat_count);
	memcpy(lane->bytes + repeat_from + repeat_count, lane->bytes + repeat_from,
		repeat_count);
	lane->count += repeat_count;
	repeat_count = WIRE_MAX; /* once */
}

/* A frame that comes twice is heard once, and then nothing. */
static void test_repeated_frame(void)
{
	enum { COUNT = 10, HELLO = 72, HEADER = 24, FRAME = 4 + COUNT + 17 };

	repeat_from = HELLO + HEADER;
	repeat_count = FRAME;
	up_hand = repeat;
	begin(one_key, one_key);
	say(words, COUNT, true);
	up_hand = NULL;
	EQ(at_server.count, COUNT);
	EQ(at_server.error, EPROTO);
	EQ(seal_fault(line.server), SEAL_FORGED);
	line_close();
}

/* What a client said once, said again by somebody else, is not heard. */
static void test_replayed_connection(void)
{
	static unsigned char before[WIRE_MAX];
	size_t count;

	begin(one_key, one_key);
	say(words, 100, true);
	EQ(at_server.count, 100);
	count = line.up.count;
	memcpy(before, line.up.bytes, count);
	line_close();
	begin(NULL, one_key);
	EQ(send(line.middle[1], before, count, 0), (ssize_t)count);
	hear(line.server, &at_server);
	EQ(at_server.count, 0);
	EQ(at_server.error, EPROTO);
	EQ(seal_fault(line.server), SEAL_FORGED);
	line_close();
}

/* The other end has spoken and gone: its words are heard though ours cannot be sent. */
static void test_last_words(void)
{
	begin(one_key, one_key);
	say(words, 10, false);
	EQ(at_server.count, 10);
	EQ(seal_send(line.server, "farewell", 8), 8);
	line_move();
	close(line.middle[0]);
	line.middle[0] = dup(line.middle[1]);
	EQ(seal_send(line.client, words, 10), -1);
	EQ(errno, EPIPE);
	hear(line.client, &at_client);
	EQ(at_client.count, 8);
	EQ(at_client.error, ECONNRESET);
	line_close();
}

/* ---- wrong ends ---- */

static void test_other_key(void)
{
	begin(one_key, other_key);
	say(words, 10, false);
	EQ(at_server.count, 0);
	EQ(at_server.error, EPROTO);
	EQ(seal_fault(line.server), SEAL_OTHER_KEY);
	EQ(at_client.error, EPROTO);
	EQ(seal_fault(line.client), SEAL_KEY_DIFFERS);
	TRUE(strstr(seal_fault_text(SEAL_KEY_DIFFERS), "another pre-shared key"));
	line_close();
}

/* An impostor that answers in the right form does not have the key. */
static void forge(struct lane *lane, size_t at)
{
	(void)at;
	memset(lane->bytes + 8, 0x5a, lane->count - 8);
}

static void test_impostor(void)
{
	down_hand = forge;
	begin(one_key, one_key);
	say(words, 10, false);
	down_hand = NULL;
	EQ(at_client.error, EPROTO);
	EQ(seal_fault(line.client), SEAL_OTHER_KEY);
	EQ(seal_send(line.client, words, 10), -1);
	EQ(errno, EPROTO);
	line_close();
}

/* A server with a key, a client without; and the other way round. */
static void test_one_sided(void)
{
	char notice[SEAL_NOTICE_BYTES], plain[40] = "WEFTBT02 and so on";

	begin(NULL, one_key);
	EQ(send(line.ends[0], plain, sizeof(plain), 0), sizeof(plain));
	line_move();
	hear(line.server, &at_server);
	line_move();
	EQ(at_server.error, EPROTO);
	EQ(seal_fault(line.server), SEAL_PLAIN);
	EQ(recv(line.ends[0], notice, sizeof(notice), 0), sizeof(notice));
	TRUE(seal_is_notice(notice));
	line_close();

	begin(one_key, NULL);
	EQ(seal_flush(line.client), 0);
	line_move();
	EQ(recv(line.ends[1], plain, 40, 0), 40);
	TRUE(seal_is_hello(plain));
	seal_turn_away(line.ends[1]);
	line_move();
	hear(line.client, &at_client);
	EQ(at_client.error, EPROTO);
	EQ(seal_fault(line.client), SEAL_NO_KEY_THERE);
	line_close();
}

/* Noise of every length, and none of it is heard. */
static void test_noise(void)
{
	unsigned char noise[300];

	for (size_t count = 1; count <= sizeof(noise); count += 7) {
		auth_random(noise, count);
		if (count % 2)
			memcpy(noise, "WEFTSL01", count < 8 ? count : 8);
		begin(NULL, one_key);
		EQ(send(line.middle[1], noise, count, 0), (ssize_t)count);
		hear(line.server, &at_server);
		EQ(at_server.count, 0);
		TRUE(at_server.error == EPROTO || (!at_server.error && count < 72));
		line_close();
	}
}

static void test_key(void)
{
	unsigned char key[AUTH_KEY_BYTES], again[AUTH_KEY_BYTES];

	TRUE(!psk_get(key));
	EQ(psk_set("0123456789012345678901234567890"), ERR_ARGUMENT); /* 31 */
	TRUE(strstr(err_last(), "31 bytes"));
	TRUE(!psk_get(key));
	EQ(psk_set("01234567890123456789012345678901"), OK);
	TRUE(psk_get(key));
	EQ(psk_set("01234567890123456789012345678902"), OK);
	TRUE(psk_get(again));
	TRUE(memcmp(key, again, sizeof(key)));
	EQ(psk_set("01234567890123456789012345678901"), OK);
	TRUE(psk_get(again));
	TRUE(!memcmp(key, again, sizeof(key)));
	EQ(psk_set(NULL), OK);
	TRUE(!psk_get(key));
}

int main(void)
{
	EQ(auth_init(), OK);
	auth_random(one_key, sizeof(one_key));
	auth_random(other_key, sizeof(other_key));
	for (size_t i = 0; i < WORDS_MAX; i++)
		words[i] = (unsigned char)(i * 7 + i / 256);
	test_there_and_back();
	test_hidden();
	test_flipped();
	test_cut();
	test_repeated_frame();
	test_replayed_connection();
	test_last_words();
	test_other_key();
	test_impostor();
	test_one_sided();
	test_noise();
	test_key();
	return 0;
}
