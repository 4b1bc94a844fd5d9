#include "exec/cuda/aside.h"

#include <unistd.h>

#include "base/clock.h"

enum {
	NON_BLOCKING = 1, /* of streams */
	BATCH_MAX = 200,  /* operations the driver takes at a time, and some less */
	LIMIT_MS = 500,
	NAP_US = 50
};

static enum err writes_enqueue(const struct cuda_driver *driver, cu_stream stream,
	struct cu_memop *ops, uint32_t count)
{
	enum err e = OK;

	for (uint32_t done = 0; done < count && !e; done += BATCH_MAX) {
		uint32_t some = count - done < BATCH_MAX ? count - done : BATCH_MAX;

		e = cuda_check(driver->stream_batch_memop(stream, some, ops + done, 0),
			"write words from a second context");
	}
	return e;
}

static enum err writes_await(const struct cuda_driver *driver, cu_stream stream)
{
	uint64_t end = clock_ns() + LIMIT_MS * CLOCK_MS;

	while (driver->stream_query(stream) == CU_NOT_READY) {
		if (clock_ns() > end)
			return err_set(ERR_CUDA,
				"a second context does not get through to the GPU");
		usleep(NAP_US);
	}
	return OK;
}

/* In the context that is current. */
static enum err writes_do(
	const struct cuda_driver *driver, struct cu_memop *ops, uint32_t count)
{
	cu_stream stream = NULL;
	enum err e = cuda_check(
		driver->stream_create(&stream, NON_BLOCKING), "make a stream");

	if (e)
		return e;
	e = writes_enqueue(driver, stream, ops, count);
	if (!e)
		e = writes_await(driver, stream);
	driver->stream_destroy(stream);
	return e;
}

enum err aside_write(
	const struct cuda_driver *driver, struct cu_memop *ops, uint32_t count)
{
	cu_context had = NULL, made = NULL;
	cu_device device;
	enum err e = cuda_check(driver->context_get(&had), "ask for the context");

	if (!e)
		e = cuda_check(driver->context_device(&device), "ask for the device");
	if (!e && !driver->context_create)
		e = err_set(ERR_CUDA, "the driver makes no second context");
	if (!e)
		e = cuda_check(driver->context_create(&made, 0, device),
			"make a second context");
	if (e)
		return e;
	e = writes_do(driver, ops, count);
	driver->context_destroy(made);
	driver->context_set(had);
	return e;
}
