/* What the stand-in for libcuda supposes, asked of a real driver: two processes, a GPU.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec/cuda/driver/mps.h"
#include "exec/cuda/driver/share.h"
#include "exec/cuda/driver/where.h"
#include "exec/cuda/kernels/kernels.h"
#include "exec/cuda/lists/moves_abi.h"
#include "test.h"

enum { SMALL = 1000, LARGE = 8 << 20 };

static const struct cuda_driver *driver;
static int to_child[2], to_parent[2];

static void pipe_send(int fd, const void *data, size_t bytes)
{
	EQ(write(fd, data, bytes), bytes);
}

static void pipe_receive(int fd, void *data, size_t bytes)
{
	EQ(read(fd, data, bytes), bytes);
}

/* False when there is no driver, no GPU or no kernel. */
static bool cuda_begin(void)
{
	cu_context context;

	if (!cuda_kernels_bytes || !dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL))
		return false;
	driver = cuda_driver();
	TRUE(driver);
	if (driver->init(0))
		return false;
	EQ(driver->primary_retain(&context, 0), CU_OK);
	EQ(driver->context_set(context), CU_OK);
	return true;
}

/* A kernel that copies to memory of our own. It reaches the whole block that was opened;
 * the driver's copies know only the allocation whose handle it was. */
struct reader {
	cu_module module;
	cu_function copy;
	cu_ptr own;
	cu_ptr abort; /* a word that stays 0 */
};

static void reader_open(struct reader *reader)
{
	EQ(driver->module_load(&reader->module, cuda_kernels), CU_OK);
	EQ(driver->module_function(&reader->copy, reader->module, "pairs_copy"), CU_OK);
	EQ(driver->mem_alloc(&reader->own, LARGE), CU_OK);
	EQ(driver->mem_alloc(&reader->abort, sizeof(uint32_t)), CU_OK);
	EQ(driver->memset_d8(reader->abort, 0, sizeof(uint32_t)), CU_OK);
}

/* The first byte and the last. */
static void reader_read(
	const struct reader *reader, cu_ptr from, size_t bytes, unsigned char ends[2])
{
	struct pairs_args args = {.abort = (const void *)(uintptr_t)reader->abort,
		.count = 1,
		.is_one_device = 1,
		.pairs = {{.data = reader->own, .from = from, .bytes = bytes}}};
	void *params[] = {&args};

	TRUE(bytes <= LARGE);
	EQ(driver->memset_d8(reader->own, 0, bytes), CU_OK);
	EQ(driver->context_synchronize(), CU_OK);
	EQ(driver->launch(
		   reader->copy, 4, 1, 1, MOVES_THREADS, 1, 1, 0, NULL, params, NULL),
		CU_OK);
	EQ(driver->context_synchronize(), CU_OK);
	EQ(driver->memcpy_from_device(ends, reader->own, 1), CU_OK);
	EQ(driver->memcpy_from_device(ends + 1, reader->own + bytes - 1, 1), CU_OK);
}

static void reader_close(struct reader *reader)
{
	EQ(driver->mem_free(reader->own), CU_OK);
	EQ(driver->mem_free(reader->abort), CU_OK);
	EQ(driver->module_unload(reader->module), CU_OK);
}

/* Imports what it is told, answers with the first byte, until it is told nothing. */
static int child_main(void)
{
	struct cuda_share *share;
	struct cuda_shared shared;
	struct reader reader;

	if (!cuda_begin())
		return TEST_SKIP;
	reader_open(&reader);
	EQ(cuda_share_create(driver, &share), OK);
	for (;;) {
		unsigned char bytes[2];
		cu_ptr ptr;

		pipe_receive(to_child[0], &shared, sizeof(shared));
		if (!shared.bytes)
			break;
		EQ(cuda_share_import(share, 1, &shared, &ptr), OK);
		reader_read(&reader, ptr, shared.bytes, bytes);
		EQ(bytes[0], bytes[1]);
		pipe_send(to_parent[1], bytes, 1);
	}
	cuda_share_destroy(share);
	reader_close(&reader);
	return 0;
}

