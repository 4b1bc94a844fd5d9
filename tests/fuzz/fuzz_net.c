/*
 * What comes over a connection for data: to a listener that knows nobody yet, to an end
 * that has been taken up, and to one that has connected and awaits its welcome.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/addr.h"
#include "net/net.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TURNS = 40, ROOM = 6000, WAIT_US = 200 };

static const struct net_ops *const net = &net_socket;
static const struct addr loopback = {.family = ADDR_IPV4, .bytes = {127, 0, 0, 1}};
static const unsigned char key[AUTH_KEY_BYTES] = "known";

static struct net_end *listen_make(struct net_handle *handle)
{
	struct net_listen_args args = {.addrs = &loopback, .addr_count = 1};
	struct net_end *listener;

	memcpy(args.key, key, sizeof(key));
	if (net->listen(&args, &listener, handle))
		abort();
	return listener;
}

static struct net_end *connect_make(const struct net_handle *handle)
{
	struct net_connect_args args = {.handle = handle, .claim = {1, 2, 0}};
	struct net_end *end;

	memcpy(args.key, key, sizeof(key));
	if (net->connect(&args, &end))
		abort();
	return end;
}

/* The number that the next descriptor will have. */
static int next_fd(void)
{
	int fd = dup(STDERR_FILENO);

	if (fd < 0)
		abort();
	close(fd);
	return fd;
}

static struct sockaddr_in name_of(int fd)
{
	struct sockaddr_in at = {0};
	socklen_t bytes = sizeof(at);

	if (getsockname(fd, (struct sockaddr *)&at, &bytes))
		abort();
	return at;
}

static void put(int fd, const uint8_t *data, size_t size)
{
	if (size && send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return; /* it has hung up */
}

/* Strangers at the door. */
static void listener_fuzz(const uint8_t *data, size_t size)
{
	struct net_handle handle;
	int door = next_fd();
	struct net_end *listener = listen_make(&handle), *end = NULL;
	struct sockaddr_in at = name_of(door);
	struct net_claim claim;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)&at, sizeof(at)))
		abort();
	put(fd, data, size);
	for (int i = 0; i < 3; i++)
		if (!net->accept(listener, &claim, &end))
			abort(); /* it cannot know the key */
	close(fd);
	net->accept(listener, &claim, &end);
	net->close(listener);
}

/* What is asked for has sizes of the input, too. */
static void receive(struct net_end *end, const uint8_t *sizes, size_t count)
{
	struct net_request requests[8];
	static char room[8][ROOM];
	size_t asked = 0;
	enum err e = ERR_AGAIN;

	while (asked < 8 && asked < count &&
		!net->recv(end, room[asked], (size_t)sizes[asked] * ROOM / 256,
			&requests[asked]))
		asked++;
	for (size_t i = 0, turns = 0; i < asked && turns < TURNS; turns++) {
		e = net->test(&requests[i], 0);
		if (!e)
			i++;
		else if (e != ERR_AGAIN)
			return;
	}
}

/* A peer that has proved itself, and then says anything. */
static void frames_fuzz(const uint8_t *data, size_t size)
{
	struct net_handle handle;
	struct net_end *listener = listen_make(&handle), *to, *from = NULL;
	struct net_request request;
	struct net_claim claim;
	int raw, fd = next_fd();

	to = connect_make(&handle);
	if (net->send(to, "", 0, &request))
		abort();
	for (int i = 0; i < TURNS && !from; i++) {
		net->test(&request, WAIT_US);
		if (net->accept(listener, &claim, &from))
			from = NULL;
	}
	for (int i = 0; i < TURNS && from && net->test(&request, WAIT_US); i++)
		;
	raw = from ? dup(fd) : -1;
	if (raw >= 0 && size > 8) {
		put(raw, data + 8, size - 8);
		receive(from, data, 8);
	}
	if (raw >= 0)
		close(raw);
	net->close(to);
	net->close(from);
	net->close(listener);
}

/* Somebody else has taken the listener's place. */
static void welcome_fuzz(const uint8_t *data, size_t size)
{
	struct net_handle handle;
	int fd = next_fd(), one = 1, door, came;
	struct net_end *to, *listener = listen_make(&handle);
	struct sockaddr_in at = name_of(fd);
	struct net_request request;

	net->close(listener);
	door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	setsockopt(door, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(door, (const struct sockaddr *)&at, sizeof(at)) || listen(door, 4)) {
		close(door);
		return; /* somebody else was faster */
	}
	to = connect_make(&handle);
	if (net->send(to, "hello", 5, &request))
		abort();
	net->test(&request, 0);
	came = accept4(door, NULL, NULL, SOCK_CLOEXEC);
	if (came >= 0)
		put(came, data, size);
	for (int i = 0; i < 4; i++)
		if (!net->test(&request, 0))
			abort(); /* it has been welcomed by nobody who knows the key */
	net->close(to);
	if (came >= 0)
		close(came);
	close(door);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	setenv("NCCL_CONF_FILE", "/nonexistent", 1);
	if (auth_init())
		abort();
	if (!size)
		return 0;
	switch (data[0] % 4) {
	case 0:
		listener_fuzz(data + 1, size - 1);
		break;
	case 1:
		welcome_fuzz(data + 1, size - 1);
		break;
	default:
		frames_fuzz(data + 1, size - 1);
	}
	return 0;
}
