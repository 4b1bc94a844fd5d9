#include "exec/cuda/berth.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "link/region.h"

enum {
	WORDS_BYTES = 4096,	   /* at the beginning of a berth's memory */
	BERTH_LEAST = 64 << 10,	   /* berths are of sizes that double */
	UNDER_WAY_MAX = 512 << 20, /* bytes of calls that are not through */
	HOST_REGISTERED = 1 | 2,   /* of cuMemHostRegister: portable, mapped */
	GONE_MS = 20,		   /* until a stream's part is said to be stuck */
	NAP_US = 50
};

/* The number of the call that has got so far. */
struct berth_words {
	_Atomic uint32_t ready; /* the stream's: what is to be worked on is here */
	_Atomic uint32_t done;	/* the thread's */
	_Atomic uint32_t gone;	/* the stream's: it does not need the berth any more */
};

struct cuda_berth {
	struct berth_words *words; /* owned, with the memory behind it */
	cu_ptr device;		   /* the words, for the stream */
	size_t bytes;
	_Atomic uint32_t number; /* of the call that is or was in it */
	struct cuda_berth *next;
};

struct cuda_berths {
	cu_context context;
	_Atomic(struct cuda_berth *) list; /* owned; grows at its head */
	atomic_bool is_let_go;
};

enum err cuda_berths_open(struct cuda_berths **berths)
{
	struct cuda_berths *made = calloc(1, sizeof(*made));
	enum err e = made ? OK : err_set(ERR_SYSTEM, "no memory for device buffers");

	if (!e)
		e = cuda_check(cuda_driver()->context_get(&made->context),
			"ask for the current context");
	if (!e && !made->context)
		e = err_set(ERR_USAGE,
			"no CUDA context is current: call cudaSetDevice first");
	if (e)
		free(made);
	*berths = e ? NULL : made;
	return e;
}

cu_context cuda_berths_enter(const struct cuda_berths *berths)
{
	cu_context had = NULL;

	cuda_driver()->context_get(&had);
	if (had != berths->context)
		cuda_driver()->context_set(berths->context);
	return had;
}

void cuda_berths_go(const struct cuda_berths *berths, cu_context had)
{
	if (had != berths->context)
		cuda_driver()->context_set(had);
}

static bool is_free(const struct cuda_berth *berth)
{
	return atomic_load(&berth->words->gone) == atomic_load(&berth->number);
}

static enum err berth_make(size_t bytes, struct cuda_berth **berth)
{
	const struct cuda_driver *driver = cuda_driver();
	struct cuda_berth *made = calloc(1, sizeof(*made));
	void *memory = NULL;
	enum err e = made ? OK : err_set(ERR_SYSTEM, "no memory for device buffers");

	if (!e)
		e = region_alloc(WORDS_BYTES + bytes, &memory);
	if (!e)
		e = cuda_check(driver->mem_host_register(
				       memory, WORDS_BYTES + bytes, HOST_REGISTERED),
			"pin host memory for device buffers");
	if (!e)
		e = cuda_check(driver->mem_host_device_pointer(&made->device, memory, 0),
			"map pinned memory");
	if (e) {
		if (memory)
			region_free(memory);
		free(made);
		return e;
	}
	made->words = memory;
	made->bytes = bytes;
	*berth = made;
	return OK;
}

/* The smallest free one that has room; and how much is under way in the others. */
static struct cuda_berth *berth_find(
	const struct cuda_berths *berths, size_t bytes, size_t *under_way)
{
	struct cuda_berth *best = NULL;

	*under_way = 0;
	for (struct cuda_berth *b = berths->list; b; b = b->next)
		if (!is_free(b))
			*under_way += b->bytes;
		else if (b->bytes >= bytes && (!best || b->bytes < best->bytes))
			best = b;
	return best;
}

