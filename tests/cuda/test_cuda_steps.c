/*
 * The staged kernels on a GPU: all ranks in one process, what comes out is exact.
 *
 *   test_cuda_steps           all tests
 *   test_cuda_steps --few     some of them, for tools that watch every access
 *   test_cuda_steps N         those with N ranks
 *   test_cuda_steps --one     one call with each codec, for still slower ones
 *   test_cuda_steps --bench   times of a ring instead (steps_bench.c)
 */
#include <unistd.h>

#include "exec/host/kernel.h"
#include "steps_bench.h"
#include "steps_world.h"
#include "test.h"
#include "value.h"

enum {
	ROOM = 40 << 20,   /* of each buffer of a rank */
	LIMIT = 8 << 20,   /* bytes that a call may have in one */
	GUARD = 64,	   /* bytes behind OUT that stay as they are */
	STAGE = 128 << 10, /* of a channel */
	POISON = 0xa5
};

/* One period of every input and of the result, over and over. */
static unsigned char *inputs[WORLD_RANKS], *reduced;
static unsigned char *seen;
static cu_ptr ins[WORLD_RANKS], outs[WORLD_RANKS];
static uint32_t random_state = 7, case_count;
static bool is_few;

static uint32_t random_next(uint32_t below)
{
	random_state = random_state * 1664525 + 1013904223;
	return (random_state >> 8) % below;
}

/* ---- data ---- */

static void buffers_make(void)
{
	for (uint32_t r = 0; r < WORLD_RANKS; r++) {
		inputs[r] = malloc(ROOM);
		CUDA(driver->mem_alloc(&ins[r], ROOM));
		CUDA(driver->mem_alloc(&outs[r], ROOM));
		TRUE(inputs[r]);
	}
	reduced = malloc(ROOM);
	seen = malloc(ROOM);
	TRUE(reduced && seen);
}

static void repeat(unsigned char *data, size_t period, size_t bytes)
{
	for (size_t at = period; at < bytes; at += period)
		memcpy(data + at, data, at + period <= bytes ? period : bytes - at);
}

/* As much of the patterns as a call of these can need. */
static void patterns_make(const struct world_call *call, uint32_t n)
{
	static ncclDataType_t type = ncclNumTypes;
	static int op = -1;
	static uint32_t ranks;
	static size_t bytes;
	size_t period = PERIOD * type_size(call->type);
	size_t wanted = 2 * n * call->count * type_size(call->type) + period;

	wanted = wanted < ROOM ? wanted : ROOM;
	if (type == call->type && op == call->op && ranks == n && bytes >= wanted)
		return;
	for (uint32_t r = 0; r < n; r++) {
		value_input(call->type, call->op, (int)r, (int)n, inputs[r]);
		repeat(inputs[r], period, wanted);
	}
	value_reduced(call->type, call->op, (int)n, reduced);
	repeat(reduced, period, wanted);
	type = call->type;
	op = call->op;
	ranks = n;
	bytes = wanted;
}

static size_t buffer_bytes(
	const struct world_call *call, uint32_t n, uint32_t rank, bool is_out)
{
	struct sched view = {.coll = call->kind->coll,
		.rank_count = n,
		.rank = rank,
		.root = call->root,
		.chunk_count = 1};

	return sched_chunks(&view, is_out ? SPACE_OUT : SPACE_IN) * call->count *
	       type_size(call->type);
}

/* Where IN is in OUT, or OUT in IN, when a call is in place; sched.h has the table. */
static size_t in_place_offset(const struct world_call *call, uint32_t rank)
{
	size_t block = call->count * type_size(call->type);
	enum coll coll = call->kind->coll;

	return coll == COLL_ALL_GATHER || coll == COLL_REDUCE_SCATTER ? rank * block : 0;
}

static bool can_be_in_place(const struct world_call *call)
{
	enum coll coll = call->kind->coll;

	return coll_is_vector(coll) || coll == COLL_ALL_GATHER ||
	       coll == COLL_REDUCE_SCATTER;
}

/* The buffers of all ranks, shifted. */
static void buffers_fill(
	struct world_call *call, uint32_t n, bool is_in_place, const uint32_t shifts[2])
{
	for (uint32_t r = 0; r < n; r++) {
		size_t in = buffer_bytes(call, n, r, false);
		size_t out = buffer_bytes(call, n, r, true);
		struct dev_post *post = &call->posts[r];

		post->in = ins[r] + shifts[0];
		post->out = outs[r] + shifts[1];
		if (is_in_place && in <= out)
			post->in = post->out + in_place_offset(call, r);
		else if (is_in_place)
			post->out = post->in + in_place_offset(call, r);
		CUDA(driver->memset_d8(post->out, POISON, out + GUARD));
		if (in)
			CUDA(driver->memcpy_to_device(post->in, inputs[r], in));
	}
	CUDA(driver->context_synchronize());
}

