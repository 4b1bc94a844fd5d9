/*
 * trace_life.c - which functions one all_reduce enters, for scripts/trace-life.
 *
 * The library that it is linked with is built with -finstrument-functions, and so calls
 * the two hooks below at the beginning and the end of every function. They note what is
 * entered between two marks: by the thread of each rank while it is in the call, and by
 * the other threads of its process until the result is there.
 *
 * usage: trace_life host|device PxT BYTES CALLS
 * Traces the call after so many.
 * Prints `rank R thread T depth D OBJECT OFFSET` for each function entered; thread 0 is
 * the one that calls.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu.h"
#include "ranks.h"

enum { NOTES_MAX = 1 << 17, OTHERS_MAX = 16 };

#define UNTRACED __attribute__((no_instrument_function))
#define HOOK	 UNTRACED __attribute__((visibility("default")))

struct notes {
	int count, depth;
	struct {
		void *function;
		int depth;
	} notes[NOTES_MAX];
};

/* What a rank's thread notes in its call; and what threads note that are no rank's. */
static _Thread_local struct notes *own;
static _Thread_local struct notes *as_other;
static _Thread_local bool is_rank;
static struct notes others[OTHERS_MAX];
static _Atomic int others_count;
static _Atomic bool is_traced;

struct job {
	bool is_device;
	size_t bytes;
	int calls; /* before the one that is traced */
};

UNTRACED static struct notes *notes_here(void)
{
	if (is_rank || !is_traced)
		return own;
	if (!as_other) {
		int i = others_count++;

		as_other = i < OTHERS_MAX ? &others[i] : NULL;
	}
	return as_other;
}

HOOK void __cyg_profile_func_enter(void *function, void *site);
HOOK void __cyg_profile_func_exit(void *function, void *site);

void __cyg_profile_func_enter(void *function, void *site)
{
	struct notes *notes = notes_here();

	(void)site;
	if (!notes)
		return;
	if (notes->count < NOTES_MAX) {
		notes->notes[notes->count].function = function;
		notes->notes[notes->count++].depth = notes->depth;
	}
	notes->depth++;
}

void __cyg_profile_func_exit(void *function, void *site)
{
	struct notes *notes = notes_here();

	(void)function;
	(void)site;
	if (notes)
		notes->depth--;
}

static void print(int rank, int thread, const struct notes *notes)
{
	for (int i = 0; i < notes->count; i++) {
		Dl_info info;

		if (dladdr(notes->notes[i].function, &info))
			printf("rank %d thread %d depth %d %s %#zx\n", rank, thread,
				notes->notes[i].depth, info.dli_fname,
				(size_t)((char *)notes->notes[i].function -
					 (char *)info.dli_fbase));
	}
	if (notes->count == NOTES_MAX)
		fprintf(stderr, "trace_life: only the first %d functions were noted\n",
			NOTES_MAX);
}

/* One after the other, so that their lines do not mix. */
static void print_all(struct rank *rank, const struct notes *notes)
{
	for (int i = 0; i < rank->rank_count; i++) {
		rank_meet(rank);
		if (i != rank->rank)
			continue;
		print(i, 0, notes);
		for (int j = 0; !rank->thread && j < others_count && j < OTHERS_MAX; j++)
			print(i, j + 1, &others[j]);
		fflush(stdout);
	}
	rank_meet(rank);
}

static void run(struct rank *rank)
{
	const struct job *job = rank->argument;
	ncclComm_t comm;
	cu_stream stream = NULL;
	struct notes *notes = calloc(1, sizeof(*notes));
	void *buffer = NULL;

	is_rank = true;
	HOLDS(notes);
	if (job->is_device) {
		gpu_begin();
		stream = gpu_stream();
	}
	comm = rank_comm(rank, 0);
	if (job->is_device)
		buffer = gpu_alloc(job->bytes);
	else
		OK(ncclMemAlloc(&buffer, job->bytes));
	for (int i = 0; i <= job->calls; i++) {
		if (job->is_device)
			gpu_wait(stream);
		rank_meet(rank);
		is_traced = i == job->calls;
		own = is_traced ? notes : NULL;
		OK(ncclAllReduce(buffer, buffer, job->bytes / 4, ncclFloat, ncclSum, comm,
			(cudaStream_t)stream));
		own = NULL;
	}
	if (job->is_device)
		gpu_wait(stream);
	rank_meet(rank);
	is_traced = false;
	print_all(rank, notes);
	if (job->is_device)
		gpu_free(buffer);
	else
		OK(ncclMemFree(buffer));
	OK(ncclCommDestroy(comm));
	free(notes);
}

int main(int argc, char **argv)
{
	struct job job;
	struct ranks ranks = {.function = run, .argument = &job};

	if (argc != 5 ||
		sscanf(argv[2], "%dx%d", &ranks.processes, &ranks.threads) != 2) {
		fprintf(stderr, "usage: trace_life host|device PxT BYTES CALLS\n");
		return 2;
	}
	job.is_device = !strcmp(argv[1], "device");
	job.bytes = strtoul(argv[3], NULL, 0);
	job.calls = atoi(argv[4]);
	if (job.is_device)
		gpu_need();
	ranks_run(&ranks);
	return 0;
}
