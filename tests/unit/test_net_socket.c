/* Sockets: messages of all sizes in order, who gets in and who does not, and what is said
 * when a connection is lost. */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/addr.h"
#include "net/net.h"
#include "test.h"

static const struct net_ops *net = &net_socket;

struct pair {
	struct net_end *listener, *to, *from;
	struct net_handle handle;
};

static struct addr loopback(void)
{
	struct addr addr;

	EQ(addr_parse("127.0.0.1:1", &addr), OK);
	return addr;
}

static void pair_listen(struct pair *pair)
{
	struct addr addr = loopback();
	struct net_listen_args args = {.addrs = &addr, .addr_count = 1, .key = "right"};

	memset(pair, 0, sizeof(*pair));
	EQ(net->listen(&args, &pair->listener, &pair->handle), OK);
}

static struct net_end *connect_as(const struct pair *pair, const char *key, uint32_t from)
{
	struct net_connect_args args = {.handle = &pair->handle, .claim = {.from = from}};
	struct net_end *end;

	strcpy((char *)args.key, key);
	EQ(net->connect(&args, &end), OK);
	return end;
}

static void pair_join(struct pair *pair)
{
	struct net_claim claim;
	struct net_request request;
	enum err e;

	pair->to = connect_as(pair, "right", 7);
	EQ(net->send(pair->to, "hi", 3, &request), OK);
	while ((e = net->accept(pair->listener, &claim, &pair->from)) == ERR_AGAIN)
		EQ(net->test(&request, 0), ERR_AGAIN);
	EQ(e, OK);
	EQ(claim.from, 7);
	while ((e = net->test(&request, 1000)) == ERR_AGAIN)
		;
	EQ(e, OK);
}

static void pair_take(struct pair *pair, const char *expected, size_t bytes)
{
	struct net_request request;
	char *taken = malloc(bytes + 1);
	enum err e;

	EQ(net->recv(pair->from, taken, bytes, &request), OK);
	while ((e = net->test(&request, 1000)) == ERR_AGAIN)
		;
	EQ(e, OK);
	EQ(memcmp(taken, expected, bytes), 0);
	free(taken);
}

static void pair_close(struct pair *pair)
{
	net->close(pair->to);
	net->close(pair->from);
	net->close(pair->listener);
	net->close(NULL);
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

/* Short and long ones, alone and together; what is sent is not cut where the socket cuts
 * it. */
static void test_sizes(void)
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
	pair_take(&pair, "hi", 3);
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
static void test_lengths(void)
{
	char out[9000], in[9000];
	struct net_request sent, taken;
	struct pair pair;

	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (char)i;
	pair_listen(&pair);
	pair_join(&pair);
	pair_take(&pair, "hi", 3);
	memset(in, 77, sizeof(in));
	EQ(net->send(pair.to, out, 9000, &sent), OK);
	EQ(net->send(pair.to, out, 10, &sent), OK);
	EQ(net->send(pair.to, "after", 6, &sent), OK);
	EQ(net->recv(pair.from, in, 5000, &taken), OK);
	EQ(net->recv(pair.from, in + 6000, 100, &taken), OK);
	run_both(&sent, &taken);
	EQ(memcmp(in, out, 5000), 0);
	EQ(in[5000], 77);
	EQ(memcmp(in + 6000, out, 10), 0);
	EQ(in[6010], 77);
	pair_take(&pair, "after", 6);
	pair_close(&pair);
}

static int stranger(const struct pair *pair)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	struct addr addr;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	/* the first way of a handle stands behind its count and its nonce */
	memcpy(&addr, pair->handle.bytes + 20, sizeof(addr));
	at.sin_port = addr.port;
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	EQ(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

/* A wrong key, noise, silence and a crowd keep nobody out who belongs. */
static void test_strangers(void)
{
	enum { CROWD = 200 };
	struct net_request request, lost;
	struct net_claim claim;
	struct net_end *liar;
	struct pair pair;
	int fds[CROWD];
	enum err e;

	pair_listen(&pair);
	liar = connect_as(&pair, "wrong", 3);
	EQ(net->send(liar, "no", 3, &lost), OK);
	for (int i = 0; i < CROWD; i++) {
		fds[i] = stranger(&pair);
		if (i % 2)
			EQ(send(fds[i], "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL), 18);
	}
	pair.to = connect_as(&pair, "right", 5);
	EQ(net->send(pair.to, "hi", 3, &request), OK);
	while ((e = net->accept(pair.listener, &claim, &pair.from)) == ERR_AGAIN) {
		EQ(net->test(&request, 0), ERR_AGAIN);
		EQ(net->test(&lost, 0), ERR_AGAIN);
	}
	EQ(e, OK);
	EQ(claim.from, 5);
	EQ(net->test(&request, 1000), OK);
	pair_take(&pair, "hi", 3);
	for (int i = 0; i < CROWD; i++)
		close(fds[i]);
	net->close(liar);
	pair_close(&pair);
}

static void test_lost(void)
{
	struct net_request request;
	struct pair pair;
	char byte;
	enum err e;

	pair_listen(&pair);
	pair_join(&pair);
	pair_take(&pair, "hi", 3);
	net->close(pair.to);
	pair.to = NULL;
	EQ(net->recv(pair.from, &byte, 1, &request), OK);
	while ((e = net->test(&request, 1000)) == ERR_AGAIN)
		;
	EQ(e, ERR_REMOTE);
	TRUE(strstr(err_last(), "127.0.0.1"));
	TRUE(strstr(err_last(), "has closed it"));
	EQ(net->test(&request, 0), ERR_REMOTE); /* and so it stays */
	pair_close(&pair);
	/* nobody listens there any more */
	pair_listen(&pair);
	net->close(pair.listener);
	pair.listener = NULL;
	pair.to = connect_as(&pair, "right", 1);
	EQ(net->send(pair.to, "hi", 3, &request), OK);
	while ((e = net->test(&request, 1000)) == ERR_AGAIN)
		;
	EQ(e, ERR_REMOTE);
	TRUE(strstr(err_last(), "refused"));
	pair_close(&pair);
}

int main(void)
{
	EQ(auth_init(), OK);
	test_sizes();
	test_lengths();
	test_strangers();
	test_lost();
	return 0;
}