static void lend(struct cuda_share *share, cu_ptr ptr, size_t bytes, unsigned char value)
{
	struct cuda_shared shared;
	unsigned char seen = 0;

	EQ(driver->memset_d8(ptr, value, bytes), CU_OK);
	EQ(driver->context_synchronize(), CU_OK);
	EQ(cuda_share_export(share, (void *)(uintptr_t)ptr, bytes, &shared), OK);
	pipe_send(to_child[1], &shared, sizeof(shared));
	pipe_receive(to_parent[0], &seen, 1);
	EQ(seen, value);
}

static void test_lend(struct cuda_share *share)
{
	cu_ptr small[2] = {0}, large = 0;

	for (int i = 0; i < 2; i++)
		EQ(driver->mem_alloc(&small[i], SMALL), CU_OK);
	EQ(driver->mem_alloc(&large, LARGE), CU_OK);
	lend(share, small[0], SMALL, 1);
	lend(share, small[1], SMALL, 2); /* of one block, as likely as not */
	lend(share, large + 12345, LARGE - 12345, 3);
	for (int i = 4; i < 12; i++) { /* often at the same address */
		EQ(driver->mem_free(large), CU_OK);
		EQ(driver->mem_alloc(&large, LARGE), CU_OK);
		lend(share, large, LARGE, (unsigned char)i);
	}
	lend(share, small[0], SMALL, 13);
}

static void test_refused(struct cuda_share *share)
{
	cu_result (*alloc)(cu_ptr *, size_t, cu_stream) = NULL;
	void *symbol = dlsym(RTLD_DEFAULT, "cuMemAllocAsync");
	struct cuda_shared shared;
	struct cuda_where where;
	cu_result result;
	cu_ptr pool = 0;

	TRUE(symbol);
	memcpy(&alloc, &symbol, sizeof(symbol));
	result = alloc(&pool, LARGE, NULL);
	if (result == CU_NOT_SUPPORTED) /* as with the driver that runs on the CPU */
		return;
	EQ(result, CU_OK);
	EQ(cuda_where(driver, (void *)(uintptr_t)pool, &where), OK);
	TRUE(where.is_device && !where.is_shareable);
	EQ(cuda_share_export(share, (void *)(uintptr_t)pool, 8, &shared), ERR_ARGUMENT);
}

/* A thread without a context gets the same answer. */
static void *where_ask(void *ptr)
{
	struct cuda_where where;
	cu_context context;

	EQ(driver->context_get(&context), CU_OK);
	TRUE(!context);
	EQ(cuda_where(driver, ptr, &where), OK);
	TRUE(where.is_device && where.is_shareable && where.buffer_id);
	EQ(where.bytes, SMALL);
	EQ(cuda_where(driver, &where, &where), OK);
	TRUE(!where.is_device);
	return NULL;
}

static void test_where(void)
{
	struct cuda_where where;
	void *pinned = NULL;
	pthread_t thread;
	cu_ptr ptr = 0;

	EQ(driver->mem_alloc(&ptr, SMALL), CU_OK);
	EQ(pthread_create(&thread, NULL, where_ask, (void *)(uintptr_t)ptr), 0);
	EQ(pthread_join(thread, NULL), 0);
	EQ(driver->mem_host_alloc(&pinned, SMALL, 0), CU_OK);
	EQ(cuda_where(driver, pinned, &where), OK);
	TRUE(!where.is_device);
	printf("MPS: %s\n", mps_is_client(driver, 0) ? "yes" : "no");
}

int main(void)
{
	const struct cuda_shared end = {0};
	struct cuda_share *share = NULL;
	int status = 0;
	pid_t pid;

	EQ(pipe(to_child), 0);
	EQ(pipe(to_parent), 0);
	pid = fork(); /* before CUDA begins, which does not survive it */
	if (!pid)
		_exit(child_main());
	close(to_parent[1]); /* so that a child that dies is noticed */
	if (cuda_begin()) {
		test_where();
		EQ(cuda_share_create(driver, &share), OK);
		test_lend(share);
		test_refused(share);
		pipe_send(to_child[1], &end, sizeof(end));
	}
	EQ(waitpid(pid, &status, 0), pid);
	cuda_share_destroy(share);
	TRUE(WIFEXITED(status));
	return WEXITSTATUS(status);
}
