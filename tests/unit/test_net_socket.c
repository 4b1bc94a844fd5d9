/* Sockets: messages of all sizes in order, who gets in and who does not, and what is said
 * when a connection is lost. */
#include <linux/sockios.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/socket.h"
#include "net_pair.h"

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

/* Bytes that the kernel keeps and has not sent once. */
static int kept(const struct pair *pair)
{
	int bytes = -1;

	EQ(ioctl(pair->to->cable.fd, SIOCOUTQNSD, &bytes), 0);
	return bytes;
}

/* Number `i` leaves, as far as the sender knows. */
static void number_send(const struct pair *pair, uint32_t i)
{
	struct net_request request;

	EQ(net->send(pair->to, &i, sizeof(i), &request), OK);
	EQ(net->test(&request, 0), OK);
}

static void numbers_take(struct pair *pair, uint32_t from, uint32_t to)
{
	for (; from < to; from++)
		pair_take(pair, (const char *)&from, sizeof(from));
}

/* In bunches, messages wait for their receiver, who gets all without another word of the
 * sender's; and who wants them to leave at once again has all leave. */
static void test_bunches(void)
{
	enum { COUNT = 6, MOST = 10000 }; /* fewer than a kernel sends unanswered */
	struct pair pair;
	uint32_t sent = 0, taken;
	bool has_kept;

	pair_listen(&pair);
	pair_join(&pair);
	for (; sent < COUNT; sent++) {
		number_send(&pair, sent);
		EQ(kept(&pair), 0);
	}
	numbers_take(&pair, 0, sent);
	for (int on = 1; on >= 0; on--) {
		taken = sent;
		net_socket_bunch(pair.to, true);
		net_socket_bunch(pair.from, true);
		/* the other kernel answers by itself after a while, and all leaves */
		has_kept = false;
		for (int i = 0; i < COUNT || (!has_kept && i < MOST); i++) {
			number_send(&pair, sent++);
			has_kept = has_kept || kept(&pair) > 0;
		}
		TRUE(has_kept);
		net_socket_bunch(pair.to, on);
		EQ(on || !kept(&pair), true);
		numbers_take(&pair, taken, sent);
	}
	number_send(&pair, sent);
	EQ(kept(&pair), 0);
	net_socket_bunch(NULL, true);
	pair_close(&pair);
}

int main(void)
{
	EQ(auth_init(), OK);
	check_sizes();
	check_lengths();
	test_strangers();
	test_lost();
	test_bunches();
	return 0;
}