enum err cuda_berth_take(struct cuda_berths *berths, size_t bytes,
	const atomic_int *abort, struct cuda_berth **berth)
{
	size_t under_way, room = BERTH_LEAST;
	enum err e = OK;
	int mode = 0;

	while (room < bytes && room <= SIZE_MAX / 4)
		room *= 2;
	while (!(*berth = berth_find(berths, bytes, &under_way)) && under_way &&
		under_way + room > UNDER_WAY_MAX && !atomic_load(abort))
		usleep(NAP_US);
	if (atomic_load(abort))
		return err_set(ERR_REMOTE, "the communicator was aborted");
	if (!*berth) {
		cuda_capture_relax(cuda_driver(), &mode);
		e = berth_make(room, berth);
		cuda_capture_restore(cuda_driver(), mode);
		if (e)
			return e;
		(*berth)->next = berths->list;
		atomic_store(&berths->list, *berth);
	}
	atomic_fetch_add(&(*berth)->number, 1);
	return OK;
}

char *cuda_berth_memory(const struct cuda_berth *berth)
{
	return (char *)berth->words + WORDS_BYTES;
}

/* ---- the stream's part ---- */

enum err cuda_berth_load(struct cuda_berth *berth, size_t at, const void *from,
	size_t bytes, cu_stream stream)
{
	return cuda_check(cuda_driver()->memcpy_async(berth->device + WORDS_BYTES + at,
				  (cu_ptr)(uintptr_t)from, bytes, stream),
		"copy from device memory");
}

enum err cuda_berth_unload(
	struct cuda_berth *berth, size_t at, void *to, size_t bytes, cu_stream stream)
{
	return cuda_check(cuda_driver()->memcpy_async((cu_ptr)(uintptr_t)to,
				  berth->device + WORDS_BYTES + at, bytes, stream),
		"copy to device memory");
}

static enum err word_submit(
	const struct cuda_berth *berth, size_t offset, bool is_wait, cu_stream stream)
{
	struct cu_memop op = {.operation = is_wait ? CU_MEMOP_WAIT_32 : CU_MEMOP_WRITE_32,
		.address = berth->device + offset,
		.value = atomic_load(&berth->number),
		.flags = is_wait ? CU_WAIT_GEQ : 0};

	return cuda_check(cuda_driver()->stream_batch_memop(stream, 1, &op, 0),
		"order a stream by memory words");
}

enum err cuda_berth_hand_over(struct cuda_berth *berth, cu_stream stream)
{
	return word_submit(berth, offsetof(struct berth_words, ready), false, stream);
}

enum err cuda_berth_await(struct cuda_berth *berth, cu_stream stream)
{
	return word_submit(berth, offsetof(struct berth_words, done), true, stream);
}

enum err cuda_berth_leave(struct cuda_berth *berth, cu_stream stream)
{
	return word_submit(berth, offsetof(struct berth_words, gone), false, stream);
}

/* ---- the thread's part ---- */

bool cuda_berth_is_handed_over(const struct cuda_berth *berth)
{
	return atomic_load_explicit(&berth->words->ready, memory_order_acquire) ==
	       atomic_load_explicit(&berth->number, memory_order_relaxed);
}

void cuda_berth_hand_back(struct cuda_berth *berth)
{
	atomic_store(&berth->words->done, atomic_load(&berth->number));
}

/* ---- the end ---- */

void cuda_berths_let_go(struct cuda_berths *berths)
{
	atomic_store(&berths->is_let_go, true);
	for (struct cuda_berth *b = berths->list; b; b = b->next)
		cuda_berth_hand_back(b);
}

/* Its stream may be behind other work, of which nobody knows when it ends. */
static bool is_left(const struct cuda_berth *berth)
{
	uint64_t end = clock_ns() + GONE_MS * CLOCK_MS;

	while (!is_free(berth)) {
		if (clock_ns() > end)
			return false;
		usleep(NAP_US);
	}
	return true;
}

static void berth_free(struct cuda_berth *berth)
{
	cuda_driver()->mem_host_unregister(berth->words);
	region_free(berth->words);
	free(berth);
}

void cuda_berths_close(struct cuda_berths *berths)
{
	const struct cuda_driver *driver = cuda_driver();
	cu_context had;
	int mode = 0;

	if (!berths)
		return;
	had = cuda_berths_enter(berths);
	cuda_capture_relax(driver, &mode);
	if (!atomic_load(&berths->is_let_go))
		driver->context_synchronize();
	for (struct cuda_berth *b = berths->list, *next; b; b = next) {
		next = b->next;
		if (is_left(b))
			berth_free(b);
	}
	cuda_capture_restore(driver, mode);
	cuda_berths_go(berths, had);
	free(berths);
}
