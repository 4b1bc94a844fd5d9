/*
 * seen.c - what the addresses are that calls come with: the driver is asked once, and
 * then only whether it is still the same memory.
 */
#include "exec/cuda/state.h"

/* What an address was found to be before; or a place for that, with another address. */
static struct seen_pointer *seen_find(struct cuda_engine *engine, const void *ptr)
{
	struct seen_pointer *seen = engine->seen.list;

	while (seen < engine->seen.list + SEEN_MAX && seen->ptr != ptr)
		seen++;
	return seen < engine->seen.list + SEEN_MAX
		       ? seen
		       : &engine->seen.list[engine->seen.next++ % SEEN_MAX];
}

static enum err seen_look(
	struct cuda_engine *engine, const void *ptr, struct seen_pointer *seen)
{
	enum err e = cuda_where(engine->driver, ptr, &seen->where);

	seen->ptr = e ? NULL : ptr;
	return e;
}

/* To ask the driver takes many threads at once a microsecond and more each. They do not
 * map each other's memory, so that it does not matter when an address is another
 * allocation of the GPU's by now; that it has become the host's is not thought of. */
static bool is_trusted(const struct cuda_engine *engine, const struct seen_pointer *seen)
{
	return engine->way->is_one_process && seen->where.is_device &&
	       seen->where.is_shareable;
}

enum err engine_where(
	struct cuda_engine *engine, const void *ptr, struct cuda_where *where)
{
	struct seen_pointer *seen = seen_find(engine, ptr);
	enum err e = OK;

	if (seen->ptr != ptr ||
		(seen->moment != engine->now.moment && !is_trusted(engine, seen) &&
			!cuda_where_is_same(engine->driver, ptr, &seen->where)))
		e = seen_look(engine, ptr, seen);
	seen->moment = engine->now.moment;
	*where = seen->where;
	return e;
}

enum err engine_where_now(
	struct cuda_engine *engine, const void *ptr, struct cuda_where *where)
{
	struct seen_pointer *seen = seen_find(engine, ptr);
	enum err e = seen_look(engine, ptr, seen);

	*where = seen->where;
	return e;
}
