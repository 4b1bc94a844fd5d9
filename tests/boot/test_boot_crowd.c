/*
 * Many processes meet, gather twice and leave: `test_boot_crowd [PROCESSES]`. Prints how
 * long it took from the first process to the last, and what it cost.
 *
 * The processes are forked from one that has made the id, so their start costs little;
 * the time is that of the meeting.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "boot/boot.h"
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

static int rank_run(const struct boot_id *id, uint32_t rank, uint32_t count)
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
		e = boot_agree(meeting, OK, true);
	}
	boot_leave(meeting);
	free(records);
	if (e)
		fprintf(stderr, "rank %u: %s\n", rank, err_last());
	return e != OK;
}

int main(int argc, char **argv)
{
	uint32_t count = argc > 1 ? (uint32_t)atoi(argv[1]) : 256;
	struct rusage usage;
	struct boot_id id;
	uint64_t begin;
	double seconds;
	int status, failed = 0;

	setenv("NCCL_CONF_FILE", "/nonexistent", 1);
	EQ(boot_id_create(&id), OK);
	fflush(NULL);
	begin = clock_ns();
	for (uint32_t rank = 0; rank < count; rank++) {
		pid_t pid = fork();

		TRUE(pid >= 0);
		if (!pid)
			_exit(rank_run(&id, rank, count));
	}
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
