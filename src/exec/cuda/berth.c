#include "exec/cuda/berth.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "exec/cuda/ferry.h"
#include "link/region.h"

enum {
	WORDS_BYTES = 4096,	   /* at the beginning of a berth's memory */
	BERTH_LEAST = 64 << 10,	   /* berths are of sizes that double */
	LEAST_AT_ONCE = 16,	   /* so many of these are made, as pinning takes long */
	UNDER_WAY_MAX = 256 << 20, /* bytes of calls that are not through */
	CALLS_MAX = 128,	   /* .. and calls */
	HOST_REGISTERED = 1 | 2,   /* of cuMemHostRegister: portable, mapped */
	GONE_MS = 20,		   /* until a stream's part is said to be stuck */
	NAP_US = 50
};

/* The number of the part that has got so far; they are counted from call to call. */
struct berth_words {
	_Atomic uint32_t ready; /* the stream's: what is to be worked on is here */
	_Atomic uint32_t done;	/* the thread's */
	_Atomic uint32_t gone;	/* the stream's: it does not need the berth any more */
};

/* Memory that is pinned at once, of one berth or of several. */
struct berth_block {
	void *memory; /* owned */
	uint32_t berths;
};

struct cuda_berth {
	struct berth_block *block; /* counted */
	struct berth_words *words; /* .. with the berth's memory behind it */
	cu_ptr device;		   /* the words, for the stream */
	size_t bytes;
	_Atomic uint32_t number; /* of the last part of the call that is or was in it */
	_Atomic uint32_t first;	 /* .. and of the last one before that call */
	bool is_kept;		 /* a graph's: every replay finds the words at `first` */
	struct cuda_berth *next;
};

struct cuda_berths {
	cu_context context;
	struct berth_owner owner;
	_Atomic(struct cuda_berth *) list; /* owned; grows at its head */
	atomic_bool is_let_go;
};

enum err cuda_berths_open(struct berth_owner owner, struct cuda_berths **berths)
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
	else
		made->owner = owner;
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
	return !berth->is_kept &&
	       atomic_load(&berth->words->gone) == atomic_load(&berth->number);
}

static enum err block_make(size_t bytes, struct berth_block **block, cu_ptr *device)
{
	const struct cuda_driver *driver = cuda_driver();
	struct berth_block *made = calloc(1, sizeof(*made));
	enum err e = made ? OK : err_set(ERR_SYSTEM, "no memory for device buffers");

	if (!e)
		e = region_alloc(bytes, &made->memory);
	if (!e)
		e = cuda_check(
			driver->mem_host_register(made->memory, bytes, HOST_REGISTERED),
			"pin host memory for device buffers");
	if (!e)
		e = cuda_check(driver->mem_host_device_pointer(device, made->memory, 0),
			"map pinned memory");
	if (e) {
		if (made && made->memory)
			region_free(made->memory);
		free(made);
		return e;
	}
	*block = made;
	return OK;
}

static void block_free(struct berth_block *block)
{
	cuda_driver()->mem_host_unregister(block->memory);
	region_free(block->memory);
	free(block);
}

/* One or more with room for so many bytes, at the head of the list. */
static enum err berths_make(struct cuda_berths *berths, size_t bytes)
{
	uint32_t count = bytes == BERTH_LEAST ? LEAST_AT_ONCE : 1;
	struct berth_block *block;
	cu_ptr device;
	size_t all = count * (WORDS_BYTES + bytes);
	enum err e = block_make(all, &block, &device);

	for (uint32_t i = 0; i < count && !e; i++) {
		size_t offset = i * (WORDS_BYTES + bytes);
		struct cuda_berth *made = calloc(1, sizeof(*made));

		if (!made) {
			e = err_set(ERR_SYSTEM, "no memory for device buffers");
			if (!block->berths)
				block_free(block);
			break;
		}
		block->berths++;
		*made = (struct cuda_berth){.block = block,
			.words = (struct berth_words *)((char *)block->memory + offset),
			.device = device + offset,
			.bytes = bytes,
			.next = berths->list};
		atomic_store(&berths->list, made);
		if (!i)
			berths->owner.made(berths->owner.owner, block->memory, all);
	}
	return e;
}

/* What calls have that are not through. */
struct under_way {
	size_t bytes;
	uint32_t calls;
};

/* The smallest free one that has room; and what is under way in the others. */
static struct cuda_berth *berth_find(
	const struct cuda_berths *berths, size_t bytes, struct under_way *others)
{
	struct cuda_berth *best = NULL;

	*others = (struct under_way){0};
	for (struct cuda_berth *b = berths->list; b; b = b->next)
		if (b->is_kept) {
			continue;
		} else if (!is_free(b)) {
			others->bytes += b->bytes;
			others->calls++;
		} else if (b->bytes >= bytes && (!best || b->bytes < best->bytes)) {
			best = b;
		}
	return others->calls < CALLS_MAX ? best : NULL;
}

/* May there be one more, of so many bytes? One by itself always. */
static bool has_room(const struct under_way *others, size_t bytes)
{
	return !others->calls ||
	       (others->calls < CALLS_MAX && others->bytes + bytes <= UNDER_WAY_MAX);
}

