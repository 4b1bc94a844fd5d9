/* Connections of several cables and guarded ones: messages whole and in order, cables
 * that are lost while they carry something, and bytes that are changed on the way. */
#include "net/bundle.h"

#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "net_pair.h"

static void fill(char *data, size_t bytes, uint32_t seed)
{
	for (size_t i = 0; i < bytes; i++)
		data[i] = (char)((i + seed) * 2654435761u >> 13);
}

/* ---- everything that one bare cable does ---- */

static void test_messages(void)
{
	for (uint32_t guard = NET_BARE; guard <= NET_SEALED; guard++)
		for (uint32_t cables = 1; cables <= 3; cables++) {
			manner = (struct net_manner){.guard = (enum net_guard)guard,
				.cables = cables,
				.silence_ms = 2000};
			for (uint32_t threads = 0; threads <= 2; threads += 2) {
				manner.threads = threads;
				check_sizes();
				check_lengths();
			}
		}
}

/* Each cable carries a part of what is long, and the first alone what is short. */
static void test_stripes(void)
{
	enum { LONG = 4 << 20 };
	struct net_request sent, taken;
	struct bundle *bundle;
	uint64_t first;
	struct pair pair;
	char *out = malloc(LONG), *in = malloc(LONG);

	manner = (struct net_manner){.cables = 4};
	fill(out, LONG, 1);
	pair_listen(&pair);
	pair_join(&pair);
	bundle = pair.from->bundle;
	for (int i = 0; i < 50; i++) {
		EQ(net->send(pair.to, out, LONG, &sent), OK);
		EQ(net->recv(pair.from, in, LONG, &taken), OK);
		run_both(&sent, &taken);
	}
	for (uint32_t i = 0; i < 4; i++)
		TRUE(bundle->fibres[i].came > 10);
	first = bundle->fibres[0].came;
	for (int i = 0; i < 50; i++) {
		EQ(net->send(pair.to, out, 100, &sent), OK);
		EQ(net->recv(pair.from, in, 100, &taken), OK);
		run_both(&sent, &taken);
	}
	EQ(bundle->fibres[0].came, first + 50);
	free(in);
	free(out);
	pair_close(&pair);
}

/* ---- between the ends ---- */

/* Somebody between the two ends, who sees all and changes one bit. */
struct relay {
	int listener, near, far;
	struct addr to;
	uint64_t seen, flip_at; /* of the bytes that the connecting end sends */
	char *heard;
	size_t room;
};

/* It stands in the place of one of the listener's ways. */
static void relay_start(
	struct relay *relay, struct pair *pair, uint32_t way, uint64_t flip_at)
{
	unsigned char *told = pair->handle.bytes + 20 + way * sizeof(struct addr);
	struct addr at;

	memset(relay, 0, sizeof(*relay));
	relay->near = relay->far = -1;
	relay->flip_at = flip_at;
	memcpy(&relay->to, told, sizeof(relay->to));
	EQ(addr_parse("127.0.0.1:1", &at), OK);
	at.port = 0;
	EQ(addr_listen(&at, &relay->listener, &at), OK);
	memcpy(told, &at, sizeof(at));
}

static void relay_stop(struct relay *relay)
{
	close(relay->listener);
	close(relay->near);
	close(relay->far);
	free(relay->heard);
}

