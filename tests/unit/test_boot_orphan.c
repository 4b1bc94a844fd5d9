/*
 * A process dies, those next to us give up because of it and leave, and others, of whose
 * end nobody is left to tell us, end. When we hear that they are lost, we hear because of
 * whom.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "boot/control.h"
#include "test.h"

/* Of eight on a circle the last has no strand to these two. */
enum { LEFT_OUT = 2, LEFT_OUT_TOO = 4, DIES = 6, STAYS = 7, RANKS, PAUSE_US = 500 };

static struct table {
	atomic_uint ready, settled, leave, lost[RANKS];
	struct addr addrs[RANKS];
	char why[RANKS][128]; /* by the one that stays */
} * table;

static unsigned char key[AUTH_KEY_BYTES];

static void until(const atomic_uint *word, uint32_t value)
{
	while (atomic_load(word) < value)
		usleep(PAUSE_US);
}

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
	if (*(uint32_t *)arg != STAYS)
		return;
	snprintf(table->why[rank], sizeof(table->why[rank]), "%s", why);
	atomic_fetch_add(&table->lost[rank], 1);
}

static void rank_run(uint32_t rank)
{
	struct control_peer peers[RANKS] = {0};
	struct control_args args = {.rank = rank,
		.rank_count = RANKS,
		.peers = peers,
		.arg = &rank,
		.on_message = on_message,
		.on_lost = on_lost};
	struct control *control;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	EQ(control_listen(&table->addrs[rank]), OK);
	atomic_fetch_add(&table->ready, 1);
	until(&table->ready, RANKS);
	for (uint32_t i = 0; i < RANKS; i++)
		peers[i] = (struct control_peer){.host = i, .addr = table->addrs[i]};
	memcpy(args.key, key, sizeof(key));
	EQ(control_open(&args, &control), OK);
	EQ(control_settle(control, clock_ns() + 60 * CLOCK_SEC, NULL), OK);
	atomic_fetch_add(&table->settled, 1);
	if (rank == STAYS || rank == LEFT_OUT || rank == LEFT_OUT_TOO)
		until(&table->leave, 2);
	until(&table->leave, 1);
	control_close(control);
	control_unlisten();
	_exit(0);
}

int main(void)
{
	pid_t pids[RANKS];

	setenv("NCCL_CONF_FILE", "/nonexistent", 1);
	setenv("NCCL_OOB_NET_IFNAME", "=lo", 1);
	setenv("WEFT_SILENCE_SEC", "2", 1);
	EQ(auth_init(), OK);
	auth_random(key, sizeof(key));
	table = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	TRUE(table != MAP_FAILED);
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		pids[rank] = fork();
		TRUE(pids[rank] >= 0);
		if (!pids[rank])
			rank_run(rank);
	}
	until(&table->settled, RANKS);
	EQ(kill(pids[DIES], SIGKILL), 0);
	until(&table->lost[DIES], 1);
	EQ_STR(table->why[DIES], "its process has ended");
	EQ(kill(pids[STAYS], SIGSTOP), 0); /* it knows nothing of the rest */
	atomic_store(&table->leave, 1);
	for (uint32_t rank = 0; rank < DIES; rank++)
		if (rank != LEFT_OUT && rank != LEFT_OUT_TOO)
			EQ(waitpid(pids[rank], NULL, 0), pids[rank]);
	EQ(kill(pids[LEFT_OUT], SIGKILL), 0);
	EQ(kill(pids[LEFT_OUT_TOO], SIGKILL), 0);
	EQ(waitpid(pids[LEFT_OUT], NULL, 0), pids[LEFT_OUT]);
	EQ(waitpid(pids[LEFT_OUT_TOO], NULL, 0), pids[LEFT_OUT_TOO]);
	EQ(kill(pids[STAYS], SIGCONT), 0);
	until(&table->lost[LEFT_OUT], 1);
	until(&table->lost[LEFT_OUT_TOO], 1);
	EQ_STR(table->why[LEFT_OUT], "its process has ended, after rank 6 was lost");
	EQ_STR(table->why[LEFT_OUT_TOO], "its process has ended, after rank 6 was lost");
	atomic_store(&table->leave, 2);
	EQ(waitpid(pids[STAYS], NULL, 0), pids[STAYS]);
	return 0;
}
