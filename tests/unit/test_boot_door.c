/* The door of the control channel when it is full of strangers: who has named a session
 * that is here, which they cannot, keeps its place. */
#include <arpa/inet.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "boot/control.h"
#include "boot/strand.h"
#include "test.h"

enum { STRANGERS = 400, PATIENCE_MS = 60000, TRIES = 20 };

static unsigned char key[AUTH_KEY_BYTES] = {1, 2, 3};

static void on_message(
	void *arg, uint32_t from, uint32_t kind, const void *bytes, size_t size)
{
	(void)arg;
	(void)from;
	(void)kind;
	(void)bytes;
	(void)size;
}

static void on_lost(void *arg, uint32_t rank, const char *why)
{
	(void)arg;
	(void)rank;
	(void)why;
}

/* Rank 0 of two; the other takes calls and says nothing. */
static struct control *session_open(const struct addr *here, const struct addr *there)
{
	const struct control_peer peers[] = {
		{.host = 1, .addr = *here}, {.host = 2, .addr = *there}};
	struct control_args args = {.rank_count = 2,
		.peers = peers,
		.on_message = on_message,
		.on_lost = on_lost};
	struct control *control = NULL;

	memcpy(args.key, key, sizeof(args.key));
	EQ(control_open(&args, &control), OK);
	return control;
}

static int door_knock(const struct addr *addr)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = addr->port};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(&at.sin_addr, addr->bytes, 4);
	TRUE(fd >= 0);
	EQ(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

/* A caller as far as its claim, which is late. */
static int session_ask(const struct addr *addr)
{
	struct strand_hello hello = {.magic = "WEFTCT03"};
	struct strand_challenge challenge;
	unsigned char tag[AUTH_TAG_BYTES];
	int fd = door_knock(addr);

	auth_tag(key, "control session", "", 0, tag);
	memcpy(hello.session, tag, sizeof(hello.session));
	auth_random(hello.nonce, sizeof(hello.nonce));
	EQ(send(fd, &hello, sizeof(hello), MSG_NOSIGNAL), (ssize_t)sizeof(hello));
	EQ(recv(fd, &challenge, sizeof(challenge), MSG_WAITALL),
		(ssize_t)sizeof(challenge));
	return fd;
}

static bool is_hung_up(int fd, int patience_ms)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

	return poll(&poll_fd, 1, patience_ms) == 1;
}

/* Not all of them come in at once: the first are put out for the next. Whoever is
 * answered after that finds that swept which was to be. False, too, when this machine is
 * so slow that the caller's own time is over. */
static bool caller_keeps_its_place(const struct addr *addr)
{
	int caller = session_ask(addr), strangers[STRANGERS];
	bool is_kept;

	for (int i = 0; i < STRANGERS; i++)
		strangers[i] = door_knock(addr);
	TRUE(is_hung_up(strangers[0], PATIENCE_MS));
	close(session_ask(addr));
	is_kept = !is_hung_up(caller, 0);
	for (int i = 0; i < STRANGERS; i++)
		close(strangers[i]);
	close(caller);
	return is_kept;
}

int main(void)
{
	struct addr here, loopback, there;
	struct control *control;
	bool is_kept = false;
	int listener;

	EQ(control_listen(&here), OK);
	EQ(addr_parse("127.0.0.1:1", &loopback), OK);
	loopback.port = 0;
	EQ(addr_listen(&loopback, &listener, &there), OK);
	control = session_open(&here, &there);
	for (int i = 0; i < TRIES && !is_kept; i++)
		is_kept = caller_keeps_its_place(&here);
	TRUE(is_kept);
	control_hurry(control);
	control_close(control);
	control_unlisten();
	close(listener);
	return 0;
}
