/*
 * berth.h - where device buffers lie in host memory while a host thread works on them.
 *
 * A call between hosts is the host engine's: a CUDA stream copies its buffers into a
 * berth and tells, a thread that waits for that runs the call and tells back, and the
 * stream, which waits for that, copies the result out. Both are told by words of the
 * berth, numbers that grow; nobody's thread waits for a stream, and no kernel runs unless
 * it does all of the stream's part (ferry.h). A
 * large call's buffers come and go in parts, each told by itself, so that the copies run
 * beside the call.
 *
 * Berths are memory that other processes of the host can map (link/region.h), pinned, so
 * that copies run beside everything else. They are kept and used again.
 */
#ifndef EXEC_CUDA_BERTH_H
#define EXEC_CUDA_BERTH_H

#include <stdatomic.h>
#include <stdbool.h>

#include "exec/cuda/driver/driver.h"

struct cuda_berths;
struct cuda_berth;
struct cuda_ferry; /* ferry.h */

/* Who wants to know of all memory that berths are in: it stays until they are closed. */
struct berth_owner {
	void (*made)(void *owner, void *memory, size_t bytes);
	void *owner;
};

/* Of one communicator, in the context that is current. */
enum err cuda_berths_open(struct berth_owner owner, struct cuda_berths **berths);

/* This thread works in that context, until it goes. */
cu_context cuda_berths_enter(const struct cuda_berths *berths);
void cuda_berths_go(const struct cuda_berths *berths, cu_context had);

/* Streams that wait go on, whatever came of their calls. */
void cuda_berths_let_go(struct cuda_berths *berths);

/* All that is enqueued in the context is over then. */
enum err cuda_berths_settle(struct cuda_berths *berths);

/* When all calls have been handed back. What a stream is still to use is never given
 * back, the kernel neither, nor what a graph might be after cuda_berths_let_go(). NULL is
 * fine for both. */
void cuda_berths_close(struct cuda_berths *berths, struct cuda_ferry *ferry);

/* ---- by the thread that enqueues ---- */

/* One with room for so many bytes, for a call whose buffers come and go in so many parts.
 * Waits for another call's when there are too many bytes under way; ERR_REMOTE when
 * `abort` is set meanwhile. */
struct berth_wish {
	size_t bytes;
	uint32_t parts;
	bool is_kept;	/* for a graph: nobody else ever gets it */
	bool is_behind; /* others of its group are booked, which cannot end before it
			   begins */
};
enum err cuda_berth_take(struct cuda_berths *berths, struct berth_wish wish,
	const atomic_int *abort, struct cuda_berth **berth);
char *cuda_berth_memory(const struct cuda_berth *berth);

/* For a kernel that does all of the stream's part of a call by itself: its memory and
 * words in the device's addresses, and the number that each of these comes to have. */
struct berth_passage {
	cu_ptr memory, ready, done, gone;
	uint32_t number;
};
struct berth_passage cuda_berth_passage(const struct cuda_berth *berth);

/* In the stream's order: copy in, then tell the thread; `part` is 1 for the first, and
 * one says that all before it are here as well. */
enum err cuda_berth_load(struct cuda_berth *berth, size_t at, const void *from,
	size_t bytes, cu_stream stream);
enum err cuda_berth_hand_over(struct cuda_berth *berth, uint32_t part, cu_stream stream);

/* The same, and cuda_berth_await() of `awaited` behind it. */
enum err cuda_berth_swap(
	struct cuda_berth *berth, uint32_t part, uint32_t awaited, cu_stream stream);

/* Wait for the thread, then copy out, then others may have the berth. */
enum err cuda_berth_await(struct cuda_berth *berth, uint32_t part, cu_stream stream);
enum err cuda_berth_unload(
	struct cuda_berth *berth, size_t at, void *to, size_t bytes, cu_stream stream);
enum err cuda_berth_leave(struct cuda_berth *berth, cu_stream stream);

/* ---- by the thread that runs the call ---- */

/* The first part is here; the thread is done with all parts. */
bool cuda_berth_is_handed_over(const struct cuda_berth *berth);
void cuda_berth_hand_back(struct cuda_berth *berth);

/* The words by which parts are told, and the number they are counted on from. */
struct berth_tide {
	uint32_t first;
	const _Atomic uint32_t *ready;
	_Atomic uint32_t *done;
};
struct berth_tide cuda_berth_tide(const struct cuda_berth *berth);

#endif
