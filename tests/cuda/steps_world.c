#include "steps_world.h"

#include <dlfcn.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dtype.h"
#include "exec/cuda/kernels/kernels.h"
#include "exec/host/kernel.h"
#include "patience.h"
#include "test.h"
#include "value.h"

enum { SCRATCH_BYTES = 64 << 20, HOST_MAPPED = 2 | 1 };
static const uint64_t patience_us = 8000000;

const struct cuda_driver *driver;
struct world_extra extra;
static cu_module modules[STEPS_CODECS];

void cuda_expect(cu_result result, const char *text, const char *file, int line)
{
	const char *name = "?";

	if (result == CU_OK)
		return;
	driver->error_name(result, &name);
	fprintf(stderr, "%s:%d: %s: the driver says %s (%d)\n", file, line, text, name,
		result);
	_exit(1);
}

static void extra_find(void *library)
{
	static const char *const names[] = {"cuLaunchCooperativeKernel",
		"cuStreamBeginCapture_v2", "cuStreamEndCapture",
		"cuGraphInstantiateWithFlags", "cuGraphLaunch", "cuGraphExecDestroy",
		"cuGraphDestroy", "cuEventElapsedTime"};
	enum { COUNT = sizeof(names) / sizeof(*names) };

	_Static_assert(sizeof(extra) == COUNT * sizeof(void *), "one name each");
	for (size_t i = 0; i < COUNT; i++) {
		void *address = dlsym(library, names[i]);

		TRUE(address);
		memcpy((char *)&extra + i * sizeof(address), &address, sizeof(address));
	}
}

void world_need(void)
{
	static const unsigned char *const binaries[STEPS_CODECS] = {
		cuda_steps_simple, cuda_steps_ll, cuda_steps_ll128};
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	cu_context context;
	cu_device device;

	driver = library ? cuda_driver() : NULL;
	if (!driver || !cuda_steps_simple_bytes || driver->init(0) ||
		driver->device_get(&device, 0)) {
		printf("skipped: no CUDA driver, no GPU or no kernels\n");
		exit(TEST_SKIP);
	}
	extra_find(library);
	CUDA(driver->primary_retain(&context, device));
	CUDA(driver->context_set(context));
	for (int c = 0; c < STEPS_CODECS; c++) {
		uint64_t begin = clock_ns();

		CUDA(driver->module_load(&modules[c], binaries[c]));
		printf("%s: loaded in %.1f ms\n", steps_codec_name((enum steps_codec)c),
			(double)(clock_ns() - begin) / 1e6);
	}
}

/* Device memory, or host memory as the device sees it. */
static cu_ptr room_make(struct world *world, uint32_t rank, size_t bytes)
{
	cu_ptr ptr = 0;

	if (world->is_host) {
		CUDA(driver->mem_host_alloc(&world->host[rank], bytes, HOST_MAPPED));
		CUDA(driver->mem_host_device_pointer(&ptr, world->host[rank], 0));
	} else {
		CUDA(driver->mem_alloc(&ptr, bytes));
	}
	return ptr;
}

void world_begin(struct world *world, uint32_t n, enum steps_codec codec, bool is_host,
	size_t stage_bytes)
{
	void *word = NULL;

	*world = (struct world){.n = n,
		.codec = codec,
		.is_host = is_host,
		.stage_bytes = stage_bytes,
		.channels_max = WORLD_CHANNELS};
	for (uint32_t r = 0; r < n; r++) {
		size_t stage = stage_bytes * world->channels_max;

		world->ends[r].stage = room_make(
			world, r, stage + steps_words_bytes(world->channels_max));
		world->ends[r].words = world->ends[r].acks = world->ends[r].stage + stage;
		CUDA(driver->mem_alloc(&world->ends[r].scratch, SCRATCH_BYTES));
	}
	CUDA(driver->mem_alloc(&world->ends_device, sizeof(world->ends)));
	CUDA(driver->memcpy_to_device(
		world->ends_device, world->ends, sizeof(world->ends)));
	world_set(world, 0, 0);
	CUDA(driver->mem_host_alloc(&word, 2 * sizeof(*world->abort), HOST_MAPPED));
	world->abort = word;
	*world->abort = 0;
	CUDA(driver->mem_host_device_pointer(&world->abort_device, word, 0));
	CUDA(driver->stream_create(&world->stream, 1));
}

void world_end(struct world *world)
{
	CUDA(driver->stream_synchronize(world->stream));
	CUDA(driver->stream_destroy(world->stream));
	for (uint32_t r = 0; r < world->n; r++) {
		if (world->is_host)
			CUDA(driver->mem_host_free(world->host[r]));
		else
			CUDA(driver->mem_free(world->ends[r].stage));
		CUDA(driver->mem_free(world->ends[r].scratch));
	}
	for (uint32_t i = 0; i < world->kept_count; i++) {
		free(world->kept[i].steps);
		CUDA(driver->mem_free(world->kept[i].address));
	}
	CUDA(driver->mem_free(world->ends_device));
	CUDA(driver->mem_host_free((void *)(uintptr_t)world->abort));
}

void world_set(struct world *world, uint64_t position, uint32_t fill)
{
	size_t stage = world->stage_bytes * world->channels_max;
	size_t words = steps_words_bytes(world->channels_max);
	char *image = calloc(1, stage + words);

	TRUE(image);
	for (size_t i = 0; i < stage; i += sizeof(fill))
		memcpy(image + i, &fill, sizeof(fill));
	for (size_t i = 0; i < words; i += sizeof(struct dev_word))
		memcpy(image + stage + i, &position, sizeof(position));
	CUDA(driver->context_synchronize());
	for (uint32_t r = 0; r < world->n; r++) {
		if (world->is_host)
			memcpy(world->host[r], image, stage + words);
		else
			CUDA(driver->memcpy_to_device(
				world->ends[r].stage, image, stage + words));
	}
	free(image);
}

