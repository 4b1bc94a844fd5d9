/*
 * reach.c - where the other ranks are: which way these ranks can go together, and the
 * memory of theirs that it needs.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "exec/cuda/driver/share.h"
#include "exec/cuda/state.h"

enum { BLOCKS_TOGETHER = 2 }; /* on a multiprocessor, of ours, in any case */

static bool is_same_gpu(const struct cuda_hello *a, const struct cuda_hello *b)
{
	return !memcmp(a->uuid, b->uuid, sizeof(a->uuid));
}

/* Which way these ranks can go together. */
static enum err way_choose(
	struct cuda_engine *engine, const struct cuda_hello *const *hellos)
{
	const struct cuda_hello *mine = hellos[engine->rank];
	uint32_t n = engine->rank_count, beside = 0, here = 0;
	bool is_mps = true, is_one_context = true;

	engine->reach.is_one_device = true;
	for (uint32_t r = 0; r < n; r++) {
		engine->reach.is_one_device &= is_same_gpu(hellos[r], mine);
		beside += is_same_gpu(hellos[r], mine);
		here += is_same_gpu(hellos[r], mine) && hellos[r]->pid == mine->pid;
		is_one_context &= hellos[r]->context == mine->context;
		is_mps &= hellos[r]->is_mps;
	}
	if (engine->reach.is_one_device && here == n && !is_one_context)
		return err_set(ERR_USAGE,
			"%u threads of process %u share a GPU with a context each: use "
			"the device's primary context (cudaSetDevice) in all of them",
			n, mine->pid);
	if (engine->reach.is_one_device && here == n)
		engine->way = &way_threads;
	else if (here > 1)
		return err_set(ERR_USAGE,
			"%u ranks of process %u share a GPU and others live elsewhere: "
			"make them all threads of one process, or a process each",
			here, mine->pid);
	else if (is_mps || beside == 1)
		engine->way = &way_resident;
	else if (engine->reach.is_one_device)
		engine->way = &way_leader;
	else
		return err_set(ERR_USAGE,
			"%u ranks share a GPU, others are on another one, and there is "
			"no MPS server that lets kernels of several processes run "
			"together: start nvidia-cuda-mps-control, or use a GPU per rank",
			beside);
	return OK;
}

/* How many blocks run together, of one rank and of all on a GPU: as the fewest anywhere,
 * because the ranks' grids must be equal. */
static void blocks_agree(
	struct cuda_engine *engine, const struct cuda_hello *const *hellos)
{
	engine->reach.blocks = RESIDENT_BLOCKS_MAX;
	engine->reach.blocks_all = UINT32_MAX;
	for (uint32_t r = 0; r < engine->rank_count; r++) {
		unsigned all = hellos[r]->multiprocessors * BLOCKS_TOGETHER;
		uint32_t others = 0;

		for (uint32_t s = 0; s < engine->rank_count; s++)
			others += s != r && is_same_gpu(hellos[r], hellos[s]);
		if (all < engine->reach.blocks_all)
			engine->reach.blocks_all = all;
		if (all / (others + 1) < engine->reach.blocks)
			engine->reach.blocks = all / (others + 1);
	}
	if (!engine->reach.blocks)
		engine->reach.blocks = 1;
}

/* ---- what ranks of one process lend each other ---- */

struct lent {
	struct lent *next;
	const struct cuda_engine *owner; /* NULL: it has gone */
	cu_context context;		 /* the owner's */
	cu_ptr ptr;
	uint32_t users;
};

/* The lock guards the list. */
static pthread_mutex_t lent_lock = PTHREAD_MUTEX_INITIALIZER;
static struct lent *lents;

enum err lent_make(const struct cuda_engine *engine, cu_ptr ptr)
{
	struct lent *made = calloc(1, sizeof(*made));

	if (!made)
		return err_set(ERR_SYSTEM, "no memory for a CUDA engine");
	pthread_mutex_lock(&lent_lock);
	*made = (struct lent){lents, engine, engine->context, ptr, 1};
	lents = made;
	pthread_mutex_unlock(&lent_lock);
	return OK;
}

/* False: it is not there. */
static bool lent_count(cu_ptr ptr, uint32_t more)
{
	struct lent *lent;

	pthread_mutex_lock(&lent_lock);
	lent = lents;
	while (lent && lent->ptr != ptr)
		lent = lent->next;
	if (lent)
		lent->users += more;
	pthread_mutex_unlock(&lent_lock);
	return lent != NULL;
}

bool lent_take(cu_ptr ptr)
{
	return lent_count(ptr, 1);
}

void lent_drop(cu_ptr ptr)
{
	lent_count(ptr, (uint32_t)-1);
}

/* Has an engine of its context yet to go, which frees it then? With the lock. */
static bool is_anothers(const struct lent *lent, const struct cuda_engine *engine)
{
	const struct lent *other = lents;

	while (other && (!other->owner || other->context != lent->context))
		other = other->next;
	return lent->context != engine->context && other;
}

/* One that nobody uses, taken out; NULL: there is none. */
static struct lent *lent_unused(const struct cuda_engine *engine)
{
	struct lent **link, *found;

