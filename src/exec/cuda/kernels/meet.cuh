/*
 * meet.cuh - how the kernels of several ranks find each other, and what they then know.
 */
#ifndef EXEC_CUDA_KERNELS_MEET_CUH
#define EXEC_CUDA_KERNELS_MEET_CUH

#include "exec/cuda/kernels/arith.cuh"
#include "exec/cuda/lists/moves_abi.h"

enum { ABORT_TURNS = 64 };

/* Where everybody's buffers are; in shared memory. */
struct ranks {
	uint64_t in[MOVES_RANKS_MAX], out[MOVES_RANKS_MAX], scalar[MOVES_RANKS_MAX];
};

/* Everything this block did or has seen done is before the flag for who acquires it. */
DEVICE void flag_release(uint32_t *flag, uint32_t value, bool is_one_device)
{
	if (is_one_device)
		asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(value)
			     : "memory");
	else
		asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value)
			     : "memory");
}

/* Pairs with flag_release(). */
DEVICE uint32_t flag_acquire(const uint32_t *flag, bool is_one_device)
{
	uint32_t value;

	if (is_one_device)
		asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
			     : "=r"(value)
			     : "l"(flag)
			     : "memory");
	else
		asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
			     : "=r"(value)
			     : "l"(flag)
			     : "memory");
	return value;
}

/* What was read before is before what is read after, and likewise for what is written. */
DEVICE void order_fence(bool is_one_device)
{
	if (is_one_device)
		asm volatile("fence.acq_rel.gpu;" ::: "memory");
	else
		asm volatile("fence.acq_rel.sys;" ::: "memory");
}

/* Words that others write while we run, in device or host memory. */
template <class T> DEVICE T word_read(const T *word)
{
	return *(const volatile T *)word;
}

template <class T> DEVICE void word_write(T *word, T value)
{
	*(volatile T *)word = value;
}

/* Wait until thread r's flag, rank r's, has the call's number: not every call sets every
 * flag, so that it may be any number of calls old. */
DEVICE void flags_wait(
	const struct moves_args &args, const uint32_t *flags, uint32_t call)
{
	if (threadIdx.x >= args.rank_count)
		return;
	for (uint32_t turn = 1;
		flag_acquire(&flags[threadIdx.x], args.is_one_device) != call; turn++)
		if (turn % ABORT_TURNS == 0 && word_read(args.abort))
			return;
}

/* A scalar as it is when the stream has come here. */
DEVICE uint64_t scalar_read(const void *at, uint32_t bytes)
{
	uint64_t scalar = 0;

#pragma unroll 1
	for (uint32_t i = 0; i < bytes; i++)
		scalar |= (uint64_t)word_read((const uint8_t *)at + i) << 8 * i;
	return scalar;
}

/* What this rank says to rank `to`, as word `word` of its line. */
DEVICE uint64_t line_word(
	const struct moves_args &args, uint32_t to, uint32_t word, uint32_t call)
{
	const struct dev_post &post = args.posts[to];
	uint64_t value = args.sign;

	if (word < 2)
		value = post.in;
	else if (word < 4)
		value = post.out;
	else if (word < 6)
		value = args.scalar_at ? scalar_read(args.scalar_at, args.scalar_bytes)
				       : post.scalar;
	return (uint64_t)call << 32 | (word % 2 ? value >> 32 : value & 0xffffffff);
}

DEVICE void lines_post(const struct moves_args &args, uint32_t call)
{
	if (!args.is_one_device)
		order_fence(false); /* what is in the buffers is before the lines */
	for (uint32_t i = threadIdx.x; i < args.rank_count * LINE_WORDS;
		i += blockDim.x) {
		uint32_t to = i / LINE_WORDS, word = i % LINE_WORDS;

		word_write(&args.posts[to].hall->lines[args.rank][word],
			line_word(args, to, word, call));
	}
}

/* Wait until a word of a line belongs to the call, or to a later one when something went
 * wrong; false: told to stop. */
DEVICE bool line_wait(const struct moves_args &args, const uint64_t *word, uint32_t call,
	uint32_t *half)
{
	for (uint32_t turn = 1;; turn++) {
		uint64_t value = word_read(word);

		*half = (uint32_t)value;
		if ((int32_t)((uint32_t)(value >> 32) - call) >= 0)
			return true;
		if (turn % ABORT_TURNS == 0 && word_read(args.abort))
			return false;
	}
}

/* What to go on with, from what any thread has found. */
enum meeting_end { MEETING_EQUAL, MEETING_UNEQUAL, MEETING_STOPPED };

