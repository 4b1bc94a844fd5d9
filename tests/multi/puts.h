/*
 * puts.h - windows for tests of one-sided calls, and puts around the ring.
 */
#ifndef MULTI_PUTS_H
#define MULTI_PUTS_H

#include "ranks.h"

/* `bytes` of ncclMemAlloc, as a window. */
static inline ncclWindow_t window_of(ncclComm_t comm, int **data, size_t bytes)
{
	ncclWindow_t window;
	void *memory;

	OK(ncclMemAlloc(&memory, bytes));
	OK(ncclCommWindowRegister(comm, memory, bytes, &window, NCCL_WIN_DEFAULT));
	*data = memory;
	return window;
}

struct put_ring {
	ncclComm_t comm;
	ncclWindow_t window;
	int *data, *mine; /* the window's first; what is put, of as many */
	int elems, rounds;
};

/* Everyone puts into its right neighbour and waits for its left one, many times. */
static inline void puts_around(const struct rank *rank, const struct put_ring *ring)
{
	int n = rank->rank_count, right = (rank->rank + 1) % n,
	    left = (rank->rank + n - 1) % n;
	ncclWaitSignalDesc_t from_left = {1, left, 0, 0}, from_right = {1, right, 0, 0};

	for (int round = 1; round <= ring->rounds; round++) {
		int count = round % 2 ? ring->elems : 1 + round;

		for (int i = 0; i < ring->elems; i++)
			ring->mine[i] = round * 1000 + rank->rank;
		OK(ncclPutSignal(ring->mine, (size_t)count, ncclInt, right, ring->window,
			0, 0, 0, 0, ring->comm, NULL));
		OK(ncclWaitSignal(1, &from_left, ring->comm, NULL));
		for (int i = 0; i < count; i++)
			EQ(ring->data[i], round * 1000 + left);
		/* tell the left that its data were read, or it would overwrite them */
		OK(ncclSignal(left, 0, 0, 0, ring->comm, NULL));
		OK(ncclWaitSignal(1, &from_right, ring->comm, NULL));
	}
}

#endif
