/* Buffers lent to a peer: opened once, at another address, let go when they are freed. */
#include "exec/cuda/driver/share.h"

#include "../cuda/fake_cuda.h"

enum { PEER = 4711, OTHER = 4712 };

static const struct cuda_driver *driver;
static void *library;
static struct cuda_share *owner, *user; /* as if they were two processes */

static int mappings(void)
{
	return fake_cuda_count(library, "fake_cuda_mappings");
}

static int handles(void)
{
	return fake_cuda_count(library, "fake_cuda_handles");
}

static char *at(cu_ptr ptr)
{
	return (char *)(uintptr_t)ptr;
}

static cu_ptr device_alloc(size_t bytes)
{
	cu_ptr ptr = 0;

	EQ(driver->mem_alloc(&ptr, bytes), CU_OK);
	return ptr;
}

static void close_one(uint64_t process, uint64_t block_id)
{
	int before = mappings();

	cuda_share_forget(user, process, block_id);
	EQ(mappings(), before);
	cuda_share_tidy(user);
}

static void test_once(void)
{
	cu_ptr memory = device_alloc(1 << 16), there = 0, again = 0;
	struct cuda_shared shared, second;
	int before = handles();

	memset(at(memory), 3, 1 << 16);
	EQ(cuda_share_export(owner, at(memory + 100), 1000, &shared), OK);
	EQ(shared.offset, 100);
	EQ(shared.bytes, 1000);
	EQ(shared.block, memory);
	EQ(shared.block_bytes, 1 << 16);
	EQ(cuda_share_export(owner, at(memory), 1 << 16, &second), OK);
	EQ(handles(), before + 1);
	EQ(second.block_id, shared.block_id);

	EQ(cuda_share_import(user, PEER, &shared, &there), OK);
	TRUE(there != memory + 100);
	EQ(at(there)[0], 3);
	at(there)[999] = 4;
	EQ(at(memory)[1099], 4);
	EQ(cuda_share_import(user, PEER, &second, &again), OK);
	EQ(again, there - 100);
	EQ(mappings(), 1);
	EQ(cuda_share_import(user, OTHER, &second, &again),
		OK); /* an id is its process's */
	EQ(mappings(), 2);
	close_one(PEER, shared.block_id + 1);
	EQ(mappings(), 2);
	close_one(PEER, shared.block_id);
	close_one(PEER, shared.block_id);
	EQ(mappings(), 1);
	close_one(OTHER, shared.block_id);
	EQ(mappings(), 0);
	EQ(driver->mem_free(memory), CU_OK);
}

/* The owner has noticed, and both have forgotten. */
static void test_freed(void)
{
	cu_ptr memory = device_alloc(5000), there = 0;
	struct cuda_shared shared, again;
	uint32_t before;

	EQ(cuda_share_export(owner, at(memory), 5000, &shared), OK);
	EQ(cuda_share_import(user, PEER, &shared, &there), OK);
	EQ(driver->mem_free(memory), CU_OK);
	EQ(device_alloc(5000), memory); /* same address, other memory */
	cuda_share_unexport(owner, shared.block_id);
	close_one(PEER, shared.block_id);
	EQ(mappings(), 0);
	EQ(cuda_share_import(user, PEER, &shared, &there), ERR_CUDA); /* too late */
	before = (uint32_t)handles();
	EQ(cuda_share_export(owner, at(memory), 5000, &again), OK);
	EQ(handles(), before + 1);
	TRUE(again.block_id != shared.block_id);
	EQ(driver->mem_free(memory), CU_OK);
}

static void test_refused(void)
{
	cu_ptr managed = 0, pool = 0, memory = device_alloc(100);
	struct cuda_shared shared = {.offset = 77};
	char plain[8];

	EQ(fake_cuda_call(library, "cuMemAllocManaged", &managed, 64), CU_OK);
	EQ(fake_cuda_call(library, "cuMemAllocAsync", &pool, 64), CU_OK);
	EQ(cuda_share_export(owner, at(managed), 8, &shared), ERR_ARGUMENT);
	EQ(cuda_share_export(owner, at(pool), 8, &shared), ERR_ARGUMENT);
	TRUE(strstr(err_last(), "cudaMallocAsync"));
	TRUE(strstr(err_last(), "expandable_segments"));
	EQ(cuda_share_export(owner, plain, 8, &shared), ERR_ARGUMENT);
	EQ(cuda_share_export(owner, at(memory + 1), 100, &shared), ERR_ARGUMENT);
	EQ(cuda_share_export(owner, at(memory + 1), SIZE_MAX, &shared), ERR_ARGUMENT);
	EQ(cuda_share_export(owner, (void *)0xbad, 8, &shared), ERR_CUDA);
	EQ(shared.offset, 77); /* untouched on failure */
	EQ(driver->mem_free(managed), CU_OK);
	EQ(driver->mem_free(pool), CU_OK);
	EQ(driver->mem_free(memory), CU_OK);
}

/* What a peer says of its buffer is not believed. */
static void test_hostile(void)
{
	cu_ptr memory = device_alloc(3000), there = 77;
	struct cuda_shared good, bad;

	EQ(cuda_share_export(owner, at(memory), 3000, &good), OK);
	bad = good;
	bad.offset = 1;
	EQ(cuda_share_import(user, PEER, &bad, &there), ERR_REMOTE);
	bad.offset = UINT64_MAX;
	EQ(cuda_share_import(user, PEER, &bad, &there), ERR_REMOTE);
	bad = good;
	bad.block_bytes = bad.bytes = 3001; /* more than there is */
	EQ(cuda_share_import(user, PEER, &bad, &there), ERR_REMOTE);
	bad.handle_offset = 5000;
	EQ(cuda_share_import(user, PEER, &bad, &there), ERR_REMOTE);
	bad = good;
	memset(bad.handle.bytes, 0xff, sizeof(bad.handle.bytes));
	EQ(cuda_share_import(user, PEER, &bad, &there), ERR_CUDA);
	EQ(there, 77);
	EQ(mappings(), 0);

	EQ(cuda_share_import(user, PEER, &good, &there), OK);
	bad = good;
	bad.block_bytes = UINT64_MAX; /* known already: what it said first holds */
	bad.offset = 3000;
	bad.bytes = 1;
	EQ(cuda_share_import(user, PEER, &bad, &there), ERR_REMOTE);
	close_one(PEER, good.block_id);
	EQ(driver->mem_free(memory), CU_OK);
}

int main(void)
{
	cu_ptr memory[20], there;
	struct cuda_shared shared;

	library = fake_cuda_load(WEFT_FAKE_CUDA "/now");
	driver = cuda_driver();
	TRUE(driver);
	EQ(driver->init(0), CU_OK);
	EQ(cuda_share_create(driver, &owner), OK);
	EQ(cuda_share_create(driver, &user), OK);
	test_once();
	test_freed();
	test_refused();
	test_hostile();
	for (size_t i = 0; i < 20; i++) {
		memory[i] = device_alloc(100 + i);
		EQ(cuda_share_export(owner, at(memory[i]), 1, &shared), OK);
		EQ(cuda_share_import(user, PEER, &shared, &there), OK);
	}
	EQ(mappings(), 20);
	cuda_share_destroy(owner);
	cuda_share_destroy(user);
	cuda_share_destroy(NULL);
	EQ(mappings(), 0);
	return 0;
}
