/*
 * A job on several hosts goes on whatever strangers do at its ports: where ranks meet,
 * where processes keep in touch, where data comes. They knock and go, talk nonsense, say
 * again what ranks have said, say half of it, or stay and say nothing.
 *
 * The argument is how many connections they make.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "detour.h"
#include "free_port.h"
#include "ranks.h"
#include "relay.h"

enum {
	PROCESSES = 4,
	COUNT = 20000, /* elements */
	CALLS = 8,
	HELD = 300, /* connections that stay */
	PAUSE_EVERY = 16,
	PAUSE_US = 2000,
	TRIES = 20, /* for each connection: listeners come and go */
	WORD_ENOUGH = 0
};

/* ---- the job ---- */

static void calls_check(ncclComm_t comm, int *data)
{
	int n, rank;

	OK(ncclCommCount(comm, &n));
	OK(ncclCommUserRank(comm, &rank));
	for (int call = 0; call < CALLS; call++) {
		for (int i = 0; i < COUNT; i++)
			data[i] = rank + i + call;
		OK(ncclAllReduce(data, data, COUNT, ncclInt, ncclSum, comm, NULL));
		for (int i = 0; i < COUNT; i++)
			HOLDS(data[i] == n * (n - 1) / 2 + n * (i + call));
	}
}

/* Again and again, from the meeting to the end, until there have been strangers enough.
 */
static void job_main(struct rank *rank)
{
	int *data = malloc(COUNT * sizeof(*data)), enough = 0;

	detour_join(rank->argument, rank->process);
	for (int turn = 0; !enough && turn < RANKS_IDS; turn++) {
		ncclComm_t comm = rank_comm(rank, turn), child;

		calls_check(comm, data);
		OK(ncclCommSplit(comm, rank->rank % 2, 0, &child, NULL));
		calls_check(child, data);
		OK(ncclCommDestroy(child));
		enough = (int)atomic_load(&rank->page->words[WORD_ENOUGH]);
		OK(ncclBroadcast(&enough, &enough, 1, ncclInt, 0, comm, NULL));
		OK(ncclCommDestroy(comm));
		rank_raise(rank, (uint64_t)turn + 1);
	}
	free(data);
}

/* ---- strangers ---- */

static uint64_t state = 1;
static uint32_t opened; /* connections so far */

static uint32_t draw(uint32_t below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % below;
}

/* One of the ports that the job has listened at lately, in network order; 0: none yet. */
static uint16_t port_pick(const struct relay *relay)
{
	uint32_t made = atomic_load(&relay->page->listen_count);

	return made ? atomic_load(&relay->page->listens[draw(
			      made < RELAY_LISTENS ? made : RELAY_LISTENS)])
		    : 0;
}

/* Listeners come and go: -1 is nobody there. */
static int knock(uint16_t port)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
		.sin_port = port,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	TRUE(fd >= 0);
	if (connect(fd, (const struct sockaddr *)&at, sizeof(at))) {
		close(fd);
		return -1;
	}
	fcntl(fd, F_SETFL, O_NONBLOCK);
	opened++;
	return fd;
}

static void noise_say(int fd, const char *first, size_t bytes)
{
	char noise[4096];

	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = (char)draw(256);
	memcpy(noise, first, bytes);
	send(fd, noise, bytes + draw((uint32_t)(sizeof(noise) - bytes)), MSG_NOSIGNAL);
}

/* What a rank has said, to whom it said it or to anybody; all, half or a little else. */
static int tape_say(const struct relay *relay)
{
	const struct relay_page *page = relay->page;
	uint32_t made = atomic_load(&page->tape_count);
	struct relay_tape tape;
	int fd;

	if (!made)
		return -1;
	tape = page->tapes[draw(made < RELAY_TAPES ? made : RELAY_TAPES)];
	fd = knock(draw(4) ? tape.port : port_pick(relay));
	if (fd < 0)
		return -1;
	if (!draw(3))
		tape.bytes = 1 + draw(tape.bytes);
	if (!draw(3))
		tape.said[draw(tape.bytes)] ^= (char)(1 << draw(8));
	send(fd, tape.said, tape.bytes, MSG_NOSIGNAL);
	return fd;
}

static int stranger_come(const struct relay *relay)
{
	static const char *const magics[] = {
		"WEFTNET1", "WEFTCT03", "WEFTBT05", "GET / "};
	uint32_t what = draw(8);
	uint16_t port = port_pick(relay);
	int fd;

	if (!port)
		return -1;
	if (what >= 5)
		return tape_say(relay);
	fd = knock(port);
	if (fd < 0)
		return -1;
	if (what == 1)
		noise_say(fd, "", 0);
	else if (what == 2)
		noise_say(fd, magics[draw(4)], 6);
	else if (what == 3) /* it will say the next byte when it is in the mood */
		send(fd, "W", 1, MSG_NOSIGNAL);
	if (what == 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static void strangers_come(const struct relay *relay, struct ranks *ranks, uint32_t count)
{
	int held[HELD];
	uint32_t at = 0;

	memset(held, -1, sizeof(held));
	for (uint32_t i = 0; opened < count && i < TRIES * count; i++) {
		int fd = stranger_come(relay), slow = held[draw(HELD)];

		if (slow >= 0)
			send(slow, "E", 1, MSG_NOSIGNAL);
		if (!(i % PAUSE_EVERY))
			usleep(PAUSE_US);
		if (fd < 0)
			continue;
		if (held[at] >= 0)
			close(held[at]);
		held[at] = fd;
		at = (at + 1) % HELD;
	}
	atomic_store(&ranks->page->words[WORD_ENOUGH], 1);
	/* who stayed stays on while the ranks leave */
}

int main(int argc, char **argv)
{
	uint32_t count = argc > 1 ? (uint32_t)atoi(argv[1]) : 1000;
	char place[32];
	const char *const environment[] = {"NCCL_COMM_ID", place, "WEFT_SECRET", "hush",
		"WEFT_PORCH_RANKS", "4", NULL};
	struct relay_plan plan = {.host_of = {0, 0, 1, 1}};
	struct relay relay;
	struct ranks ranks = {.processes = PROCESSES,
		.threads = 1,
		.function = job_main,
		.argument = &relay,
		.environment = environment,
		.limit_s = 300};
	uint64_t begin = now_us();

	snprintf(place, sizeof(place), "127.0.0.1:%d", port_find(AF_INET));
	setenv("WEFT_TEST_HOSTS", "2", 1);
	relay_start(&relay, &plan);
	ranks_start(&ranks);
	strangers_come(&relay, &ranks, count);
	ranks_wait(&ranks, 0);
	printf("%lu communicators came and went among %u strangers in %.1f s, by %u "
	       "connections\n",
		(unsigned long)ranks.result, opened, (double)(now_us() - begin) * 1e-6,
		atomic_load(&relay.page->connections));
	TRUE(opened >= count && ranks.result > 0);
	relay_stop(&relay);
	return 0;
}
