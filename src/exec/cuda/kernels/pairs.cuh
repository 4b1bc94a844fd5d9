/*
 * pairs.cuh - sends and receives of one rank: the receiver copies. See moves_abi.h.
 */
#ifndef EXEC_CUDA_KERNELS_PAIRS_CUH
#define EXEC_CUDA_KERNELS_PAIRS_CUH

#include "exec/cuda/kernels/units.cuh"

/* Wait for a word to have a value. False: leave. */
DEVICE bool word_wait(const struct pairs_args &args, const uint32_t *word, uint32_t value)
{
	for (uint32_t turn = 1; flag_acquire(word, args.is_one_device) != value; turn++)
		if (turn % ABORT_TURNS == 0 && word_read(args.abort))
			return false;
	return true;
}

/* Is what we last sent in this slot taken? Of the first eight there was none before. */
DEVICE bool slot_wait(const struct pairs_args &args, uint32_t peer, uint32_t number)
{
	const uint32_t *word = &args.hall->taken[peer][number % BOX_SLOTS];

	for (uint32_t turn = 1; (int32_t)(flag_acquire(word, args.is_one_device) -
					  (number - BOX_SLOTS)) < 0;
		turn++)
		if (turn % ABORT_TURNS == 0 && word_read(args.abort))
			return false;
	return true;
}

/* Thread i does pair i, if it is a send: say where it is, wait until it is taken. */
DEVICE void sends_do(const struct pairs_args &args)
{
	uint32_t i = threadIdx.x;

	if (i < args.count && args.pairs[i].is_send) {
		const struct dev_pair &pair = args.pairs[i];
		uint32_t number = word_read(&args.hall->sent[pair.peer]) + 1 +
				  pair.ordinal;
		struct dev_slot *slot =
			&args.peers[i]->boxes[args.rank][number % BOX_SLOTS];

		if (!slot_wait(args, pair.peer, number))
			return;
		word_write(&slot->from, pair.data);
		word_write(&slot->bytes, pair.bytes);
		flag_release(&slot->posted, number, args.is_one_device);
		if (!word_wait(args, &args.hall->taken[pair.peer][number % BOX_SLOTS],
			    number))
			return;
		__syncwarp(__activemask());
		if (pair.is_last)
			word_write(&args.hall->sent[pair.peer], number);
	}
}

/* All threads: where the bytes of a receive come from, in places[0], and how many. False:
 * leave. */
DEVICE bool receive_meet(const struct pairs_args &args, struct shared *shared,
	const struct dev_pair &pair, uint32_t number)
{
	bool is_well = true;

	if (threadIdx.x == 0) {
		const struct dev_slot *slot =
			&args.hall->boxes[pair.peer][args.is_resident ? number % BOX_SLOTS
								      : pair.ordinal];
		uint64_t from = pair.from, bytes = pair.bytes;

		/* a put goes to memory that is another's again after an abort; the word
		 * is in the host's memory, too far for whoever need not look */
		if (pair.is_put && !args.is_resident)
			is_well = word_read(args.abort) == 0;
		if (args.is_resident && !from)
			is_well = word_wait(args, &slot->posted, number);
		if (!from && is_well) {
			from = word_read(&slot->from);
			bytes = word_read(&slot->bytes);
			/* let go by an abort, when nobody has said where it is */
			is_well = args.is_resident || word_read(&slot->posted) == 1;
		}
		if (bytes != pair.bytes && is_well)
			word_write(args.trouble, 1u + pair.peer);
		shared->places[0] = from;
		shared->places[1] = pair.data;
		shared->received = bytes < pair.bytes ? bytes : pair.bytes;
	}
	return !__syncthreads_or(!is_well);
}

DEVICE void receive_copy(const struct shared *shared, uint32_t turn)
{
	uint64_t from = shared->places[0], to = shared->places[1];
	struct ready_move move = {shared->received, shared->places, shared->scaled_by, 1,
		1, 0, (uint32_t)(from | to) % WIDE_BYTES,
		(uint32_t)(from ^ to) % WIDE_BYTES};

	kind_copy<>::copy(shared, move, turn);
}

/* The last block that has copied its part tells the sender. */
DEVICE void receive_end(
	const struct pairs_args &args, uint32_t i, uint32_t number, uint32_t blocks)
{
	const struct dev_pair &pair = args.pairs[i];

	__syncthreads();
	if (threadIdx.x || pair.from)
		return;
	__threadfence();
	if (atomicInc(&args.hall->copied[i], blocks - 1) != blocks - 1)
		return;
	__threadfence();
	flag_release(&args.peers[i]->taken[args.rank][number % BOX_SLOTS], number,
		args.is_one_device);
}

/* The numbers go on when every block has read them. */
DEVICE void numbers_count(const struct pairs_args &args, uint32_t blocks)
{
	if (threadIdx.x)
		return;
	__threadfence();
	if (atomicInc(&args.hall->pairs_leaving, blocks - 1) != blocks - 1)
		return;
	for (uint32_t i = 0; i < args.count; i++) {
		const struct dev_pair &pair = args.pairs[i];

		if (!pair.is_send && pair.is_last && !pair.from)
			word_write(&args.hall->got[pair.peer],
				word_read(&args.hall->got[pair.peer]) + 1 + pair.ordinal);
	}
}

DEVICE void pairs_run(const struct pairs_args &args)
{
	__shared__ struct shared shared;
	uint32_t skipped = args.is_resident ? 1 : 0; /* blocks that do not copy */
	uint32_t blocks = gridDim.x - skipped;
	uint32_t turn = (blockIdx.x - skipped) * MOVES_THREADS + threadIdx.x;

	if (args.is_resident && blockIdx.x == 0) {
		sends_do(args);
		return;
	}
	if (threadIdx.x == 0)
		shared.threads = blocks * MOVES_THREADS;
	for (uint32_t i = 0; i < args.count; i++) {
		const struct dev_pair &pair = args.pairs[i];
		uint32_t number;

		if (pair.is_send)
			continue;
		number = args.is_resident && !pair.from
				 ? word_read(&args.hall->got[pair.peer]) + 1 +
					   pair.ordinal
				 : 0;
		if (!receive_meet(args, &shared, pair, number))
			return;
		receive_copy(&shared, turn);
		if (args.is_resident)
			receive_end(args, i, number, blocks);
		else
			__syncthreads(); /* the next one overwrites the move */
	}
	if (args.is_resident)
		numbers_count(args, blocks);
}

#endif