/* Bytes of OUT from `at` on must be those. */
static void expect(const struct world_call *call, uint32_t rank, size_t at,
	const unsigned char *wanted, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		if (seen[at + i] == wanted[i])
			continue;
		world_call_print(call);
		fprintf(stderr, "case %u: rank %u byte %zu is %02x and not %02x\n",
			case_count, rank, at + i, seen[at + i], wanted[i]);
		exit(1);
	}
}

static void rank_check(const struct world_call *call, uint32_t n, uint32_t r)
{
	size_t block = call->count * type_size(call->type);
	size_t out = buffer_bytes(call, n, r, true);

	switch (call->kind->coll) {
	case COLL_BROADCAST:
		expect(call, r, 0, inputs[call->root], out);
		break;
	case COLL_ALL_GATHER:
	case COLL_GATHER:
		for (uint32_t b = 0; b < out / (block ? block : 1); b++)
			expect(call, r, b * block, inputs[b], block);
		break;
	case COLL_ALL_TO_ALL:
		for (uint32_t b = 0; b < n; b++)
			expect(call, r, b * block, inputs[b] + r * block, block);
		break;
	case COLL_SCATTER:
		expect(call, r, 0, inputs[call->root] + r * block, out);
		break;
	case COLL_REDUCE_SCATTER:
		expect(call, r, 0, reduced + r * block, out);
		break;
	default:
		expect(call, r, 0, reduced, out);
	}
}

static void buffers_check(const struct world_call *call, uint32_t n, bool is_in_place)
{
	static const unsigned char guard[GUARD] = {[0 ... GUARD - 1] = POISON};

	for (uint32_t r = 0; r < n; r++) {
		size_t out = buffer_bytes(call, n, r, true);

		if (!out)
			continue;
		CUDA(driver->memcpy_from_device(seen, call->posts[r].out, out + GUARD));
		rank_check(call, n, r);
		/* in place IN may go on behind OUT */
		if (!is_in_place)
			expect(call, r, out, guard, GUARD);
	}
}

/* ---- one call ---- */

static void call_run(struct world *world, struct world_call *call, bool is_in_place)
{
	uint32_t size = (uint32_t)type_size(call->type);
	uint32_t choices[] = {0, 0, size, 3 * size, 1, 5 * size};
	uint32_t shifts[2] = {choices[random_next(6)], choices[random_next(6)]};
	struct steps_args args;

	if (2 * world->n * call->count * size > LIMIT * 8 ||
		(!coll_is_vector(call->kind->coll) &&
			world->n * call->count * size > LIMIT))
		return;
	case_count++;
	if (is_in_place && !can_be_in_place(call))
		return;
	patterns_make(call, world->n);
	buffers_fill(call, world->n, is_in_place, shifts);
	world_args(world, call, &args);
	world_launch(world, call, &args, world->stream);
	world_wait(world, call);
	buffers_check(call, world->n, is_in_place);
}

/* A call with numbers that should not matter. */
static struct world_call call_make(const struct sched_kind *kind, uint32_t n)
{
	static const uint32_t channels[] = {1, 2, 5, 16}, threads[] = {64, 128, 512};
	static const size_t tiles[] = {0, 0, 1000, 4096};

	return (struct world_call){.kind = kind,
		.root = coll_has_root(kind->coll) ? random_next(n) : 0,
		.depth = 2u << random_next(3),
		.channels = channels[random_next(4)],
		.threads = threads[random_next(3)],
		.tile_bytes = tiles[random_next(4)],
		.type = ncclFloat32,
		.op = ncclSum};
}

/* ---- tests ---- */

static const ncclDataType_t types[] = {ncclFloat32, ncclFloat16, ncclBfloat16, ncclInt32,
	ncclUint8, ncclFloat8e4m3, ncclFloat64};
enum { TYPES = sizeof(types) / sizeof(*types) };

/* Every schedule, several types and counts. */
static void test_schedules(struct world *world)
{
	static const size_t counts[] = {0, 1, 7, 1000, 65537, 1 << 20};
	const struct sched_kind *kind;

	for (uint32_t k = 0; (kind = catalog_plain_at(k)); k++)
		for (uint32_t c = 0; c < 6; c++)
			for (uint32_t t = 0; t < TYPES; t++) {
				struct world_call call = call_make(kind, world->n);

				if ((c == 5 && t > 0) || (c == 4 && t > 2 && t % 2) ||
					(is_few && (t > 1 || c > 4)))
					continue;
				call.count = counts[c];
				call.type = types[t];
				call_run(world, &call, false);
				call_run(world, &call, true);
			}
}

