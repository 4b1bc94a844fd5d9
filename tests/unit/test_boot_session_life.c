/*
 * A process leaves, and what it says last is lost with the connection, which is reset.
 * The other one calls again and hears that it left: it is not lost, though its process
 * ends. And time in which a process is held up itself is nobody's silence.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "boot/control.h"
#include "boot/session.h"
#include "test.h"

enum { LEAVES, STAYS, RANKS, ROUNDS = 3, FDS = 256, PAUSE_US = 200 };

/* What both processes see. */
static struct table {
	atomic_uint ready, settled, is_robbed, has_stood, lost;
	struct addr addrs[RANKS];
} * table;

static unsigned char key[AUTH_KEY_BYTES];

enum { ROB = 1, STAND_STILL }; /* what is said */
enum { STILL_US = 1300000, RESUME_US = 300000 };
static pthread_t resumer;

static void until(const atomic_uint *word, uint32_t value)
{
	while (atomic_load(word) < value)
		usleep(PAUSE_US);
}

/* Take all that comes over the connection until the other end says no more, as if it had
 * got lost on the way, and then reset it. */
static void connection_rob(int fd)
{
	struct sockaddr nobody = {.sa_family = AF_UNSPEC};
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	char loot[4096];

	while (poll(&ready, 1, -1) > 0 && recv(fd, loot, sizeof(loot), MSG_DONTWAIT) > 0)
		;
	EQ(connect(fd, &nobody, sizeof(nobody)), 0);
}

static pid_t other; /* the process of LEAVES */

static void *other_resume(void *unused)
{
	usleep(RESUME_US);
	EQ(kill(other, SIGCONT), 0);
	return unused;
}

/* Both stand still for longer than anybody may be silent, and this one goes on first. */
static void stand_still(void)
{
	EQ(kill(other, SIGSTOP), 0);
	usleep(STILL_US);
	EQ(pthread_create(&resumer, NULL, other_resume, NULL), 0);
	atomic_store(&table->has_stood, 1);
}

/* This is the thread that would read what comes. */
static void on_message(
	void *arg, uint32_t from, uint32_t kind, const void *bytes, size_t size)
{
	struct sockaddr_storage peer;

	(void)arg;
	(void)bytes;
	(void)size;
	EQ(from, LEAVES);
	if (kind == STAND_STILL) {
		stand_still();
		return;
	}
	atomic_store(&table->is_robbed, 1);
	for (int fd = 0; fd < FDS; fd++) {
		socklen_t room = sizeof(peer);

		if (!getpeername(fd, (struct sockaddr *)&peer, &room))
			connection_rob(fd);
	}
}

static void on_lost(void *arg, uint32_t rank, const char *why)
{
	(void)arg;
	fprintf(stderr, "rank %u is lost: %s\n", rank, why);
	atomic_fetch_add(&table->lost, 1);
}

static struct control *rank_open(uint32_t rank)
{
	struct control_peer peers[RANKS] = {0};
	struct control_args args = {.rank = rank,
		.rank_count = RANKS,
		.peers = peers,
		.on_message = on_message,
		.on_lost = on_lost};
	struct control *control;

	EQ(control_listen(&table->addrs[rank]), OK);
	atomic_fetch_add(&table->ready, 1);
	until(&table->ready, RANKS);
	for (uint32_t i = 0; i < RANKS; i++)
		peers[i] = (struct control_peer){.host = i, .addr = table->addrs[i]};
	memcpy(args.key, key, sizeof(key));
	EQ(control_open(&args, &control), OK);
	EQ(control_settle(control, clock_ns() + 60 * CLOCK_SEC, NULL), OK);
	atomic_fetch_add(&table->settled, 1);
	until(&table->settled, RANKS);
	return control;
}

static void leave(void)
{
	struct control *control = rank_open(LEAVES);

	EQ(control_send(control, CONTROL_ALL, ROB, "", 0), OK);
	until(&table->is_robbed, 1);
	control_close(control);
	control_unlisten();
	_exit(0);
}

/* A test that fails leaves nobody behind who waits for it. */
static void end_with_parent(void (*main_of_child)(void))
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	main_of_child();
}

static void last_words_are_lost(void)
{
	struct control *control;
	int status;
	pid_t pid;

	memset(table, 0, sizeof(*table));
	auth_random(key, sizeof(key));
	pid = fork();
	TRUE(pid >= 0);
	if (!pid)
		end_with_parent(leave);
	control = rank_open(STAYS);
	EQ(waitpid(pid, &status, 0), pid);
	EQ(status, 0);
	usleep(100000); /* what was taken for a loss is told by now */
	EQ(atomic_load(&table->lost), 0);
	control_close(control);
	control_unlisten();
}

static void be_silent(void)
{
	struct control *control = rank_open(LEAVES);

	EQ(control_send(control, CONTROL_ALL, STAND_STILL, "", 0), OK);
	until(&table->is_robbed, 1);
	control_close(control);
	control_unlisten();
	_exit(0);
}

/* WEFT_SILENCE_SEC is 1. */
static void standstill_is_no_silence(void)
{
	struct control *control;
	int status;

	memset(table, 0, sizeof(*table));
	auth_random(key, sizeof(key));
	other = fork();
	TRUE(other >= 0);
	if (!other)
		end_with_parent(be_silent);
	control = rank_open(STAYS);
	until(&table->has_stood, 1);
	EQ(pthread_join(resumer, NULL), 0);
	usleep(RESUME_US); /* what was taken for a loss is told by now */
	EQ(atomic_load(&table->lost), 0);
	atomic_store(&table->is_robbed, 1);
	EQ(waitpid(other, &status, 0), other);
	EQ(status, 0);
	control_close(control);
	control_unlisten();
}

/* What began while this process was held up did not begin later than now. */
static void nothing_begins_later(void)
{
	struct station nodes[2] = {{.trouble_ns = 100}, {.trouble_ns = 900}};
	struct session session = {.nodes = nodes, .node_count = 2, .since_ns = 950};

	session_forgive(&session, 500, 1000);
	EQ(nodes[0].trouble_ns, 600);
	EQ(nodes[1].trouble_ns, 1000);
	EQ(session.since_ns, 1000);
}

int main(void)
{
	setenv("NCCL_CONF_FILE", "/nonexistent", 1);
	setenv("NCCL_OOB_NET_IFNAME", "=lo", 1);
	setenv("WEFT_SILENCE_SEC", "1", 1);
	EQ(auth_init(), OK);
	table = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	TRUE(table != MAP_FAILED);
	for (int i = 0; i < ROUNDS; i++)
		last_words_are_lost();
	standstill_is_no_silence();
	nothing_begins_later();
	return 0;
}