enum err cuda_berth_take(struct cuda_berths *berths, struct berth_wish wish,
	const atomic_int *abort, struct cuda_berth **berth)
{
	size_t room = BERTH_LEAST, bytes = wish.bytes;
	struct under_way others;
	enum err e = OK;
	int mode = 0;

	while (room < bytes && room <= SIZE_MAX / 4)
		room *= 2;
	while (!(*berth = berth_find(berths, bytes, &others)) && !wish.is_behind &&
		!has_room(&others, room) && !atomic_load(abort))
		usleep(NAP_US);
	if (atomic_load(abort))
		return err_set(ERR_REMOTE, "the communicator was aborted");
	if (!*berth) {
		cuda_capture_relax(cuda_driver(), &mode);
		e = berths_make(berths, room);
		cuda_capture_restore(cuda_driver(), mode);
		if (e)
			return e;
		*berth = berths->list;
	}
	atomic_store(&(*berth)->first, atomic_load(&(*berth)->number));
	atomic_fetch_add(&(*berth)->number, wish.parts);
	(*berth)->is_kept = wish.is_kept;
	return OK;
}

char *cuda_berth_memory(const struct cuda_berth *berth)
{
	return (char *)berth->words + WORDS_BYTES;
}

struct berth_passage cuda_berth_passage(const struct cuda_berth *berth)
{
	return (struct berth_passage){.memory = berth->device + WORDS_BYTES,
		.ready = berth->device + offsetof(struct berth_words, ready),
		.done = berth->device + offsetof(struct berth_words, done),
		.gone = berth->device + offsetof(struct berth_words, gone),
		.number = atomic_load(&berth->number)};
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
	return cuda_check(cuda_copy_in(cuda_driver(), (cu_ptr)(uintptr_t)to,
				  cuda_berth_memory(berth) + at, bytes, stream),
		"copy to device memory");
}

static enum err words_submit(struct cu_memop *ops, unsigned count, cu_stream stream)
{
	return cuda_check(cuda_driver()->stream_batch_memop(stream, count, ops, 0),
		"order a stream by memory words");
}

static struct cu_memop word_write(
	const struct cuda_berth *berth, size_t offset, uint32_t value)
{
	return (struct cu_memop){.operation = CU_MEMOP_WRITE_32,
		.address = berth->device + offset,
		.value = value};
}

static struct cu_memop word_await(
	const struct cuda_berth *berth, size_t offset, uint32_t value)
{
	return (struct cu_memop){.operation = CU_MEMOP_WAIT_32,
		.address = berth->device + offset,
		.value = value,
		.flags = CU_WAIT_GEQ};
}

static uint32_t part_number(const struct cuda_berth *berth, uint32_t part)
{
	return atomic_load(&berth->first) + part;
}

enum err cuda_berth_hand_over(struct cuda_berth *berth, uint32_t part, cu_stream stream)
{
	struct cu_memop op = word_write(
		berth, offsetof(struct berth_words, ready), part_number(berth, part));

	return words_submit(&op, 1, stream);
}

enum err cuda_berth_swap(
	struct cuda_berth *berth, uint32_t part, uint32_t awaited, cu_stream stream)
{
	struct cu_memop ops[] = {word_write(berth, offsetof(struct berth_words, ready),
					 part_number(berth, part)),
		word_await(berth, offsetof(struct berth_words, done),
			part_number(berth, awaited))};

	return words_submit(ops, 2, stream);
}

enum err cuda_berth_await(struct cuda_berth *berth, uint32_t part, cu_stream stream)
{
	struct cu_memop op = word_await(
		berth, offsetof(struct berth_words, done), part_number(berth, part));

	return words_submit(&op, 1, stream);
}

enum err cuda_berth_leave(struct cuda_berth *berth, cu_stream stream)
{
	uint32_t first = atomic_load(&berth->first), number = atomic_load(&berth->number);
	struct cu_memop gone = word_write(
		berth, offsetof(struct berth_words, gone), number);
	struct cu_memop again[] = {
		word_write(berth, offsetof(struct berth_words, ready), first),
		word_write(berth, offsetof(struct berth_words, done), first)};

	return berth->is_kept ? words_submit(again, 2, stream)
			      : words_submit(&gone, 1, stream);
}

/* ---- the thread's part ---- */

bool cuda_berth_is_handed_over(const struct cuda_berth *berth)
{
	return atomic_load_explicit(&berth->words->ready, memory_order_acquire) !=
	       atomic_load_explicit(&berth->first, memory_order_relaxed);
}

struct berth_tide cuda_berth_tide(const struct cuda_berth *berth)
{
	return (struct berth_tide){.first = atomic_load(&berth->first),
		.ready = &berth->words->ready,
		.done = &berth->words->done};
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

enum err cuda_berths_settle(struct cuda_berths *berths)
{
	cu_context had = cuda_berths_enter(berths);
	enum err e;
	int mode = 0;

	cuda_capture_relax(cuda_driver(), &mode);
	e = cuda_check(cuda_driver()->context_synchronize(), "wait for the device");
	cuda_capture_restore(cuda_driver(), mode);
	cuda_berths_go(berths, had);
	return e;
}

static void berth_free(struct cuda_berth *berth)
{
	if (!--berth->block->berths)
		block_free(berth->block);
	free(berth);
}

void cuda_berths_close(struct cuda_berths *berths, struct cuda_ferry *ferry)
{
	const struct cuda_driver *driver = cuda_driver();
	cu_context had;
	bool is_let_go, are_all_left = true;
	int mode = 0;

	if (!berths)
		return;
	had = cuda_berths_enter(berths);
	cuda_capture_relax(driver, &mode);
	is_let_go = atomic_load(&berths->is_let_go);
	if (!is_let_go)
		driver->context_synchronize();
	for (struct cuda_berth *b = berths->list, *next; b; b = next) {
		next = b->next;
		if (b->is_kept ? !is_let_go : is_left(b))
			berth_free(b);
		else
			are_all_left = false;
	}
	if (are_all_left)
		cuda_ferry_close(ferry);
	cuda_capture_restore(driver, mode);
	cuda_berths_go(berths, had);
	free(berths);
}