/* Every type and operator. */
static void test_operators(struct world *world)
{
	const struct sched_kind *ring = catalog_find(COLL_ALL_REDUCE, "ring");
	const struct sched_kind *tree = catalog_find(COLL_ALL_REDUCE, "tree");

	for (int type = 0; type < ncclNumTypes; type++)
		for (int op = 0; op <= OP_PREMUL; op++) {
			struct world_call call = call_make(
				op % 2 ? ring : tree, world->n);

			call.type = (ncclDataType_t)type;
			call.op = op;
			call.count = 3001;
			if (value_tolerance(call.type, op, (int)world->n) > 0)
				continue;
			call_run(world, &call, op % 3 == 0);
		}
}

/* Sums that are rounded come out as the host's, to the bit: chunk c of a ring begins at
 * rank c + 1, and each rank adds what it has to what it gets. */
static void test_rounding(struct world *world)
{
	enum { COUNT = 5000 };
	const struct kernel *kernel = kernel_get(DTYPE_FLOAT32, REDOP_SUM);
	struct world_call call = call_make(
		catalog_find(COLL_ALL_REDUCE, "ring"), world->n);
	static float data[WORLD_RANKS][COUNT], sum[COUNT];
	struct steps_args args;
	size_t chunk;

	call.count = COUNT;
	for (uint32_t r = 0; r < world->n; r++) {
		for (uint32_t i = 0; i < COUNT; i++)
			data[r][i] = (float)random_next(1 << 24) / 1234.0f;
		call.posts[r] = (struct dev_post){.in = ins[r], .out = outs[r]};
		CUDA(driver->memcpy_to_device(ins[r], data[r], sizeof(data[r])));
	}
	world_args(world, &call, &args);
	chunk = args.chunk_bytes / sizeof(float);
	for (uint32_t c = 0; c < world->n; c++) {
		size_t at = c * chunk < COUNT ? c * chunk : COUNT;
		size_t elems = COUNT - at < chunk ? COUNT - at : chunk;

		memcpy(sum + at, data[(c + 1) % world->n] + at, elems * sizeof(float));
		for (uint32_t k = 2; k <= world->n; k++)
			kernel->fold(
				sum + at, data[(c + k) % world->n] + at, sum + at, elems);
	}
	world_launch(world, &call, &args, world->stream);
	world_wait(world, &call);
	for (uint32_t r = 0; r < world->n; r++) {
		CUDA(driver->memcpy_from_device(seen, outs[r], sizeof(sum)));
		TRUE(!memcmp(seen, sum, sizeof(sum)));
	}
}

/* Positions cross what flags of 32 bits can say, over stages that hold flags to come. */
static void test_wrap(struct world *world)
{
	for (uint64_t half = 1; half <= 4; half++) {
		struct world_call call = call_make(
			catalog_find(COLL_ALL_REDUCE, half % 2 ? "ring" : "tree"),
			world->n);
		uint64_t begin = (half << 31) - 1;

		call.count = 2000;
		call.channels = 2;
		/* what no flag of 64 bits was ever is no test of them */
		world_set(
			world, begin, world->codec == STEPS_LL ? (uint32_t)begin + 2 : 0);
		for (int i = 0; i < 3; i++)
			call_run(world, &call, false);
	}
	world_set(world, 0, 0);
}

/* Two launches for half of the ranks each, which wait for each other. */
static void test_parts(struct world *world)
{
	struct world_call call = call_make(
		catalog_find(COLL_ALL_REDUCE, "ring"), world->n);
	static const uint32_t shifts[2];
	struct steps_args args[2];
	uint32_t half = world->n / 2;
	cu_stream other;

	call.count = 50000;
	CUDA(driver->stream_create(&other, 1));
	for (int i = 0; i < 3; i++) {
		patterns_make(&call, world->n);
		buffers_fill(&call, world->n, false, shifts);
		world_args(world, &call, &args[0]);
		args[1] = args[0];
		args[0].rank_count = half;
		args[1].rank_count = world->n - half;
		for (uint32_t r = half; r < world->n; r++) {
			args[1].ranks[r - half] = (uint8_t)r;
			args[1].posts[r - half] = args[0].posts[r];
		}
		world_launch(world, &call, &args[0], world->stream);
		world_launch(world, &call, &args[1], other);
		world_wait(world, &call);
		CUDA(driver->stream_synchronize(other));
		buffers_check(&call, world->n, false);
	}
	CUDA(driver->stream_destroy(other));
}

