/*
 * The same schedule on the host engine and in the simulation gives the same bytes: every
 * shipped one, threads as ranks, random bits, in place and not, with peers' buffers in
 * reach (direct) and out of reach (staged).
 *
 * WEFT_SCHEDULE chooses the host's schedule; param_forget() makes it look again, and a
 * new communicator has no plans yet.
 */
#include <pthread.h>

#include "base/param.h"
#include "comm/comm.h"
#include "exec/sim/sim.h"
#include "reference.h"

enum { RANKS_MAX = 6, CALLS = 10, TILE = 192 };

/* One call of all ranks, once for each engine. */
struct call {
	struct reference what;
	enum redop op;
	bool in_place;
	char *memory[2][RANKS_MAX], *in[2][RANKS_MAX], *out[2][RANKS_MAX];
};

enum { HOST, SIM };

struct session {
	const struct sched_kind *kind;
	uint32_t rank_count;
	struct boot_id id;
	struct call calls[CALLS];
};

struct rank_task {
	const struct session *session;
	uint32_t rank;
	pthread_t thread;
};

static unsigned char random_byte(void)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned char)(state >> 56);
}

/* IN and OUT in one piece of memory; the same random bytes for both engines. */
static void call_init(struct call *call)
{
	const struct reference *what = &call->what;
	size_t half = what->rank_count * what->count * dtype_size(what->type);

	for (uint32_t rank = 0; rank < what->rank_count; rank++) {
		for (int engine = HOST; engine <= SIM; engine++) {
			char *memory = malloc(2 * half);

			TRUE(memory);
			call->memory[engine][rank] = memory;
			call->in[engine][rank] = memory;
			call->out[engine][rank] = memory + half;
			if (call->in_place)
				reference_in_place(what, rank, memory,
					&call->in[engine][rank],
					&call->out[engine][rank]);
		}
		for (size_t i = 0; i < 2 * half; i++)
			call->memory[HOST][rank][i] = (char)random_byte();
		memcpy(call->memory[SIM][rank], call->memory[HOST][rank], 2 * half);
	}
}

static void session_init(
	struct session *session, const struct sched_kind *kind, uint32_t rank_count)
{
	static const enum dtype types[] = {
		DTYPE_FLOAT32, DTYPE_BFLOAT16, DTYPE_INT32, DTYPE_FLOAT64, DTYPE_INT8};
	static const enum redop ops[] = {REDOP_SUM, REDOP_AVG, REDOP_PROD, REDOP_AVG};

	*session = (struct session){.kind = kind, .rank_count = rank_count};
	for (uint32_t i = 0; i < CALLS; i++) {
		session->calls[i].what = (struct reference){.coll = kind->coll,
			.type = types[i % 5],
			.rank_count = rank_count,
			.root = coll_has_root(kind->coll) ? i % rank_count : 0,
			.count = i < 8 ? 501 : 3};
		session->calls[i].op = ops[i % 4];
		session->calls[i].in_place = i & 1 && kind->coll != COLL_ALL_TO_ALL;
		call_init(&session->calls[i]);
	}
}

static void *rank_main(void *arg)
{
	const struct rank_task *task = arg;
	const struct session *session = task->session;
	struct comm_init_args init = {.ids = &session->id,
		.id_count = 1,
		.rank_count = session->rank_count,
		.rank = task->rank,
		.caller = "test_engines"};
	struct comm_config config;
	struct comm *comm;

	comm_config_default(&config);
	EQ(comm_alloc(&config, &comm), OK);
	EQ(comm_init(comm, &init), OK);
	for (uint32_t i = 0; i < CALLS; i++) {
		const struct call *call = &session->calls[i];

		EQ(comm_submit(&(struct comm_call){.comm = comm,
				       .kind = CALL_COLL,
				       .coll = call->what.coll,
				       .in = call->in[HOST][task->rank],
				       .out = call->out[HOST][task->rank],
				       .count = call->what.count,
				       .type = call->what.type,
				       .op = {.op = call->op},
				       .root = call->what.root},
			   1),
			OK);
	}
	EQ(comm_destroy(comm), OK);
	return NULL;
}

static void run_host(struct session *session)
{
	struct rank_task tasks[RANKS_MAX];

	EQ(boot_id_create(&session->id), OK);
	for (uint32_t i = 0; i < session->rank_count; i++) {
		tasks[i] = (struct rank_task){.session = session, .rank = i};
		EQ(pthread_create(&tasks[i].thread, NULL, rank_main, &tasks[i]), 0);
	}
	for (uint32_t i = 0; i < session->rank_count; i++)
		EQ(pthread_join(tasks[i].thread, NULL), 0);
}

static void run_sim(const struct session *session)
{
	for (uint32_t i = 0; i < CALLS; i++) {
		const struct call *call = &session->calls[i];
		struct sim_args args = {.kind = session->kind,
			.rank_count = session->rank_count,
			.key = {.coll = call->what.coll,
				.type = call->what.type,
				.root = call->what.root,
				.count = call->what.count},
			.op = call->op,
			.tile_bytes = TILE,
			.link = {.latency_ns = 1000, .bytes_per_ns = 1}};
		struct sim_report report;

		EQ(sim_run(&args, (const void *const *)call->in[SIM],
			   (void *const *)call->out[SIM], &report),
			OK);
		sim_report_fini(&report);
	}
}

static void compare(const struct session *session, const char *mode)
{
	for (uint32_t i = 0; i < CALLS; i++)
		for (uint32_t rank = 0; rank < session->rank_count; rank++) {
			const struct call *call = &session->calls[i];
			size_t bytes = reference_bytes(&call->what, rank, SPACE_OUT);

			if (memcmp(call->out[HOST][rank], call->out[SIM][rank], bytes)) {
				fprintf(stderr,
					"%s %s, %s, rank %u of %u, call %u: the host and "
					"the simulation differ\n",
					coll_name(session->kind->coll),
					session->kind->name, mode, rank,
					session->rank_count, i);
				exit(1);
			}
			free(call->memory[HOST][rank]);
			free(call->memory[SIM][rank]);
		}
}

static void compare_engines(
	const struct sched_kind *kind, uint32_t rank_count, bool zero_copy)
{
	struct session session;

	setenv("WEFT_SCHEDULE", kind->name, 1);
	setenv("WEFT_ZERO_COPY", zero_copy ? "1" : "0", 1);
	param_forget(PARAM_SCHEDULE);
	param_forget(PARAM_ZERO_COPY);
	session_init(&session, kind, rank_count);
	run_host(&session);
	run_sim(&session);
	compare(&session, zero_copy ? "direct" : "staged");
}

int main(void)
{
	static const uint32_t rank_counts[] = {1, 2, 3, 4, RANKS_MAX};
	const struct sched_kind *kind;

	setenv("WEFT_TILE", "192", 1);
	for (uint32_t i = 0; (kind = catalog_plain_at(i)); i++)
		for (uint32_t n = 0; n < 5; n++) {
			compare_engines(kind, rank_counts[n], true);
			compare_engines(kind, rank_counts[n], false);
		}
	return 0;
}