static const struct kept_steps *steps_get(
	struct world *world, const struct world_call *call)
{
	struct steps_key key = {call->kind, world->n, call->root, call->depth};
	struct kept_steps *kept = world->kept;
	size_t bytes;

	for (; kept < world->kept + world->kept_count; kept++)
		if (kept->key.kind == key.kind && kept->key.root == key.root &&
			kept->key.depth == key.depth)
			return kept;
	TRUE(world->kept_count++ < WORLD_KEPT);
	kept->key = key;
	EQ(lists_steps(&key, &kept->steps, &bytes), OK);
	CUDA(driver->mem_alloc(&kept->address, bytes));
	CUDA(driver->memcpy_to_device(kept->address, kept->steps, bytes));
	return kept;
}

void world_args(
	struct world *world, const struct world_call *call, struct steps_args *args)
{
	const struct kept_steps *kept = steps_get(world, call);
	struct steps_room room = {.codec = world->codec,
		.channels = call->channels,
		.stage_bytes = world->stage_bytes,
		.tile_bytes = call->tile_bytes};
	bool is_float = type_is_float(call->type);
	bool is_reduced = coll_reduces(call->kind->coll);

	*args = (struct steps_args){.steps = (const char *)(uintptr_t)kept->address,
		.ends = (const struct dev_end *)(uintptr_t)world->ends_device,
		.abort = (const uint32_t *)(uintptr_t)world->abort_device,
		.rank_count = world->n,
		.is_scaled = is_reduced &&
			     (call->op >= OP_PREMUL || (call->op == ncclAvg && is_float)),
		.divisor = is_reduced && call->op == ncclAvg && !is_float ? world->n : 0,
		.is_one_device = !world->is_host,
		.is_posted = 1};
	EQ(steps_shape(kept->steps, &room, call->count * type_size(call->type), args),
		OK);
	TRUE(args->scratch_bytes * call->channels <= SCRATCH_BYTES);
	for (uint32_t r = 0; r < world->n; r++) {
		args->ranks[r] = (uint8_t)r;
		args->posts[r] = call->posts[r];
		if (call->op >= OP_PREMUL)
			type_encode(
				call->type, value_scalar((int)r), &args->posts[r].scalar);
		else
			args->posts[r].scalar =
				kernel_reciprocal((enum dtype)call->type, world->n).bits;
	}
}

static cu_function function_get(const struct world *world, const struct world_call *call)
{
	static cu_function kept[STEPS_CODECS][DTYPE_COUNT + 1][4];
	static const char *const ops[] = {"sum", "prod", "max", "min"};
	bool is_reduced = coll_reduces(call->kind->coll);
	unsigned type = is_reduced ? (unsigned)call->type : DTYPE_COUNT;
	unsigned op = is_reduced && call->op < ncclAvg ? (unsigned)call->op : 0;
	cu_function *function = &kept[world->codec][type][op];
	char name[64];

	if (*function)
		return *function;
	if (is_reduced)
		snprintf(name, sizeof(name), "steps_%s_%s_%s",
			steps_codec_name(world->codec), dtype_name((enum dtype)type),
			ops[op]);
	else
		snprintf(name, sizeof(name), "steps_%s_copy",
			steps_codec_name(world->codec));
	CUDA(driver->module_function(function, modules[world->codec], name));
	return *function;
}

void world_launch(const struct world *world, const struct world_call *call,
	struct steps_args *args, cu_stream stream)
{
	cu_function function = function_get(world, call);
	uint32_t x = call->channels * args->head.lane_count, y = args->rank_count;
	void *params[] = {args};

	/* all blocks at once, or an error; launches that wait for each other are small */
	if (y == world->n && !world->is_loose)
		CUDA(extra.launch_together(
			function, x, y, 1, call->threads, 1, 1, 0, stream, params));
	else
		CUDA(driver->launch(
			function, x, y, 1, call->threads, 1, 1, 0, stream, params, NULL));
}

void world_call_print(const struct world_call *call)
{
	fprintf(stderr,
		"%s %s, root %u, depth %u, %u channels of %u threads, tile %zu, type %d, "
		"op %d, count %zu\n",
		coll_name(call->kind->coll), call->kind->name, call->root, call->depth,
		call->channels, call->threads, call->tile_bytes, call->type, call->op,
		call->count);
	for (uint32_t r = 0; r < 2; r++)
		fprintf(stderr, "rank %u: in %% 16 %u, out %% 16 %u\n", r,
			(unsigned)(call->posts[r].in % 16),
			(unsigned)(call->posts[r].out % 16));
}

void world_wait(const struct world *world, const struct world_call *call)
{
	uint64_t end = patient_us() + patience_us;
	cu_result result;

	while ((result = driver->stream_query(world->stream)) == CU_NOT_READY &&
		patient_us() < end)
		continue;
	if (result != CU_NOT_READY) {
		CUDA(result);
		return;
	}
	fprintf(stderr, "this does not end:\n");
	world_call_print(call);
	for (uint32_t r = 0; r < world->n; r++) {
		struct dev_word words[4];

		CUDA(driver->memcpy_from_device(
			words, world->ends[r].words, sizeof(words)));
		for (uint32_t i = 0; i < 4; i++)
			fprintf(stderr, "rank %u channel %u lane %u: %llu\n", r, i / 2,
				i % 2, (unsigned long long)words[i].position);
	}
	*world->abort = 1;
	_exit(1);
}
