#include "steps_bench.h"

#include "steps_world.h"
#include "test.h"

enum {
	LAUNCHES = 20, /* in a graph, and in a row */
	TURNS = 3,
	BLOCKS_MAX = 264,
	BYTES_MAX = 64 << 20,
	STAGE = 512 << 10
};

static cu_ptr ins[WORLD_RANKS], outs[WORLD_RANKS];

/* Microseconds a launch takes, the best of some turns. */
static double time_it(const struct world *world, const struct world_call *call,
	struct steps_args *args, void *graph)
{
	double best = 1e30;
	cu_event begin, end;

	CUDA(driver->event_create(&begin, 0));
	CUDA(driver->event_create(&end, 0));
	for (int turn = 0; turn <= TURNS; turn++) {
		float ms;

		CUDA(driver->event_record(begin, world->stream));
		for (int i = 0; i < LAUNCHES && !graph; i++)
			world_launch(world, call, args, world->stream);
		if (graph)
			CUDA(extra.graph_launch(graph, world->stream));
		CUDA(driver->event_record(end, world->stream));
		CUDA(driver->stream_synchronize(world->stream));
		CUDA(extra.event_elapsed(&ms, begin, end));
		if (turn && ms * 1000 / LAUNCHES < best)
			best = (double)ms * 1000 / LAUNCHES;
	}
	CUDA(driver->event_destroy(begin));
	CUDA(driver->event_destroy(end));
	return best;
}

static double time_graph(
	const struct world *world, const struct world_call *call, struct steps_args *args)
{
	void *graph, *runnable;
	double best;

	CUDA(extra.capture_begin(world->stream, 2));
	for (int i = 0; i < LAUNCHES; i++)
		world_launch(world, call, args, world->stream);
	CUDA(extra.capture_end(world->stream, &graph));
	CUDA(extra.graph_make(&runnable, graph, 0));
	best = time_it(world, call, args, runnable);
	CUDA(extra.graph_runnable_destroy(runnable));
	CUDA(extra.graph_destroy(graph));
	return best;
}

/* The grids worth trying for so many bytes. */
static bool is_worth(const struct world *world, const struct world_call *call)
{
	size_t bytes = call->count * sizeof(float) / world->n / call->channels;
	size_t least = world->codec == STEPS_SIMPLE ? 2048 : 512;

	if (call->channels * world->n > BLOCKS_MAX)
		return false;
	/* a block has neither next to nothing to do nor the work of many */
	return call->channels == 1
		       ? bytes <= 128 << 10
		       : bytes >= least && (bytes <= 128 << 10 ||
						   call->channels * world->n * 2 > 128);
}

static struct world_call call_make(const struct world *world, size_t bytes)
{
	struct world_call call = {.kind = catalog_find(COLL_ALL_REDUCE, "ring"),
		.depth = 8,
		.channels = 1,
		.threads = STEPS_THREADS,
		.type = ncclFloat32,
		.op = ncclSum,
		.count = bytes / sizeof(float)};

	for (uint32_t r = 0; r < world->n; r++)
		call.posts[r] = (struct dev_post){.in = ins[r], .out = outs[r]};
	return call;
}

/* With the grid that steps.h proposes. */
static double time_proposed(struct world *world, size_t bytes, struct world_call *call)
{
	struct steps_args args;

	*call = call_make(world, bytes);
	call->tile_bytes = bytes < 4 << 20 ? 16 << 10 : 64 << 10;
	world_args(world, call, &args);
	call->channels = steps_channels(
		&args.head, world->codec, bytes, BLOCKS_MAX / world->n);
	world_args(world, call, &args);
	call->threads = steps_threads(&args, world->codec);
	return time_graph(world, call, &args);
}

static void bench_size(struct world *world, size_t bytes)
{
	static const uint32_t channels[] = {1, 2, 4, 8, 16, 32, 33, 66, 132};
	static const uint32_t threads[] = {64, 128, 256, 512};
	static const size_t tiles[] = {16 << 10, 64 << 10};
	double graph = 1e30, plain = 1e30, proposed;
	struct world_call best = {0}, own;

	for (uint32_t i = 0; i < 9 * 4 * 2; i++) {
		struct world_call call = call_make(world, bytes);
		struct steps_args args;
		double us;

		call.channels = channels[i / 8];
		call.threads = threads[i / 2 % 4];
		call.tile_bytes = tiles[i % 2];
		if (!is_worth(world, &call) || (call.threads < 512 && bytes > 1 << 20) ||
			(call.threads == 512 && bytes <= 128) ||
			(i % 2 && bytes < 4 << 20))
			continue;
		world_args(world, &call, &args);
		us = time_graph(world, &call, &args);
		if (us >= graph)
			continue;
		graph = us;
		best = call;
		plain = time_it(world, &call, &args, NULL);
	}
	proposed = time_proposed(world, bytes, &own);
	printf("%u %-6s %9zu B %s  graph %8.2f us (%3u x %3u, tile %zu)  launches "
	       "%8.2f us  proposed %8.2f us (%3u x %3u)\n",
		world->n, steps_codec_name(world->codec), bytes,
		world->is_loose ? "loose" : "coop ", graph, best.channels, best.threads,
		best.tile_bytes, plain, proposed, own.channels, own.threads);
	fflush(stdout);
}

int steps_bench(void)
{
	static const size_t sizes[] = {0, 8, 1 << 10, 8 << 10, 64 << 10, 256 << 10,
		1 << 20, 4 << 20, 16 << 20, BYTES_MAX};
	static struct world world;

	for (uint32_t r = 0; r < WORLD_RANKS; r++) {
		CUDA(driver->mem_alloc(&ins[r], BYTES_MAX));
		CUDA(driver->mem_alloc(&outs[r], BYTES_MAX));
	}
	for (uint32_t n = 2; n <= WORLD_RANKS; n *= 2)
		for (int codec = 0; codec < STEPS_CODECS; codec++) {
			world_begin(&world, n, (enum steps_codec)codec, false, STAGE);
			bench_size(&world, 8);
			world.is_loose = true;
			for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
				if (codec != STEPS_LL || sizes[i] <= 1 << 20)
					bench_size(&world, sizes[i]);
			world_end(&world);
		}
	return 0;
}
