/*
 * relay.h - device memory between hosts, and messages between GPUs that do not reach each
 * other: calls go through berths in host memory (exec/cuda/berth.h) to the host engine,
 * which reaches every rank wherever it is.
 *
 * What memory a rank brings is its own affair: on the wire there is no difference, so
 * that some ranks may work on device memory and others on host memory, in any call.
 */
#ifndef COMM_RELAY_H
#define COMM_RELAY_H

#include "comm/comm.h"

struct work;

struct cuda_hello;

/* The same ranks may have kernels run collectives between hosts: they meet (haul_trip.h).
 * Nothing where no relay is open. */
enum err relay_haul(struct comm *comm, const struct cuda_hello *const *hellos);

/* A communicator on several hosts whose program works with CUDA, as device memory or the
 * meeting has shown: all its calls are enqueued on CUDA streams from then on. `ptr` is
 * such memory; NULL: what is current. `may_wait`: kernels may wait on the GPU, see
 * exec/cuda/ferry.h. With an engine for its GPUs only sends and receives go this way. */
enum err relay_open(struct comm *comm, const void *ptr, bool may_wait);

/* Its thread has run all calls, and ends. The memory that messages leave from and come
 * to goes when the connections are closed: a network plugin may write there until then.
 */
void relay_rest(struct comm *comm);
void relay_close(struct comm *comm);

/* Calls of such communicators, whatever memory they bring. */
enum err relay_submit(const struct comm_call *calls, uint32_t count);

/* By the thread that runs them: wait until a call's buffers are here; say that it is
 * over, however it ended. Nothing for a call that came another way. */
enum err relay_await(const struct work *work);
void relay_hand_back(const struct work *work);
/* The same for one that is never run: kernels do not wait for it. */
void relay_give_up(const struct work *work);

/* Calls that streams are still to come to have been run then; where none of a graph were
 * enqueued, there are no others than comm_drain() knows of. */
void relay_settle(struct comm *comm);

/* The same for a communicator that goes on. */
void relay_drain(struct comm *comm);

/* Streams that come to a call from now on find it given up. */
void relay_end(struct comm *comm);

/* CUDA streams that wait go on. */
void relay_let_go(struct comm *comm);

#endif
