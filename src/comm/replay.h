/*
 * replay.h - batches that a relay's thread gets when a CUDA stream comes to them.
 *
 * A call in a graph is run as often as the graph is: its batch is kept, and a host node
 * of the graph hands a copy of it to the thread. Beside such calls the order in which
 * plain ones were made does not say whose turn it is, so their streams hand them over as
 * well, in the order in which they were made.
 */
#ifndef COMM_REPLAY_H
#define COMM_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "exec/cuda/driver/driver.h"

struct replays;
struct stream;
struct work;

/* Can this driver do it? ERR_USAGE, in words, if not. */
enum err replays_can(void);

/* For the thread of `stream`, borrowed; in the context that is current. */
enum err replays_create(struct stream *stream, struct replays **replays);

/* The CUDA stream that is captured or, if the batch is not to be kept, the one that hands
 * it over once. Takes the works (from malloc), also when it fails. */
struct replay_batch {
	struct work *works;
	uint32_t count;
	bool is_kept;
};
enum err replays_add(
	struct replays *replays, const struct replay_batch *batch, cu_stream stream);

/* Nothing is handed over from now on: streams that come to a batch find its berths handed
 * back. What they need for that stays for good. NULL is fine, also for the next. */
void replays_end(struct replays *replays);

/* When no stream can come to one any more. */
void replays_destroy(struct replays *replays);

#endif
