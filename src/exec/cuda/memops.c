#include "base/log.h"
#include "exec/cuda/state.h"

enum {
	BATCH_MAX = 200,	/* operations the driver takes at a time, and some less */
	FREE_WAIT = 0x3fffffff, /* so far ahead that every wait is over */
	FREE_BYTE = 2		/* of a word that is 1 while something is there */
};

struct cu_memop memop_write_64(cu_ptr address, uint64_t value)
{
	return (struct cu_memop){
		.operation = CU_MEMOP_WRITE_64, .address = address, .value = value};
}

struct cu_memop memop_write(cu_ptr address, uint32_t value)
{
	return (struct cu_memop){
		.operation = CU_MEMOP_WRITE_32, .address = address, .value = value};
}

struct cu_memop memop_wait(cu_ptr address, uint32_t value)
{
	return (struct cu_memop){.operation = CU_MEMOP_WAIT_32,
		.address = address,
		.value = value,
		.flags = CU_WAIT_GEQ};
}

enum err memops_submit(struct cuda_engine *engine, cu_stream stream, struct cu_memop *ops,
	uint32_t count)
{
	for (uint32_t done = 0; done < count;) {
		uint32_t some = count - done < BATCH_MAX ? count - done : BATCH_MAX;
		cu_result result = engine->driver->stream_batch_memop(
			stream, some, ops + done, 0);

		if (result)
			return cuda_check(result, "order a stream by memory words");
		done += some;
	}
	return OK;
}

cu_ptr mail_at(cu_ptr hall, bool is_constant, uint32_t rank, size_t offset)
{
	size_t mails = is_constant ? offsetof(struct dev_hall, constant)
				   : offsetof(struct dev_hall, mail);

	return hall + mails + rank * sizeof(struct dev_mail) + offset;
}

static void mails_free(struct cuda_engine *engine)
{
	struct cu_memop ops[4 * MOVES_RANKS_MAX];
	cu_ptr hall = engine->halls[0];
	uint32_t count = 0;

	if (!hall)
		return;
	ops[count++] = memop_write(
		mail_at(hall, false, 0, offsetof(struct dev_mail, done)),
		engine->call + FREE_WAIT);
	for (uint32_t r = 1; r < engine->rank_count; r++) {
		ops[count++] = memop_write(
			mail_at(hall, false, r, offsetof(struct dev_mail, ready)),
			engine->call + FREE_WAIT);
		ops[count++] = memop_write(
			mail_at(hall, true, r, offsetof(struct dev_mail, ready)),
			FREE_WAIT);
		ops[count++] = memop_write(
			mail_at(hall, true, r, offsetof(struct dev_mail, done)),
			FREE_WAIT);
	}
	memops_submit(engine, engine->watcher, ops, count);
}

/* Sends, receives and signals wait on words of this rank's own hall. */
static void boxes_free(struct cuda_engine *engine)
{
	size_t from = offsetof(struct dev_hall, boxes);
	size_t to = offsetof(struct dev_hall, signals);
	struct cu_memop ops[MOVES_RANKS_MAX];

	engine->driver->memset_async(
		engine->hall + from, FREE_BYTE, to - from, engine->watcher);
	for (uint32_t r = 0; r < engine->rank_count; r++)
		ops[r] = memop_write(engine->hall + to + r * sizeof(uint32_t),
			engine->awaited[r] + FREE_WAIT);
	memops_submit(engine, engine->watcher, ops, engine->rank_count);
}

void memops_free(struct cuda_engine *engine)
{
	if (engine->way == CUDA_WAY_LEADER)
		mails_free(engine);
	boxes_free(engine);
	engine->driver->stream_synchronize(engine->watcher);
}
