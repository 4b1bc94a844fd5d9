/* Device, managed, pinned and plain memory are told apart; a reused address is noticed.
 */
#include "exec/cuda/driver/where.h"

#include "../cuda/fake_cuda.h"

static const struct cuda_driver *driver;
static void *library;

static void test_device(void)
{
	struct cuda_where where, again;
	cu_ptr ptr = 0, same = 0;

	EQ(driver->mem_alloc(&ptr, 10000), CU_OK);
	EQ(cuda_where(driver, (void *)(uintptr_t)(ptr + 9999), &where), OK);
	TRUE(where.is_device && where.is_shareable && where.context);
	EQ(where.device, 0);
	EQ(where.base, ptr);
	EQ(where.bytes, 10000);
	TRUE(cuda_where_holds(&where, (void *)(uintptr_t)ptr, 10000));
	TRUE(cuda_where_holds(&where, (void *)(uintptr_t)(ptr + 9999), 1));
	TRUE(!cuda_where_holds(&where, (void *)(uintptr_t)ptr, 10001));
	TRUE(!cuda_where_holds(&where, (void *)(uintptr_t)(ptr + 9999), SIZE_MAX));
	EQ(cuda_where(driver, (void *)(uintptr_t)ptr, &again), OK);
	EQ(again.buffer_id, where.buffer_id);

	EQ(driver->mem_free(ptr), CU_OK);
	EQ(cuda_where(driver, (void *)(uintptr_t)ptr, &again), OK);
	TRUE(!again.is_device);
	EQ(driver->mem_alloc(&same, 10000), CU_OK);
	EQ(same, ptr);
	EQ(cuda_where(driver, (void *)(uintptr_t)same, &again), OK);
	TRUE(again.is_device && again.buffer_id != where.buffer_id);
	EQ(driver->mem_free(same), CU_OK);
}

static void test_host(void)
{
	struct cuda_where where = {.is_device = true, .base = 1};
	void *pinned = NULL;

	EQ(cuda_where(driver, &where, &where), OK);
	TRUE(!where.is_device && !where.base && !where.bytes && !where.device);
	TRUE(cuda_where_holds(&where, &where, SIZE_MAX)); /* nobody knows */
	EQ(cuda_where(driver, NULL, &where), OK);
	TRUE(!where.is_device);
	EQ(driver->mem_host_alloc(&pinned, 64, 0), CU_OK);
	EQ(cuda_where(driver, pinned, &where), OK);
	TRUE(!where.is_device && !where.is_shareable && !where.buffer_id);
	EQ(driver->mem_host_free(pinned), CU_OK);
}

static void test_special(void)
{
	struct cuda_where where;
	cu_ptr managed = 0, pool = 0;

	EQ(fake_cuda_call(library, "cuMemAllocManaged", &managed, 64), CU_OK);
	EQ(cuda_where(driver, (void *)(uintptr_t)managed, &where), OK);
	TRUE(where.is_device && !where.is_shareable);
	EQ(fake_cuda_call(library, "cuMemAllocAsync", &pool, 64), CU_OK);
	EQ(cuda_where(driver, (void *)(uintptr_t)pool, &where), OK);
	TRUE(where.is_device && !where.is_shareable && !where.context);
	EQ(driver->mem_free(managed), CU_OK);
	EQ(driver->mem_free(pool), CU_OK);
}

int main(void)
{
	struct cuda_where where = {.bytes = 5};

	library = fake_cuda_load(WEFT_FAKE_CUDA "/now");
	driver = cuda_driver();
	TRUE(driver);
	EQ(cuda_where(driver, &where, &where), OK); /* CUDA has not begun */
	TRUE(!where.is_device);
	EQ(driver->init(0), CU_OK);
	test_device();
	test_host();
	test_special();
	where.bytes = 5;
	EQ(cuda_where(driver, (void *)0xbad, &where), ERR_CUDA);
	EQ(where.bytes, 5); /* untouched on failure */
	return 0;
}
