#include "exec/cuda/meet/trays.h"

#include <stdlib.h>
#include <unistd.h>

#include "exec/cuda/lists/moves_abi.h"
#include "link/region.h"

enum {
	PAGE = 4096,
	HOST_REGISTERED = 1 | 2 /* of cuMemHostRegister: portable, mapped */
};

/* At the beginning of a tray's memory, with the slots behind it. The sender's stream
 * writes one, the receiver's the other. */
struct tray_words {
	uint32_t filled, unused[15];
	uint32_t emptied, unused2[15];
};
_Static_assert(sizeof(struct tray_words) <= PAGE, "the words fit before the slots");

struct trays {
	const struct cuda_driver *driver; /* borrowed */
	uint32_t rank, rank_count;
	size_t slot_bytes;
	char *own;					       /* owned */
	char *maps[MOVES_RANKS_MAX];			       /* owned: the others' */
	struct tray in[MOVES_RANKS_MAX], out[MOVES_RANKS_MAX]; /* pinned: with slots */
};

static size_t tray_bytes(const struct trays *trays)
{
	return PAGE + TRAY_SLOTS * trays->slot_bytes;
}

/* Of a rank's: the others' trays in their order, then its own. */
static size_t trays_bytes(const struct trays *trays)
{
	return (trays->rank_count - 1) * tray_bytes(trays) + PAGE + trays->slot_bytes;
}

static size_t tray_offset(const struct trays *trays, uint32_t owner, uint32_t from)
{
	if (from == owner)
		return (trays->rank_count - 1) * tray_bytes(trays);
	return (from - (from > owner)) * tray_bytes(trays);
}

enum err trays_open(uint32_t rank, uint32_t rank_count, struct trays **trays,
	struct trays_address *address)
{
	struct trays *made = calloc(1, sizeof(*made));
	struct region region;
	void *own = NULL;
	enum err e;

	if (!made)
		return err_set(ERR_SYSTEM, "no memory for messages");
	made->rank = rank;
	made->rank_count = rank_count;
	made->slot_bytes = TRAY_SLOTS_BYTES / rank_count / PAGE * PAGE;
	e = region_alloc(trays_bytes(made), &own);
	if (e) {
		free(made);
		return e;
	}
	made->own = own;
	region_find(own, 1, &region);
	*address = (struct trays_address){(uint32_t)getpid(), (uint32_t)region.fd};
	*trays = made;
	return OK;
}

enum err trays_connect(struct trays *trays, const struct cuda_driver *driver,
	const struct trays_address *addresses)
{
	enum err e = OK;

	trays->driver = driver;
	for (uint32_t r = 0; r < trays->rank_count && !e; r++) {
		void *map = NULL;

		if (r == trays->rank)
			continue;
		e = region_map_peer((int)addresses[r].pid, (int)addresses[r].fd,
			trays_bytes(trays), &map);
		trays->maps[r] = map;
	}
	return e;
}

size_t trays_slot_bytes(const struct trays *trays)
{
	return trays->slot_bytes;
}

/* What is pinned of a tray. */
static size_t tray_length(const struct trays *trays, uint32_t owner, uint32_t from)
{
	return owner == from ? PAGE + trays->slot_bytes : tray_bytes(trays);
}

/* `memory` is a tray of `bytes`. */
static enum err tray_open(
	const struct trays *trays, char *memory, size_t bytes, struct tray *tray)
{
	cu_ptr device = 0;
	enum err e = cuda_check(
		trays->driver->mem_host_register(memory, bytes, HOST_REGISTERED),
		"pin host memory for messages");

	if (e)
		return e;
	e = cuda_check(trays->driver->mem_host_device_pointer(&device, memory, 0),
		"map pinned memory");
	if (e) {
		trays->driver->mem_host_unregister(memory);
		return e;
	}
	tray->slots = memory + PAGE;
	tray->filled = device + offsetof(struct tray_words, filled);
	tray->emptied = device + offsetof(struct tray_words, emptied);
	return OK;
}

enum err trays_out(struct trays *trays, uint32_t to, struct tray **tray)
{
	struct tray *out = &trays->out[to];
	char *memory;
	enum err e;

	*tray = out;
	if (out->slots)
		return OK;
	memory = trays->maps[to] + tray_offset(trays, to, trays->rank);
	e = tray_open(trays, memory, tray_bytes(trays), out);
	if (!e)
		atomic_store(
			&out->awaited, &((struct tray_words *)(void *)memory)->emptied);
	return e;
}

enum err trays_in(struct trays *trays, uint32_t from, struct tray **tray)
{
	struct tray *in = &trays->in[from];
	char *memory = trays->own + tray_offset(trays, trays->rank, from);
	enum err e;

	*tray = in;
	if (in->slots)
		return OK;
	e = tray_open(trays, memory, tray_length(trays, trays->rank, from), in);
	if (!e && from != trays->rank)
		atomic_store(
			&in->awaited, &((struct tray_words *)(void *)memory)->filled);
	return e;
}

char *tray_slot(const struct trays *trays, const struct tray *tray, uint32_t number)
{
	return tray->slots + number % TRAY_SLOTS * trays->slot_bytes;
}

static uint32_t *awaited_of(const struct tray *tray)
{
	return atomic_load_explicit(&tray->awaited, memory_order_acquire);
}

bool tray_is_emptied(const struct tray *out, uint32_t number)
{
	uint32_t word = __atomic_load_n(awaited_of(out), __ATOMIC_ACQUIRE);

	return (int32_t)(word - number) >= 0;
}

static void tray_let_go(struct tray *tray, uint32_t beyond)
{
	uint32_t *word = awaited_of(tray);

	if (word)
		__atomic_store_n(
			word, atomic_load(&tray->number) + beyond, __ATOMIC_RELEASE);
}

void trays_let_go(struct trays *trays, uint32_t beyond)
{
	for (uint32_t r = 0; trays && r < trays->rank_count; r++) {
		tray_let_go(&trays->in[r], beyond);
		tray_let_go(&trays->out[r], beyond);
	}
}

static void tray_close(const struct trays *trays, const struct tray *tray)
{
	if (tray->slots)
		trays->driver->mem_host_unregister(tray->slots - PAGE);
}

void trays_close(struct trays *trays)
{
	if (!trays)
		return;
	for (uint32_t r = 0; r < trays->rank_count; r++) {
		tray_close(trays, &trays->in[r]);
		tray_close(trays, &trays->out[r]);
		if (trays->maps[r])
			region_unmap(trays->maps[r], trays_bytes(trays));
	}
	region_free(trays->own);
	free(trays);
}
