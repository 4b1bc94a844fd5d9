/* weft run's side of PMI: ranks of the library's own client put and get through it, in
 * both versions, and what no client says puts only that client out. */
#include "weft/run_pmi.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "launch/pmi.h"
#include "test.h"

enum { RANKS = 5, ROUNDS = 3, TIMEOUT_MS = 30000 };

struct rank {
	pthread_t thread;
	int fd, number;
	bool is_2;
};

/* Every rank puts a value in each round and gets everybody's. */
static void *rank_main(void *arg)
{
	struct rank *rank = arg;
	struct pmi_args args = {.fd = rank->fd,
		.rank = rank->number,
		.is_2_first = rank->is_2,
		.job = "weft",
		.deadline_ns = clock_ns() + TIMEOUT_MS * CLOCK_MS};
	struct pmi pmi;

	EQ(pmi_open(&pmi, &args), OK);
	EQ(pmi.version, rank->is_2 ? 2 : 1);
	for (int round = 0; round < ROUNDS; round++) {
		char key[32], value[64], wanted[64];

		snprintf(key, sizeof(key), "key-%d-%d", round, rank->number);
		snprintf(value, sizeof(value), "value-%d-%d", round, rank->number);
		EQ(pmi_put(&pmi, key, value), OK);
		EQ(pmi_fence(&pmi), OK);
		for (int i = 0; i < RANKS; i++) {
			snprintf(key, sizeof(key), "key-%d-%d", round, i);
			snprintf(wanted, sizeof(wanted), "value-%d-%d", round, i);
			EQ(pmi_get(&pmi, key, value, sizeof(value)), OK);
			EQ_STR(value, wanted);
		}
	}
	pmi_close(&pmi);
	return NULL;
}

static void client_open(struct run_pmi_client *client, uint32_t rank, int *other)
{
	int ends[2];

	EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	EQ(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
	*client = (struct run_pmi_client){.fd = ends[0], .rank = rank};
	*other = ends[1];
}

static void fence_look(struct run_pmi *pmi, struct run_pmi_client *clients)
{
	for (int i = 0; i < RANKS; i++)
		if (!clients[i].is_in_fence)
			return;
	run_pmi_learn(pmi, pmi->news.data, pmi->news.count);
	pmi->news.count = 0;
	for (int i = 0; i < RANKS; i++)
		run_pmi_release(&clients[i]);
}

static void test_ranks(void)
{
	struct run_pmi pmi = {.rank_count = RANKS};
	struct run_pmi_client clients[RANKS];
	struct rank ranks[RANKS];
	struct pollfd waits[RANKS];
	int left = RANKS;

	for (int i = 0; i < RANKS; i++) {
		ranks[i] = (struct rank){.number = i, .is_2 = i % 2};
		client_open(&clients[i], (uint32_t)i, &ranks[i].fd);
		EQ(pthread_create(&ranks[i].thread, NULL, rank_main, &ranks[i]), 0);
	}
	while (left > 0) {
		left = 0;
		for (int i = 0; i < RANKS; i++) {
			waits[i] = (struct pollfd){.fd = clients[i].fd, .events = POLLIN};
			left += clients[i].fd >= 0;
		}
		if (left)
			TRUE(poll(waits, RANKS, TIMEOUT_MS) > 0);
		for (int i = 0; i < RANKS; i++)
			if (waits[i].fd >= 0 && waits[i].revents)
				run_pmi_hear(&pmi, &clients[i]);
		fence_look(&pmi, clients);
	}
	for (int i = 0; i < RANKS; i++) {
		pthread_join(ranks[i].thread, NULL);
		close(ranks[i].fd);
	}
	run_bytes_fini(&pmi.values);
	run_bytes_fini(&pmi.news);
}

/* Random words of the protocol, and random bytes. */
static void test_hostile(void)
{
	static const char *const words[] = {"cmd=", "init", "put", "get", "barrier_in",
		"finalize", " pmi_version=1", " pmi_version=2", " key=a", " value=b",
		";value=b;", "\n", "     5", "999999", "cmd=kvs-put;", "cmd=fullinit;",
		"get_maxes\n", " kvsname=weft", "cmd=kvs-get;key=a;"};
	enum { WORDS = sizeof(words) / sizeof(words[0]), CLIENTS = 3000 };
	struct run_pmi pmi = {.rank_count = 2};
	static char answers[1 << 16];

	srand(3);
	for (int i = 0; i < CLIENTS; i++) {
		struct run_pmi_client client;
		int other;

		client_open(&client, 0, &other);
		EQ(fcntl(other, F_SETFL, O_NONBLOCK), 0);
		for (int j = rand() % 30; j > 0 && client.fd >= 0; j--) {
			const char *word = words[rand() % WORDS];
			char byte = (char)rand();

			bool is_word = rand() % 9;

			if (write(other, is_word ? word : &byte,
				    is_word ? strlen(word) : 1) < 0)
				break;
			run_pmi_hear(&pmi, &client);
			if (read(other, answers, sizeof(answers)) == 0)
				EQ(client.fd, -1);
		}
		run_pmi_leave(&client);
		close(other);
	}
	run_bytes_fini(&pmi.values);
	run_bytes_fini(&pmi.news);
}

/* A text without an end is not kept for ever. */
static void test_endless(void)
{
	struct run_pmi pmi = {.rank_count = 2};
	struct run_pmi_client client;
	static char bytes[1 << 12];
	int other, turns = 0;

	memset(bytes, 'x', sizeof(bytes));
	client_open(&client, 0, &other);
	while (client.fd >= 0 && turns++ < 100) {
		EQ(write(other, bytes, sizeof(bytes)), (ssize_t)sizeof(bytes));
		run_pmi_hear(&pmi, &client);
	}
	EQ(client.fd, -1);
	close(other);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	test_ranks();
	test_hostile();
	test_endless();
	return 0;
}