/* All of it, or the test is wrong: short ones only. */
static void pump(int from, int to, struct relay *relay)
{
	char bytes[65536];
	ssize_t got = recv(from, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (got <= 0)
		return;
	if (relay) {
		if (relay->flip_at >= relay->seen &&
			relay->flip_at < relay->seen + (uint64_t)got)
			bytes[relay->flip_at - relay->seen] ^= 16;
		relay->heard = realloc(relay->heard, relay->seen + (size_t)got);
		memcpy(relay->heard + relay->seen, bytes, (size_t)got);
		relay->seen += (uint64_t)got;
	}
	for (ssize_t done = 0; done < got;) {
		ssize_t n = send(to, bytes + done, (size_t)(got - done), MSG_NOSIGNAL);

		if (n > 0)
			done += n;
		else if (errno != EAGAIN)
			return;
	}
}

static void relay_step(struct relay *relay)
{
	if (relay->near < 0) {
		if (addr_accept(relay->listener, &relay->near))
			return;
		addr_connect(&relay->to, &relay->far);
	}
	pump(relay->near, relay->far, relay);
	pump(relay->far, relay->near, NULL);
}

/* ---- cables that are lost ---- */

enum loss { LOSS_SENDER, LOSS_RECEIVER, LOSS_BOTH_WAYS, LOSSES };

static void cable_cut_off(struct pair *pair, uint32_t index, enum loss loss)
{
	int to, from;

	bundle_lock(pair->to->bundle);
	bundle_lock(pair->from->bundle);
	to = pair->to->bundle->fibres[index].cable.fd;
	from = pair->from->bundle->fibres[index].cable.fd;
	if (loss != LOSS_RECEIVER)
		shutdown(to, loss == LOSS_SENDER ? SHUT_WR : SHUT_RDWR);
	if (loss != LOSS_SENDER)
		shutdown(from, SHUT_RDWR);
	bundle_unlock(pair->from->bundle);
	bundle_unlock(pair->to->bundle);
}

/* Messages in both ends' hands, some of them; a cable is lost after `after` looks. What
 * is asked for is asked for one by one or all at once. */
static void lose_one(enum loss loss, uint32_t index, uint32_t after, bool all_at_once)
{
	enum { COUNT = 12, BYTES = 600000 };
	struct net_request sent[COUNT], taken[COUNT];
	char *out = malloc((size_t)COUNT * BYTES), *in = calloc(COUNT, BYTES);
	uint32_t asked = 0, done = 0, looks = 0;
	struct pair pair;
	enum err e;

	fill(out, (size_t)COUNT * BYTES, after);
	pair_listen(&pair);
	pair_join(&pair);
	for (uint32_t i = 0; i < COUNT; i++)
		EQ(net->send(pair.to, out + (size_t)i * BYTES, i % 3 ? BYTES : 1000,
			   &sent[i]),
			OK);
	while (done < COUNT) {
		while (asked < COUNT && (all_at_once || asked == done)) {
			EQ(net->recv(pair.from, in + (size_t)asked * BYTES, BYTES,
				   &taken[asked]),
				OK);
			asked++;
		}
		e = net->test(&sent[COUNT - 1], 0);
		TRUE(e == OK || e == ERR_AGAIN);
		e = net->test(&taken[done], 0);
		TRUE(e == OK || e == ERR_AGAIN);
		done += e == OK;
		if (looks++ == after)
			cable_cut_off(&pair, index, loss);
	}
	while ((e = net->test(&sent[COUNT - 1], 100)) == ERR_AGAIN)
		EQ(net->test(&taken[COUNT - 1], 0), OK);
	EQ(e, OK);
	for (uint32_t i = 0; i < COUNT; i++)
		EQ(memcmp(in + (size_t)i * BYTES, out + (size_t)i * BYTES,
			   i % 3 ? BYTES : 1000),
			0);
	TRUE(looks > after);
	/* it may have been lost at the very end: then the next message finds out */
	for (uint32_t i = 0; i < 2; i++) {
		EQ(net->send(pair.to, out, BYTES, &sent[0]), OK);
		EQ(net->recv(pair.from, in, BYTES, &taken[0]), OK);
		run_both(&sent[0], &taken[0]);
	}
	bundle_lock(pair.to->bundle);
	EQ(pair.to->bundle->fibres[index].cable.phase, CABLE_LOST);
	bundle_unlock(pair.to->bundle);
	bundle_lock(pair.from->bundle);
	EQ(pair.from->bundle->fibres[index].cable.phase, CABLE_LOST);
	bundle_unlock(pair.from->bundle);
	free(in);
	free(out);
	pair_close(&pair);
}

static void test_losses(void)
{
	for (uint32_t guard = NET_BARE; guard <= NET_SEALED; guard += 2)
		for (uint32_t loss = 0; loss < LOSSES; loss++)
			for (uint32_t after = 0; after < 8; after++) {
				manner = (struct net_manner){.cables = 3,
					.guard = (enum net_guard)guard,
					.threads = after % 4 == 3 ? 3 : 0,
					.silence_ms = 2000};
				lose_one((enum loss)loss, after % 3, after, after % 2);
			}
}

/* A cable goes mute, and only the sender notices. The receiver asks for one message after
 * the other; what it misses stands behind what it has not asked for yet. */
static void lose_mute(uint32_t after)
{
	enum { COUNT = 12, BYTES = 300000 };
	struct net_request sent[COUNT], taken;
	char *out = malloc((size_t)COUNT * BYTES), *in = malloc(BYTES);
	uint32_t done = 0, looks = 0;
	struct relay relay;
	struct pair pair;
	enum err e;

	manner = (struct net_manner){.cables = 2};
	fill(out, (size_t)COUNT * BYTES, after);
	pair_listen(&pair);
	relay_start(&relay, &pair, 1, UINT64_MAX);
	pair_join(&pair);
	for (uint32_t i = 0; i < COUNT; i++)
		EQ(net->send(pair.to, out + (size_t)i * BYTES, BYTES, &sent[i]), OK);
	while (done < COUNT) {
		EQ(net->recv(pair.from, in, BYTES, &taken), OK);
		do {
			e = net->test(&sent[COUNT - 1], 0);
			TRUE(e == OK || e == ERR_AGAIN);
			if (looks < after)
				relay_step(&relay);
			else if (looks == after)
				shutdown(pair.to->bundle->fibres[1].cable.fd, SHUT_RDWR);
			looks++;
			e = net->test(&taken, 0);
		} while (e == ERR_AGAIN);
		EQ(e, OK);
		EQ(memcmp(in, out + (size_t)done++ * BYTES, BYTES), 0);
	}
	while ((e = net->test(&sent[COUNT - 1], 0)) == ERR_AGAIN)
		EQ(net->test(&taken, 0), OK);
	EQ(e, OK);
	relay_stop(&relay);
	free(in);
	free(out);
	pair_close(&pair);
}

static void test_mutes(void)
{
	for (uint32_t after = 0; after < 40; after += 3)
		lose_mute(after);
}

/* Nothing is left: then it is a failure, and says of whom. */
static void test_all_lost(void)
{
	struct net_request sent, taken;
	struct pair pair;
	char byte = 0;
	enum err e;

	manner = (struct net_manner){.cables = 2};
	pair_listen(&pair);
	pair_join(&pair);
	for (uint32_t i = 0; i < 2; i++)
		cable_cut_off(&pair, i, LOSS_BOTH_WAYS);
	EQ(net->send(pair.to, &byte, 1, &sent), OK);
	EQ(net->recv(pair.from, &byte, 1, &taken), OK);
	while ((e = net->test(&sent, 100)) == ERR_AGAIN)
		;
	EQ(e, ERR_REMOTE);
	TRUE(strstr(err_last(), "the connection with 127.0.0."));
	while ((e = net->test(&taken, 100)) == ERR_AGAIN)
		;
	EQ(e, ERR_REMOTE);
	EQ(net->test(&taken, 0), ERR_REMOTE);
	pair_close(&pair);
}

/* An interface that is lost before a connection is made: the other has to do. */
static void test_lost_before(void)
{
	struct net_request sent, taken;
	char out[100000], in[100000];
	struct addr addr;
	struct pair pair;

	manner = (struct net_manner){.cables = 2};
	fill(out, sizeof(out), 3);
	pair_listen(&pair);
	/* the second way of a handle; nobody listens at port 1 */
	memcpy(&addr, pair.handle.bytes + 20 + sizeof(addr), sizeof(addr));
	addr.port = htons(1);
	memcpy(pair.handle.bytes + 20 + sizeof(addr), &addr, sizeof(addr));
	pair_join(&pair);
	EQ(net->send(pair.to, out, sizeof(out), &sent), OK);
	EQ(net->recv(pair.from, in, sizeof(in), &taken), OK);
	run_both(&sent, &taken);
	EQ(memcmp(in, out, sizeof(out)), 0);
	EQ(pair.to->bundle->fibres[1].cable.phase, CABLE_LOST);
	pair_close(&pair);
}

/* The first is lost while the second is still on its way: it has to be waited for. */
static void test_lost_early(void)
{
	struct net_request sent, taken;
	char out[100000], in[100000];
	struct relay relay;
	struct pair pair;
	enum err e, f;

	manner = (struct net_manner){.cables = 2};
	fill(out, sizeof(out), 4);
	pair_listen(&pair);
	relay_start(&relay, &pair, 1, UINT64_MAX);
	pair_join(&pair);
	EQ(pair.from->bundle->fibres[1].cable.phase, CABLE_AWAITED);
	cable_cut_off(&pair, 0, LOSS_BOTH_WAYS);
	EQ(net->send(pair.to, out, sizeof(out), &sent), OK);
	EQ(net->recv(pair.from, in, sizeof(in), &taken), OK);
	for (int i = 0; i < 3; i++) {
		EQ(net->test(&sent, 0), ERR_AGAIN);
		EQ(net->test(&taken, 0), ERR_AGAIN);
	}
	EQ(pair.from->bundle->fibres[0].cable.phase, CABLE_LOST);
	do {
		relay_step(&relay);
		e = net->test(&sent, 0);
		f = net->test(&taken, 0);
	} while (e == ERR_AGAIN || f == ERR_AGAIN);
	EQ(e, OK);
	EQ(f, OK);
	EQ(memcmp(in, out, sizeof(out)), 0);
	relay_stop(&relay);
	pair_close(&pair);
}

enum { SECRET_BYTES = 300000 };

/* One message of SECRET_BYTES through a relay. How the receiver fares. */
static enum err relayed(uint64_t flip_at, char *out, struct relay *relay)
{
	char *in = calloc(1, SECRET_BYTES);
	struct net_request sent, taken;
	struct net_claim claim;
	struct pair pair;
	enum err e, f;

	pair_listen(&pair);
	relay_start(relay, &pair, 0, flip_at);
	pair.to = connect_as(&pair, "right", 7);
	EQ(net->send(pair.to, out, SECRET_BYTES, &sent), OK);
	while ((e = net->accept(pair.listener, &claim, &pair.from)) == ERR_AGAIN) {
		EQ(net->test(&sent, 0), ERR_AGAIN);
		relay_step(relay);
	}
	EQ(e, OK);
	EQ(net->recv(pair.from, in, SECRET_BYTES, &taken), OK);
	do {
		f = net->test(&sent, 0);
		TRUE(f == OK || f == ERR_AGAIN);
		relay_step(relay);
		e = net->test(&taken, 0);
	} while (e == ERR_AGAIN);
	if (!e)
		EQ(memcmp(in, out, SECRET_BYTES), 0);
	pair_close(&pair);
	free(in);
	return e;
}

enum { CLAIM = sizeof(struct claim_words), HEAD = sizeof(struct block_head) };

/* Where the bytes of the connecting end stand: each block has its head in front. */
static uint64_t head_at(uint32_t step, uint64_t block)
{
	return CLAIM + block * (HEAD + step);
}

static uint64_t byte_at(uint32_t step, uint64_t byte)
{
	return head_at(step, byte / step) + HEAD + byte % step;
}

static void flip_is_placed(uint64_t at, char *out, const char *words)
{
	struct relay relay;

	EQ(relayed(at, out, &relay), ERR_REMOTE);
	TRUE(strstr(err_last(), words));
	TRUE(strstr(err_last(), "the connection with 127.0.0.1:"));
	relay_stop(&relay);
}

/* The same places at either guard, though the blocks of checksums are twice as long. */
static void flips_are_placed(uint32_t step, char *out)
{
	static const struct {
		uint64_t byte;
		const char *words;
	} flips[] = {{0, "message 0 was changed on the way, in its bytes 0 to 131071"},
		{131071, "in its bytes 0 to 131071"},
		{131072, "in its bytes 131072 to 262143"},
		{262143, "in its bytes 131072 to 262143"},
		{262144, "in its bytes 262144 to 299999"},
		{SECRET_BYTES - 1, "in its bytes 262144 to 299999"}};
	/* the head itself, how many bytes it has, both halves of a tag, the other tag */
	static const uint32_t of_head[] = {0, 24, 33, 41, 48};
	uint64_t blocks = (SECRET_BYTES + step - 1) / step;
	struct relay relay;

	EQ(relayed(UINT64_MAX, out, &relay), OK);
	EQ(relay.seen, CLAIM + blocks * HEAD + SECRET_BYTES);
	relay_stop(&relay);
	for (size_t i = 0; i < sizeof(flips) / sizeof(flips[0]); i++)
		flip_is_placed(byte_at(step, flips[i].byte), out, flips[i].words);
	for (size_t i = 0; i < sizeof(of_head) / sizeof(of_head[0]); i++)
		flip_is_placed(
			head_at(step, 0) + of_head[i], out, "the head of its block 0");
	flip_is_placed(head_at(step, 1), out, "the head of its block 1");
}

static void test_changed(void)
{
	char *out = malloc(SECRET_BYTES);

	fill(out, SECRET_BYTES, 9);
	manner = (struct net_manner){.guard = NET_SUMMED};
	flips_are_placed(BLOCK_MOST, out);
	manner = (struct net_manner){.guard = NET_SEALED};
	flips_are_placed(BLOCK_SEALED, out);
	free(out);
}

/* In both halves at once: all of it is named. */
static void test_changed_twice(void)
{
	uint32_t bytes = GUARD_SPAN + 1000;
	struct block_head head = {.bytes = htole32(bytes)};
	char *data = calloc(1, bytes);
	struct guard to, from;
	struct guard_span wrong;

	guard_init(&to, NET_SUMMED);
	guard_init(&from, NET_SUMMED);
	TRUE(guard_put(&to, &head, data, NULL) == data);
	data[0]++;
	data[GUARD_SPAN]++;
	TRUE(!guard_check_body(&from, &head, data, &wrong));
	EQ(wrong.first, 0);
	EQ(wrong.end, bytes);
	free(data);
}

/* Who listens finds no eight bytes of what was sent, and not the same twice. */
static void test_unreadable(void)
{
	char *out = malloc(SECRET_BYTES);
	struct relay first, second;

	memset(out, 0, SECRET_BYTES);
	memcpy(out + 1000, "a secret of ours", 16);
	manner = (struct net_manner){.guard = NET_BARE};
	EQ(relayed(UINT64_MAX, out, &first), OK); /* this is how it would be found */
	TRUE(memmem(first.heard, first.seen, "a secret of ours", 16));
	relay_stop(&first);
	manner.guard = NET_SEALED;
	EQ(relayed(UINT64_MAX, out, &first), OK);
	EQ(relayed(UINT64_MAX, out, &second), OK);
	TRUE(!memmem(first.heard, first.seen, "a secret", 8));
	TRUE(!memmem(first.heard + CLAIM + HEAD, SECRET_BYTES, out, 16));
	EQ(first.seen, second.seen);
	TRUE(memcmp(first.heard + CLAIM + HEAD, second.heard + CLAIM + HEAD, 1000));
	/* and two blocks of the same bytes do not look alike */
	TRUE(memcmp(first.heard + CLAIM + HEAD + 2000,
		first.heard + byte_at(BLOCK_SEALED, BLOCK_SEALED + 2000), 1000));
	relay_stop(&first);
	relay_stop(&second);
	free(out);
}

/* Two ends with other settings: each says so. */
static void test_disagree(void)
{
	for (int i = 0; i < 2; i++) {
		struct net_request request;
		struct net_claim claim;
		struct pair pair;
		enum err e, f;

		manner = (struct net_manner){.guard = i ? NET_SUMMED : NET_BARE};
		pair_listen(&pair);
		caller_manner.guard = i ? NET_BARE : NET_SUMMED;
		pair.to = connect_as(&pair, "right", 7);
		EQ(net->send(pair.to, "hi", 3, &request), OK);
		while ((e = net->accept(pair.listener, &claim, &pair.from)) == ERR_AGAIN)
			EQ(net->test(&request, 0), ERR_AGAIN);
		EQ(e, ERR_USAGE);
		TRUE(strstr(err_last(), "set WEFT_CHECKSUM alike everywhere"));
		while ((f = net->test(&request, 100)) == ERR_AGAIN)
			;
		EQ(f, ERR_REMOTE);
		TRUE(strstr(err_last(), "set WEFT_CHECKSUM alike everywhere"));
		pair_close(&pair);
	}
}

int main(void)
{
	EQ(auth_init(), OK);
	test_messages();
	test_stripes();
	test_losses();
	test_mutes();
	test_all_lost();
	test_lost_before();
	test_lost_early();
	test_changed();
	test_changed_twice();
	test_unreadable();
	test_disagree();
	return 0;
}