	pthread_mutex_lock(&lent_lock);
	for (found = lents; found; found = found->next)
		if (found->owner == engine)
			found->owner = NULL;
	link = &lents;
	while (*link && ((*link)->users || is_anothers(*link, engine)))
		link = &(*link)->next;
	found = *link;
	if (found)
		*link = found->next;
	pthread_mutex_unlock(&lent_lock);
	return found;
}

void lent_sweep(const struct cuda_engine *engine)
{
	const struct cuda_driver *driver = engine->driver;
	struct lent *lent;

	while ((lent = lent_unused(engine))) {
		if (!driver->context_set(lent->context))
			driver->mem_free(lent->ptr);
		free(lent);
	}
	driver->context_set(engine->context);
}

/* ---- halls ---- */

/* Of a rank of this process. */
static cu_result hall_here(struct cuda_engine *engine, uint32_t rank)
{
	const struct cuda_hello *hello = &engine->reach.hellos[rank];
	cu_context there = (cu_context)(uintptr_t)hello->context;
	cu_result result = CU_OK;

	if (there != engine->context &&
		!is_same_gpu(hello, &engine->reach.hellos[engine->rank]))
		result = engine->driver->peer_access(there, 0);
	if (result && result != CU_PEER_ACCESS_ALREADY)
		return result;
	if (!lent_take(hello->hall))
		return CU_INVALID_VALUE;
	engine->reach.halls[rank] = hello->hall;
	return CU_OK;
}

enum err engine_hall(struct cuda_engine *engine, uint32_t rank, cu_ptr *hall)
{
	const struct cuda_hello *hello = &engine->reach.hellos[rank];
	bool is_here = hello->pid == engine->reach.hellos[engine->rank].pid;
	cu_result result = CU_OK;

	if (!engine->reach.halls[rank] && is_here)
		result = hall_here(engine, rank);
	else if (!engine->reach.halls[rank]) {
		result = engine->driver->ipc_open(
			&engine->reach.halls[rank], hello->hall_handle, CU_IPC_LAZY_PEER);
		engine->reach.is_mapped[rank] = !result;
	}
	*hall = engine->reach.halls[rank];
	if (!result)
		return OK;
	return err_set(ERR_CUDA,
		"rank %u cannot reach the device memory of rank %u (the driver says %d): "
		"are both GPUs visible to both, with peer access between them?",
		engine->rank, rank, result);
}

static enum err halls_connect(struct cuda_engine *engine)
{
	enum err e = OK;
	cu_ptr hall;

	for (uint32_t r = 0; r < engine->rank_count && !e; r++)
		if (engine->way->needs_hall(engine, r))
			e = engine_hall(engine, r, &hall);
	/* no peer access is no failure: there are slots in host memory */
	engine->reach.is_apart = e && !engine->reach.is_one_device;
	return engine->reach.is_apart ? OK : e;
}

static enum err ledgers_connect(struct cuda_engine *engine)
{
	struct ledger_address addresses[MOVES_RANKS_MAX];

	for (uint32_t r = 0; r < engine->rank_count; r++)
		addresses[r] = engine->reach.hellos[r].ledger;
	return ledger_connect(engine->ledger, addresses);
}

static enum err hellos_keep(
	struct cuda_engine *engine, const struct cuda_hello *const *hellos)
{
	struct reach *reach = &engine->reach;

	reach->hellos = calloc(engine->rank_count, sizeof(*reach->hellos));
	if (!reach->hellos)
		return err_set(ERR_SYSTEM, "no memory for a CUDA engine");
	reach->can_pass_fds = engine->driver->physical_import != NULL;
	for (uint32_t r = 0; r < engine->rank_count; r++) {
		reach->hellos[r] = *hellos[r];
		if (hellos[r]->pid != hellos[engine->rank]->pid && reach->can_pass_fds)
			reach->can_pass_fds = cuda_share_can_pass(
				hellos[r]->pid, (int)hellos[r]->desk.fd);
	}
	return OK;
}

/* Where messages pass through trays, and all ranks have them. */
static enum err trays_meet(struct cuda_engine *engine)
{
	struct trays_address addresses[MOVES_RANKS_MAX];
	bool are_used = engine->way->passes != NULL;

	for (uint32_t r = 0; r < engine->rank_count; r++) {
		addresses[r] = engine->reach.hellos[r].trays;
		are_used = are_used && addresses[r].pid;
	}
	if (are_used)
		return trays_connect(engine->reach.trays, engine->driver, addresses);
	trays_close(engine->reach.trays);
	engine->reach.trays = NULL;
	return OK;
}

enum err cuda_engine_connect(
	struct cuda_engine *engine, const struct cuda_hello *const *hellos)
{
	enum err e = way_choose(engine, hellos);

	if (e)
		return e;
	blocks_agree(engine, hellos);
	e = hellos_keep(engine, hellos);
	if (!e)
		e = engine->way->open(engine);
	if (!e)
		e = ledgers_connect(engine);
	if (!e)
		e = trays_meet(engine);
	return e ? e : halls_connect(engine);
}

bool cuda_engine_passes_fds(const struct cuda_engine *engine)
{
	return engine->reach.can_pass_fds;
}

void cuda_engine_pass_fds(struct cuda_engine *engine, bool is_allowed)
{
	engine->reach.can_pass_fds = is_allowed;
}

bool cuda_engine_is_apart(const struct cuda_engine *engine)
{
	return engine->reach.is_apart;
}
