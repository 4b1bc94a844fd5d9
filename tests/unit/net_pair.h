/* Two ends of a connection in one process, for tests of the network. */
#ifndef TEST_NET_PAIR_H
#define TEST_NET_PAIR_H

#include <stdlib.h>
#include <string.h>

#include "net/addr.h"
#include "net/net.h"
#include "test.h"

static const struct net_ops *net = &net_socket;
static struct net_plugin *pair_plugin; /* of net_by_plugin */

/* How the next connections are made. */
static struct net_manner manner, caller_manner;
static bool pair_is_packed;

struct pair {
	struct net_end *listener, *to, *from;
	struct net_handle handle;
};

static void pair_listen(struct pair *pair)
{
	struct addr addrs[2];
	struct net_listen_args args = {.addrs = addrs,
		.addr_count = manner.cables > 1 ? 2 : 1,
		.key = "right",
		.manner = manner,
		.plugin = pair_plugin};

	EQ(addr_parse("127.0.0.1:1", &addrs[0]), OK);
	EQ(addr_parse("127.0.0.2:1", &addrs[1]), OK);
	caller_manner = manner;
	memset(pair, 0, sizeof(*pair));
	EQ(net->listen(&args, &pair->listener, &pair->handle), OK);
}

static struct net_end *connect_as(const struct pair *pair, const char *key, uint32_t from)
{
	struct net_connect_args args = {.handle = &pair->handle,
		.claim = {.from = from},
		.manner = caller_manner,
		.plugin = pair_plugin,
		.is_packed = pair_is_packed};
	struct net_end *end;

	strcpy((char *)args.key, key);
	EQ(net->connect(&args, &end), OK);
	return end;
}

/* Both ends of everything, as long as something moves. */
static void run_both(struct net_request *sent, struct net_request *taken)
{
	enum err e = ERR_AGAIN, f = ERR_AGAIN;

	while (e == ERR_AGAIN || f == ERR_AGAIN) {
		e = net->test(sent, 0);
		f = net->test(taken, 0);
	}
	EQ(e, OK);
	EQ(f, OK);
}

static void pair_join(struct pair *pair)
{
	struct net_request request, taken;
	struct net_claim claim;
	char text[3];
	enum err e;

	pair->to = connect_as(pair, "right", 7);
	EQ(net->send(pair->to, "hi", 3, &request), OK);
	while ((e = net->accept(pair->listener, &claim, &pair->from)) == ERR_AGAIN)
		EQ(net->test(&request, 0), ERR_AGAIN);
	EQ(e, OK);
	EQ(claim.from, 7);
	EQ(net->recv(pair->from, text, 3, &taken), OK);
	run_both(&request, &taken);
	EQ(memcmp(text, "hi", 3), 0);
}

static void pair_close(struct pair *pair)
{
	net->close(pair->to);
	net->close(pair->from);
	net->close(pair->listener);
	net->close(NULL);
}

/* Short and long ones, alone and together; what is sent is not cut where the socket cuts
 * it. */
static inline void check_sizes(void)
{
	static const size_t sizes[] = {
		0, 1, 8, 100, 4095, 4096, 5000, 16384, 70000, 3 << 20, 1, 0, 17, 9 << 20};
	enum { COUNT = sizeof(sizes) / sizeof(sizes[0]) };
	struct net_request sent, taken;
	struct pair pair;
	size_t all = 0, at = 0;
	char *out, *in;

	for (int i = 0; i < COUNT; i++)
		all += sizes[i];
	out = malloc(all);
	in = calloc(1, all);
	for (size_t i = 0; i < all; i++)
		out[i] = (char)(i * 2654435761u >> 13);
	pair_listen(&pair);
	pair_join(&pair);
	for (int i = 0; i < COUNT; at += sizes[i++]) {
		EQ(net->send(pair.to, out + at, sizes[i], &sent), OK);
		EQ(net->recv(pair.from, in + at, sizes[i], &taken), OK);
	}
	run_both(&sent, &taken);
	EQ(memcmp(in, out, all), 0);
	free(in);
	free(out);
	pair_close(&pair);
}

/* Who asks for less gets less, who asks for more gets what there is; the next is whole.
 */
static inline void check_lengths(void)
{
	char out[9000], in[9000];
	struct net_request sent, taken;
	struct pair pair;
	enum err e;

	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (char)i;
	pair_listen(&pair);
	pair_join(&pair);
	memset(in, 77, sizeof(in));
	EQ(net->send(pair.to, out, 9000, &sent), OK);
	EQ(net->send(pair.to, out, 10, &sent), OK);
	EQ(net->send(pair.to, "after", 6, &sent), OK);
	EQ(net->recv(pair.from, in, 5000, &taken), OK);
	EQ(net->recv(pair.from, in + 6000, 100, &taken), OK);
	while ((e = net->test(&taken, 0)) == ERR_AGAIN) {
		e = net->test(&sent, 0);
		TRUE(e == OK || e == ERR_AGAIN);
	}
	EQ(e, OK);
	EQ(memcmp(in, out, 5000), 0);
	EQ(in[5000], 77);
	EQ(memcmp(in + 6000, out, 10), 0);
	EQ(in[6010], 77);
	EQ(net->recv(pair.from, in, 6, &taken), OK);
	run_both(&sent, &taken);
	EQ(memcmp(in, "after", 6), 0);
	pair_close(&pair);
}

#endif
