/*
 * meet.cuh - how the kernels of several ranks find each other, and what they then know.
 */
#ifndef EXEC_CUDA_MEET_CUH
#define EXEC_CUDA_MEET_CUH

#include "exec/cuda/arith.cuh"
#include "exec/cuda/moves_abi.h"

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

/* Words that others write while we run, in device or host memory. */
template <class T> DEVICE T word_read(const T *word)
{
	return *(const volatile T *)word;
}

template <class T> DEVICE void word_write(T *word, T value)
{
	*(volatile T *)word = value;
}

/* Wait until thread r's flag, rank r's, has the call's number. The flags of a phase that
 * not every call sets may be any number of calls old, so those must be equal; others may
 * be ahead when something went wrong. All threads learn whether to go on, and see what
 * the ranks did before. */
DEVICE bool flags_wait(const struct moves_args &args, const uint32_t *flags,
	uint32_t call, bool is_exact)
{
	bool is_stopped = false;

	if (threadIdx.x < args.rank_count)
		for (uint32_t turn = 1; !is_stopped; turn++) {
			int32_t ahead = (int32_t)(flag_acquire(&flags[threadIdx.x],
							  args.is_one_device) -
						  call);

			if (is_exact ? ahead == 0 : ahead >= 0)
				break;
			if (turn % ABORT_TURNS == 0)
				is_stopped = word_read(args.abort) != 0;
		}
	return !__syncthreads_or(is_stopped);
}

/* A scalar as it is when the stream has come here. */
DEVICE uint64_t scalar_read(const void *at, uint32_t bytes)
{
	uint64_t scalar = 0;

	for (uint32_t i = 0; i < bytes; i++)
		scalar |= (uint64_t)word_read((const uint8_t *)at + i) << 8 * i;
	return scalar;
}

/* Thread r tells rank r. */
DEVICE void mail_post(const struct moves_args &args, uint32_t call)
{
	const struct dev_post &post = args.posts[threadIdx.x];
	struct dev_mail *mail = &post.hall->mail[args.rank];

	word_write(&mail->in, post.in);
	word_write(&mail->out, post.out);
	word_write(&mail->scalar, args.scalar_at
					  ? scalar_read(args.scalar_at, args.scalar_bytes)
					  : post.scalar);
	word_write(&mail->sign, args.sign);
	flag_release(&post.hall->come[args.rank], call, args.is_one_device);
}

/* Learn where all buffers are; false, with the rank named, when somebody calls something
 * else. `sign` is that of this rank's own call, NULL in a launch for all ranks. */
template <class Args>
DEVICE bool mail_read(const Args &args, const uint64_t *sign, struct ranks *ranks)
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
		uint64_t ours = sign ? *sign : word_read(&args.mail->sign);

		ranks->in[rank] = word_read(&mail->in);
		ranks->out[rank] = word_read(&mail->out);
		ranks->scalar[rank] = word_read(&mail->scalar);
		is_other = word_read(&mail->sign) != ours;
		/* Let go by an abort: nobody has said where its buffers are. */
		if (!sign && rank && word_read(&mail->ready) != args.call)
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
	meeting->call = 0;
	if (args.is_resident) {
		const struct dev_hall *own = args.posts[args.rank].hall;

		meeting->call = args.call ? args.call : word_read(&own->call) + 1;
		if (blockIdx.x == 0 && threadIdx.x < args.rank_count)
			mail_post(args, meeting->call);
		if (!flags_wait(args, own->come, meeting->call, false))
			return false;
	}
	meeting->is_equal = mail_read(args, args.is_resident ? &args.sign : NULL, ranks);
	return true;
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
			flag_release(&args.posts[threadIdx.x].hall->gone[block][args.rank],
				meeting.call, args.is_one_device);
		flags_wait(args, own->gone[block], meeting.call, true);
	}
	call_count(own, meeting.call);
}

#endif