/* Learn from all ranks' lines where their buffers are. */
DEVICE meeting_end lines_read(const struct moves_args &args, const struct dev_hall *own,
	uint32_t call, struct ranks *ranks)
{
	bool is_stopped = false, is_other = false;

	for (uint32_t i = threadIdx.x; i < args.rank_count * LINE_WORDS;
		i += blockDim.x) {
		uint32_t from = i / LINE_WORDS, word = i % LINE_WORDS, half;
		uint64_t *to = word < 2	  ? &ranks->in[from]
			       : word < 4 ? &ranks->out[from]
					  : &ranks->scalar[from];

		is_stopped |= !line_wait(args, &own->lines[from][word], call, &half);
		if (word < 6)
			((uint32_t *)to)[word % 2] = half;
		else if (half != (uint32_t)(word % 2 ? args.sign >> 32 : args.sign)) {
			is_other = true;
			if (!is_stopped)
				word_write(args.trouble, 1 + from);
		}
	}
	order_fence(args.is_one_device);
	if (!__syncthreads_or(is_stopped || is_other))
		return MEETING_EQUAL;
	return __syncthreads_or(is_stopped) ? MEETING_STOPPED : MEETING_UNEQUAL;
}

/* Learn where all buffers are, in a launch for all ranks; false, with the rank named,
 * when somebody calls something else than rank 0. */
template <class Args> DEVICE bool mail_read(const Args &args, struct ranks *ranks)
{
	uint32_t rank = threadIdx.x;
	bool is_other = false;

	if (args.is_posted) {
		if (rank < args.rank_count) {
			ranks->in[rank] = args.posts[rank].in;
			ranks->out[rank] = args.posts[rank].out;
			ranks->scalar[rank] = args.posts[rank].scalar;
			if (args.scalars_at >> rank & 1)
				ranks->scalar[rank] = scalar_read(
					(const void *)args.posts[rank].scalar,
					args.scalar_bytes);
		}
		__syncthreads();
		return true;
	}
	if (rank < args.rank_count) {
		const struct dev_mail *mail = &args.mail[rank];

		ranks->in[rank] = word_read(&mail->in);
		ranks->out[rank] = word_read(&mail->out);
		ranks->scalar[rank] = word_read(&mail->scalar);
		is_other = word_read(&mail->sign) != word_read(&args.mail->sign);
		/* Let go by an abort: nobody has said where its buffers are. */
		if (rank && word_read(&mail->ready) != args.call)
			is_other = true;
		else if (is_other) {
			word_write(args.trouble, 1 + rank);
			__threadfence_system();
		}
	}
	return !__syncthreads_or(is_other);
}

/* What a launch knows of its call. */
struct meeting {
	uint32_t call; /* resident: its number */
	bool is_equal; /* the moves may be done */
};

/* Before the moves. False: leave at once. */
DEVICE bool ranks_meet(
	const struct moves_args &args, struct ranks *ranks, struct meeting *meeting)
{
	const struct dev_hall *own;
	meeting_end end;

	meeting->call = 0;
	if (!args.is_resident) {
		meeting->is_equal = mail_read(args, ranks);
		return true;
	}
	own = args.posts[args.rank].hall;
	meeting->call = args.call ? args.call : word_read(&own->call) + 1;
	if (blockIdx.x == 0)
		lines_post(args, meeting->call);
	end = lines_read(args, own, meeting->call, ranks);
	meeting->is_equal = end == MEETING_EQUAL;
	return end != MEETING_STOPPED;
}

/* The last block to leave says so, when all have read the number. */
DEVICE void call_count(struct dev_hall *own, uint32_t call)
{
	if (threadIdx.x)
		return;
	if (gridDim.x == 1 || atomicInc(&own->leaving, gridDim.x - 1) == gridDim.x - 1)
		word_write(&own->call, call);
}

/* After the moves: when the kernel ends all ranks' moves are done. A fused launch's are
 * when it ends. */
DEVICE void ranks_part(const struct moves_args &args, const struct meeting &meeting)
{
	struct dev_hall *own;
	uint32_t block = blockIdx.x;

	if (!args.is_resident)
		return;
	own = args.posts[args.rank].hall;
	if (meeting.is_equal || block == 0) {
		/* all threads' stores are before the flags, by the barrier and the
		 * releases */
		__syncthreads();
		if (threadIdx.x < args.rank_count)
			flag_release(
				&args.posts[threadIdx.x].hall->gone[block][args.rank],
				meeting.call, args.is_one_device);
		flags_wait(args, own->gone[block], meeting.call);
		__syncthreads(); /* all blocks count when all ranks are through */
	}
	call_count(own, meeting.call);
}

#endif
