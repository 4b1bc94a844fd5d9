/* The driver is taken where the program has it, never loaded, and refused by name. */
#include "exec/cuda/driver/driver.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../cuda/fake_cuda.h"
#include "log_text.h"

enum { THREADS = 8 };

static char logged[] = "/tmp/weft-driver-XXXXXX";

/* In a process of its own: what is loaded stays. */
static void child_run(void (*test)(void))
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		test();
		_exit(0);
	}
	EQ(waitpid(pid, &status, 0), pid);
	EQ(status, 0);
}

static void test_none(void)
{
	TRUE(!cuda_driver());
	TRUE(!cuda_driver());
	TRUE(!dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD));
	EQ(cuda_check(CU_OK, "nothing"), OK);
	EQ(cuda_check(2, "asking nobody"), ERR_CUDA);
	EQ_STR(err_last(), "asking nobody: the CUDA driver says an error the driver has "
			   "no name for (2)");
}

static void test_lacking(void)
{
	fake_cuda_load(WEFT_FAKE_CUDA "/lacking");
	TRUE(!cuda_driver());
	TRUE(!cuda_driver());
	EQ(log_count(logged, "libcuda.so.1 has no cuLaunchKernel"), 1);
}

static void test_older(void)
{
	const struct cuda_driver *driver;
	uint64_t word = 0;
	struct cu_memop ops[] = {
		{.operation = CU_MEMOP_WRITE_64, .address = (uintptr_t)&word, .value = 7},
		{.operation = CU_MEMOP_WAIT_64,
			.address = (uintptr_t)&word,
			.value = 7,
			.flags = CU_WAIT_EQ},
	};

	fake_cuda_load(WEFT_FAKE_CUDA "/older");
	driver = cuda_driver();
	TRUE(driver);
	EQ(driver->stream_batch_memop(NULL, 2, ops, 0), CU_OK);
	EQ(word, 7);
	EQ(driver->primary_release(0), CU_OK);
}

static void *thread_ask(void *answer)
{
	*(const struct cuda_driver **)answer = cuda_driver();
	return NULL;
}

static void test_now(void)
{
	const struct cuda_driver *driver, *answers[THREADS];
	pthread_t threads[THREADS];
	char text[32], uuid[16];
	int version = 0;

	TRUE(!cuda_driver()); /* asked too early: looks again */
	fake_cuda_load(WEFT_FAKE_CUDA "/now");
	for (int i = 0; i < THREADS; i++)
		EQ(pthread_create(&threads[i], NULL, thread_ask, &answers[i]), 0);
	for (int i = 0; i < THREADS; i++)
		EQ(pthread_join(threads[i], NULL), 0);
	driver = cuda_driver();
	TRUE(driver);
	for (int i = 0; i < THREADS; i++)
		TRUE(answers[i] == driver);
	EQ(driver->init(0), CU_OK);
	EQ(driver->driver_version(&version), CU_OK);
	EQ(version, 13000);
	EQ(driver->device_bus_id(text, sizeof(text), 0), CU_OK);
	EQ_STR(text, "0000:07:00.0");
	EQ(driver->device_uuid(uuid, 0), CU_OK);
	EQ(uuid[15], 7);
	EQ(cuda_check(CU_INVALID_VALUE, "copying"), ERR_CUDA);
	EQ_STR(err_last(), "copying: the CUDA driver says CUDA_ERROR_INVALID_VALUE (1)");
	EQ(log_count(logged, "libcuda.so.1 has no"), 0);
}

int main(void)
{
	int fd = mkstemp(logged);

	TRUE(fd >= 0);
	close(fd);
	setenv("NCCL_DEBUG", "WARN", 1);
	setenv("NCCL_DEBUG_FILE", logged, 1);
	child_run(test_none);
	child_run(test_now);
	child_run(test_older);
	child_run(test_lacking);
	unlink(logged);
	return 0;
}
