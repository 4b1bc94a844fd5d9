/*
 * Many processes meet, gather and leave: `test_boot_crowd [PROCESSES [PER HOST]]`. With
 * PER HOST they believe to be on as many hosts and open the control channel, too. Prints
 * how long it took from the first process to the last, and what it cost.
 *
 * The processes are forked from one, so their start costs little; the time is that of the
 * meeting. The id is made when all are there, since a thread comes with it: who is forked
 * while a thread holds a lock may find it held for ever.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "boot/boot.h"
#include "boot/control.h"
#include "test.h"

enum { RECORD = 400, GATHER = 256 };

static void record_fill(unsigned char *record, uint32_t bytes, uint32_t rank)
{
	for (uint32_t i = 0; i < bytes; i++)
		record[i] = (unsigned char)(rank * 31 + i * 7 + (rank >> 8));
}

static void records_check(const unsigned char *records, uint32_t bytes, uint32_t count)
{
	unsigned char expected[RECORD];

	for (uint32_t rank = 0; rank < count; rank++) {
		record_fill(expected, bytes, rank);
		EQ(memcmp(records + (size_t)rank * bytes, expected, bytes), 0);
	}
}

static atomic_uint messages;

static void on_message(
	void *arg, uint32_t from, uint32_t kind, const void *bytes, size_t size)
{
	(void)arg;
	(void)bytes;
	EQ(from + kind + size, 0);
	atomic_fetch_add(&messages, 1);
}

static void on_lost(void *arg, uint32_t rank, const char *why)
{
	(void)arg;
	fprintf(stderr, "rank %u is lost: %s\n", rank, why);
	_exit(1);
}

/* Open it, hear one message of rank 0, close it. */
static enum err keep_in_touch(
	struct meeting *meeting, uint32_t rank, uint32_t count, uint32_t per_host)
{
	struct control_peer mine = {.host = rank / per_host};
	struct control_peer *peers = calloc(count, sizeof(*peers));
	struct control_args args = {.rank = rank,
		.rank_count = count,
		.peers = peers,
		.on_message = on_message,
		.on_lost = on_lost};
	struct control *control = NULL;
	enum err e = control_listen(&mine.addr);

	e = boot_gather(meeting, e, &mine, sizeof(mine), peers);
	boot_key(meeting, "control", args.key);
	if (!e)
		e = control_open(&args, &control);
	if (!e)
		e = control_settle(control, clock_ns() + 60 * CLOCK_SEC, NULL);
	e = boot_agree(meeting, e, false);
	if (!e && rank == 0)
		e = control_send(control, CONTROL_ALL, 0, NULL, 0);
	while (!e && rank && !atomic_load(&messages))
		usleep(1000 + 100 * count); /* a thousand that look are a load */
	e = boot_agree(meeting, e, false);  /* else who leaves takes the message along */
	control_close(control);
	control_unlisten();
	free(peers);
	return e;
}

static int rank_run(
	const struct boot_id *id, uint32_t rank, uint32_t count, uint32_t per_host)
{
	unsigned char mine[RECORD], *records = malloc((size_t)count * RECORD);
	struct boot_args args = {.ids = id,
		.id_count = 1,
		.rank = rank,
		.rank_count = count,
		.record = mine,
		.record_bytes = RECORD};
	struct meeting *meeting = NULL;
	enum err e;

	TRUE(records);
	record_fill(mine, RECORD, rank);
	e = boot_meet(&args, records, &meeting);
	if (!e) {
		records_check(records, RECORD, count);
		e = boot_gather(meeting, OK, mine, GATHER, records);
	}
	if (!e) {
		records_check(records, GATHER, count);
		if (per_host)
			e = keep_in_touch(meeting, rank, count, per_host);
	}
	if (!e)
		e = boot_agree(meeting, OK, true);
	boot_leave(meeting);
	free(records);
	if (e)
		fprintf(stderr, "rank %u: %s\n", rank, err_last());
	return e != OK;
}

/* Forked, and waiting until nobody holds the other end of the gate any more. */
static void crowd_fork(
	const struct boot_id *id, uint32_t count, uint32_t per_host, const int gate[2])
{
	char byte;

	for (uint32_t rank = 0; rank < count; rank++) {
		pid_t pid = fork();

		TRUE(pid >= 0);
		if (pid)
			continue;
		close(gate[1]);
		EQ(read(gate[0], &byte, 1), 0);
		close(gate[0]);
		_exit(rank_run(id, rank, count, per_host));
	}
}

int main(int argc, char **argv)
{
	uint32_t count = argc > 1 ? (uint32_t)atoi(argv[1]) : 256;
	uint32_t per_host = argc > 2 ? (uint32_t)atoi(argv[2]) : 0;
	struct boot_id *id = mmap(NULL, sizeof(*id), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct rusage usage;
	uint64_t begin;
	double seconds;
	int status, failed = 0, gate[2];

	setenv("NCCL_CONF_FILE", "/nonexistent", 1);
	TRUE(id != MAP_FAILED && !pipe(gate));
	fflush(NULL);
	begin = clock_ns();
	crowd_fork(id, count, per_host, gate);
	EQ(boot_id_create(id), OK);
	close(gate[1]);
	for (uint32_t rank = 0; rank < count; rank++) {
		TRUE(wait(&status) > 0);
		failed += status != 0;
	}
	seconds = (double)(clock_ns() - begin) / 1e9;
	getrusage(RUSAGE_CHILDREN, &usage);
	printf("%u processes met, gathered and left in %.3f s; %.3f s of processor "
	       "time\n",
		count, seconds,
		(double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6 +
			(double)usage.ru_stime.tv_sec +
			(double)usage.ru_stime.tv_usec / 1e6);
	EQ(failed, 0);
	return 0;
}
