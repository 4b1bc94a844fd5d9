#include "api/check.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api/live.h"
#include "base/param.h"

/* No system gives a program more than half of 57 bits to address memory with. */
enum { ADDRESS_BITS = 56 };

enum err check_pointer(const void *pointer, const char *function, const char *name)
{
	if (!pointer)
		return err_set(ERR_ARGUMENT, "%s: %s is NULL", function, name);
	return OK;
}

enum err check_handle(struct comm *comm, const char *function)
{
	if (!comm)
		return err_set(ERR_ARGUMENT, "%s: comm is NULL", function);
	if (!live_is(LIVE_COMM, comm))
		return err_set(ERR_ARGUMENT,
			"%s: corrupted comm object detected, %p is no communicator or "
			"was destroyed",
			function, (void *)comm);
	return OK;
}

/* The stored result as this call's. A stored failure had its sentence when it happened;
 * it is the cause, so it is not replaced by a poorer one. */
static enum err check_stored(struct comm *comm, const char *function)
{
	enum err stored = comm_async_get(comm);
	char reason[ERR_TEXT_BYTES];

	if (!stored)
		return OK;
	if (stored == ERR_PROGRESS)
		return err_set(stored,
			"%s: the previous call on comm %p has not finished", function,
			(void *)comm);
	if (comm_reason(comm, reason, sizeof(reason)) && reason[0])
		err_adopt(reason);
	else
		err_set(stored, "%s: comm %p has failed before: %s", function,
			(void *)comm, err_name(stored));
	return stored;
}

enum err check_ready(struct comm *comm, const char *function)
{
	enum err e = check_handle(comm, function);

	return e ? e : check_stored(comm, function);
}

enum err check_not_finalized(struct comm *comm, const char *function)
{
	enum err e = check_handle(comm, function);

	if (!e && comm_is_finalized(comm))
		e = err_set(ERR_USAGE,
			"%s: comm %p was finalized: it can only be destroyed or aborted",
			function, (void *)comm);
	return e;
}

enum err check_comm(struct comm *comm, const char *function)
{
	enum err e = check_handle(comm, function);

	if (e)
		return e;
	if (comm_is_revoked(comm))
		return err_set(ERR_USAGE, "%s: communicator was revoked", function);
	if (comm_is_suspended(comm))
		return err_set(ERR_USAGE,
			"%s: the communicator is suspended: call ncclCommResume first",
			function);
	e = check_stored(comm, function);
	return e || !comm_is_finalized(comm) ? e : check_not_finalized(comm, function);
}

static enum err check_root(const struct call_args *args)
{
	uint32_t rank_count = comm_rank_count(args->comm);
	const char *name = args->kind == CALL_COLL ? "root" : "peer";

	if (args->root < 0 || (uint32_t)args->root >= rank_count)
		return err_set(ERR_ARGUMENT,
			"%s: invalid %s %d (%s should be in the 0..%u range)",
			args->function, name, args->root, name, rank_count - 1);
	return OK;
}

static enum err check_op(const struct call_args *args, struct comm_op *op)
{
	if (args->op < 0)
		return err_set(ERR_ARGUMENT, "%s: invalid reduction operation %d",
			args->function, args->op);
	if (args->op < ncclNumOps) {
		*op = (struct comm_op){.op = (enum redop)args->op};
		return OK;
	}
	return comm_redop_resolve(args->comm, args->op, (enum dtype)args->type, op);
}

/* Only in check mode: is all of the range mapped? MS_ASYNC makes msync() walk the
 * mappings, report a hole and do nothing else. */
static enum err check_mapped(
	const struct call_args *args, const char *name, const void *pointer, size_t bytes)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t first = (uintptr_t)pointer & ~(page - 1);

	if (bytes && msync((void *)first, (uintptr_t)pointer + bytes - first, MS_ASYNC) &&
		errno == ENOMEM)
		return err_set(ERR_ARGUMENT, "%s : %s %p is not a valid pointer",
			args->function, name, pointer);
	return OK;
}

/* What all ranks hold together fits in memory, so that no sum below or in a plan can
 * overflow. */
static enum err check_count(const struct call_args *args)
{
	size_t ranks = args->kind == CALL_COLL ? comm_rank_count(args->comm) : 1;
	size_t bytes;