/* Buffers said in mail instead of arguments; a sign that differs ends the call. */
static void test_mail(struct world *world)
{
	struct world_call call = call_make(
		catalog_find(COLL_ALL_GATHER, "ring"), world->n);
	static const uint32_t shifts[2] = {4, 8};
	struct dev_mail mail[WORLD_RANKS] = {0};
	uint32_t *trouble = (uint32_t *)(uintptr_t)world->abort + 1;
	struct steps_args args;
	cu_ptr there;

	call.count = 1234;
	CUDA(driver->mem_alloc(&there, sizeof(mail)));
	for (uint32_t is_other = 0; is_other < 2; is_other++) {
		patterns_make(&call, world->n);
		buffers_fill(&call, world->n, false, shifts);
		world_args(world, &call, &args);
		for (uint32_t r = 0; r < world->n; r++)
			mail[r] = (struct dev_mail){.in = call.posts[r].in,
				.out = call.posts[r].out,
				.sign = r + 1 == world->n ? is_other : 0,
				.ready = 5};
		CUDA(driver->memcpy_to_device(there, mail, sizeof(mail)));
		args.is_posted = 0;
		args.call = 5;
		args.mail = (struct dev_mail *)(uintptr_t)there;
		args.trouble = (uint32_t *)(uintptr_t)(world->abort_device + 4);
		*trouble = 0;
		memset(args.posts, 0, sizeof(args.posts));
		world_launch(world, &call, &args, world->stream);
		CUDA(driver->stream_synchronize(world->stream));
		EQ(*(volatile uint32_t *)trouble, is_other ? world->n : 0);
		if (!is_other)
			buffers_check(&call, world->n, false);
	}
	CUDA(driver->mem_free(there));
}

/* A rank that nobody else comes to waits until it is told to stop. */
static void test_abort(struct world *world)
{
	struct world_call call = call_make(
		catalog_find(COLL_ALL_REDUCE, "ring"), world->n);
	static const uint32_t shifts[2];
	struct steps_args args;

	call.count = 100000;
	patterns_make(&call, world->n);
	buffers_fill(&call, world->n, false, shifts);
	world_args(world, &call, &args);
	args.rank_count = 1;
	world_launch(world, &call, &args, world->stream);
	usleep(30000);
	EQ(driver->stream_query(world->stream), CU_NOT_READY);
	*world->abort = 1;
	world_wait(world, &call);
	*world->abort = 0;
	world_set(world, 0, 0);
}

static int one_of_each(void)
{
	static struct world world;

	for (int codec = 0; codec < STEPS_CODECS; codec++) {
		world_begin(&world, 2, (enum steps_codec)codec, false, STAGE);
		test_rounding(&world);
		world_end(&world);
	}
	return 0;
}

static void test_world(uint32_t n, enum steps_codec codec, bool is_host)
{
	static struct world world;

	world_begin(&world, n, codec, is_host, STAGE);
	if (!is_host || is_few)
		test_schedules(&world);
	test_operators(&world);
	test_rounding(&world);
	if (!is_few) {
		test_wrap(&world);
		test_parts(&world);
		test_mail(&world);
		test_abort(&world);
		test_rounding(&world);
	}
	world_end(&world);
	printf("%u ranks, %s, stages in %s memory: ok, %u cases so far\n", n,
		steps_codec_name(codec), is_host ? "host" : "device", case_count);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static const uint32_t ranks[] = {2, 3, 4, 8};

	world_need();
	if (argc > 1 && !strcmp(argv[1], "--bench"))
		return steps_bench();
	is_few = argc > 1 && !strcmp(argv[1], "--few");
	buffers_make();
	if (argc > 1 && !strcmp(argv[1], "--one"))
		return one_of_each();
	for (uint32_t i = 0; i < (is_few ? 1 : 4); i++) {
		if (argc > 1 && argv[1][0] != '-' && (int)ranks[i] != atoi(argv[1]))
			continue;
		for (int codec = 0; codec < STEPS_CODECS; codec++) {
			test_world(ranks[i], (enum steps_codec)codec, false);
			/* LL128 is not for host memory */
			if (ranks[i] % 2 && codec != STEPS_LL128)
				test_world(ranks[i], (enum steps_codec)codec, true);
		}
	}
	return 0;
}
