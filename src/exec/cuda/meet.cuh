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

DEVICE uint32_t *flag_of(
	const struct moves_args &args, uint32_t phase, uint32_t block, uint32_t rank)
{
	return args.flags + ((size_t)phase * MOVES_BLOCKS_MAX + block) * MOVES_RANKS_MAX +
	       rank;
}

/* Wait until every rank's flag is there: thread r looks at rank r's. The flags of a phase
 * that not every call sets may be any number of calls old, so those must be equal; others
 * may be ahead when something went wrong. All threads learn whether to go on, and see
 * what the ranks did before. */
DEVICE bool flags_wait(
	const struct moves_args &args, uint32_t phase, uint32_t block, bool is_exact)
{
	bool is_stopped = false;

	if (threadIdx.x < args.rank_count) {
		const uint32_t *flag = flag_of(args, phase, block, threadIdx.x);

		for (uint32_t turn = 1; !is_stopped; turn++) {
			int32_t ahead = (int32_t)(flag_acquire(flag, args.is_one_device) -
						  args.call);

			if (is_exact ? ahead == 0 : ahead >= 0)
				break;
			if (turn % ABORT_TURNS == 0)
				is_stopped = word_read(args.abort) != 0;
		}
	}
	return !__syncthreads_or(is_stopped);
}

DEVICE void mail_post(const struct moves_args &args)
{
	struct dev_mail *mail = &args.mail[args.rank];

	word_write(&mail->in, args.own.in);
	word_write(&mail->out, args.own.out);
	word_write(&mail->scalar, args.own.scalar);
	word_write(&mail->sign, args.own.sign);
	flag_release(flag_of(args, 0, 0, args.rank), args.call, args.is_one_device);
}

/* Learn where all buffers are; false, with the rank named, when somebody calls something
 * else. `own` is what this rank has posted itself, NULL in a launch for all ranks. */
template <class Args>
DEVICE bool mail_read(const Args &args, const struct dev_mail *own, struct ranks *ranks)
{
	uint32_t rank = threadIdx.x;
	bool is_other = false;

	if (args.is_posted) {
		if (rank < args.rank_count) {
			ranks->in[rank] = args.posts[rank].in;
			ranks->out[rank] = args.posts[rank].out;
			ranks->scalar[rank] = args.posts[rank].scalar;
		}
		__syncthreads();
		return true;
	}
	if (rank < args.rank_count) {
		const struct dev_mail *mail = &args.mail[rank];
		uint64_t ours = own ? own->sign : word_read(&args.mail->sign);

		ranks->in[rank] = word_read(&mail->in);
		ranks->out[rank] = word_read(&mail->out);
		ranks->scalar[rank] = word_read(&mail->scalar);
		is_other = word_read(&mail->sign) != ours;
		/* Let go by an abort: nobody has said where its buffers are. */
		if (!own && rank && word_read(&mail->ready) != args.call)
			is_other = true;
		else if (is_other) {
			word_write(args.trouble, 1 + rank);
			__threadfence_system();
		}
	}
	return !__syncthreads_or(is_other);
}

/* Before the moves: *is_equal says whether they may be done. False: leave at once. */
DEVICE bool ranks_meet(const struct moves_args &args, struct ranks *ranks, bool *is_equal)
{
	if (args.is_resident) {
		if (threadIdx.x == 0 && blockIdx.x == 0)
			mail_post(args);
		if (!flags_wait(args, 0, 0, false))
			return false;
	}
	*is_equal = mail_read(args, args.is_resident ? &args.own : NULL, ranks);
	return true;
}

/* After the moves: when the kernel ends all ranks' moves are done. A fused launch's are
 * when it ends. */
DEVICE void ranks_part(const struct moves_args &args, bool is_equal)
{
	uint32_t block = blockIdx.x;

	if (!args.is_resident || (!is_equal && block != 0))
		return;
	/* all threads' stores are before the flag, by the barrier and the release */
	__syncthreads();
	if (threadIdx.x == 0)
		flag_release(flag_of(args, 1, block, args.rank), args.call,
			args.is_one_device);
	flags_wait(args, 1, block, true);
}

#endif