	if (__builtin_mul_overflow(
		    args->count, dtype_size((enum dtype)args->type), &bytes) ||
		__builtin_mul_overflow(bytes, ranks, &bytes) || bytes >> ADDRESS_BITS)
		return err_set(ERR_ARGUMENT, "%s: count %zu does not fit in memory",
			args->function, args->count);
	return OK;
}

/* After check_count(). */
static enum err check_buffer(const struct call_args *args, const char *name,
	const void *pointer, uint32_t blocks)
{
	size_t bytes = args->count * dtype_size((enum dtype)args->type) * blocks;

	if (!bytes)
		return OK;
	if (!pointer)
		return err_set(ERR_ARGUMENT, "%s : %s %p is not a valid pointer",
			args->function, name, pointer);
	if (bytes > UINTPTR_MAX - (uintptr_t)pointer)
		return err_set(ERR_ARGUMENT, "%s: count %zu does not fit in memory",
			args->function, args->count);
	return OK;
}

static enum err check_buffers(const struct call_args *args)
{
	struct call_blocks blocks = comm_call_blocks(
		args->comm, args->kind, args->coll, (uint32_t)args->root);
	size_t block = args->count * dtype_size((enum dtype)args->type);
	enum err e = check_buffer(args, "sendbuff", args->in, blocks.in);

	if (!e)
		e = check_buffer(args, "recvbuff", args->out, blocks.out);
	if (e || !param_int(PARAM_CHECK_POINTERS))
		return e;
	e = check_mapped(args, "sendbuff", args->in, blocks.in * block);
	return e ? e : check_mapped(args, "recvbuff", args->out, blocks.out * block);
}

/* CUDA's two default streams have small integers for handles; here they are the NULL
 * stream, which is always in order. */
enum err check_stream(cudaStream_t given, const char *function, struct stream **stream)
{
	*stream = NULL;
	if ((uintptr_t)given <= 2)
		return OK;
	if (!live_is(LIVE_STREAM, (const void *)given))
		return err_set(ERR_ARGUMENT,
			"%s: stream %p was not made by weftStreamCreate, and the "
			"buffers are not device memory",
			function, (void *)given);
	*stream = (struct stream *)given;
	return OK;
}

/* A host stream stays one, also where there is a GPU. */
static enum err check_host_stream(const struct call_args *args, bool *on_gpu)
{
	if (!*on_gpu)
		return OK;
	*on_gpu = false;
	return comm_is_device(args->in) || comm_is_device(args->out)
		       ? err_set(ERR_USAGE,
				 "%s: device memory on a stream of weftStreamCreate: use "
				 "a CUDA stream",
				 args->function)
		       : OK;
}

/* A stream that is not ours may be CUDA's, come into the process since the last look. */
static enum err check_gpu(const struct call_args *args, bool *on_gpu)
{
	enum err e = comm_on_gpu(args->comm, args->in, args->out, on_gpu);

	if (e || (uintptr_t)args->stream <= 2)
		return e;
	if (live_is(LIVE_STREAM, (const void *)args->stream))
		return check_host_stream(args, on_gpu);
	if (!*on_gpu && comm_look_for_cuda(args->comm))
		e = comm_on_gpu(args->comm, args->in, args->out, on_gpu);
	return e;
}

enum err check_call(const struct call_args *args, struct comm_call *call)
{
	enum err e = check_comm(args->comm, args->function);

	if (e)
		return e;
	if (call_has_root(args->kind, args->coll)) {
		e = check_root(args);
		if (e)
			return e;
	}
	if (args->type < 0 || args->type >= ncclNumTypes)
		return err_set(
			ERR_ARGUMENT, "%s: invalid type %d", args->function, args->type);
	e = check_op(args, &call->op);
	if (e)
		return e;
	e = check_count(args);
	if (e)
		return e;
	e = check_buffers(args);
	if (e)
		return e;
	e = check_gpu(args, &call->on_gpu);
	if (!e && call->on_gpu)
		call->gpu_stream = (void *)args->stream;
	else if (!e)
		e = check_stream(args->stream, args->function, &call->stream);
	if (e)
		return e;
	call->comm = args->comm;
	call->kind = args->kind;
	call->coll = args->coll;
	call->in = args->in;
	call->out = args->out;
	call->count = args->count;
	call->type = (enum dtype)args->type;
	call->root = (uint32_t)args->root;
	call->schedule = NULL;
	call->protos = 0;
	call->launched = NULL;
	call->tag = 0;
	call->profile = NULL;
	return OK;
}
