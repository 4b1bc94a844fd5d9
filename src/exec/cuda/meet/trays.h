/*
 * trays.h - host memory through which processes that share a GPU hand each other
 * messages.
 *
 * A rank has a tray for every other rank, with TRAY_SLOTS slots of memory that both
 * processes have mapped and pinned, and one with a single slot for itself. The sender's
 * stream copies a message into a slot and says so in a word, the receiver's copies it out
 * and says that. Message k of all that ever go through a tray is in slot k % TRAY_SLOTS,
 * and the words count messages, so both sides know the slot without asking.
 *
 * The words are host memory too: who waits for one can set it free without the device.
 */
#ifndef EXEC_CUDA_MEET_TRAYS_H
#define EXEC_CUDA_MEET_TRAYS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "exec/cuda/driver/driver.h"

enum {
	TRAY_SLOTS = 4,
	TRAY_SLOTS_BYTES = 4 << 20 /* of a slot of all trays of a rank */
};

struct trays;

/* Where another rank's are. */
struct trays_address {
	uint32_t pid, fd; /* pid 0: it has none */
};

/* One of them, as this process sees it. */
struct tray {
	char *slots; /* of trays_slot_bytes() each; pinned */
	/* words for streams, in this process's device addresses */
	cu_ptr filled, emptied;
	/* messages that have gone through it, or will when streams get there: for this
	 * rank to count */
	_Atomic uint32_t number;
	/* the word of the two that this rank's streams wait for; NULL: none, of a tray
	 * that was not used yet, and of this rank's own */
	_Atomic(uint32_t *) awaited;
};

/* Make this rank's, before the ranks meet; nothing is pinned yet. */
enum err trays_open(uint32_t rank, uint32_t rank_count, struct trays **trays,
	struct trays_address *address);

/* Map the others'. */
enum err trays_connect(struct trays *trays, const struct cuda_driver *driver,
	const struct trays_address *addresses);

/* How long a message is, at most: the same in all ranks. */
size_t trays_slot_bytes(const struct trays *trays);

/* For what this rank sends to another one; for what it receives, from itself its own.
 * What is used for the first time is pinned, with the context current, which takes some
 * milliseconds. ERR_CUDA when it cannot be. */
enum err trays_out(struct trays *trays, uint32_t to, struct tray **tray);
enum err trays_in(struct trays *trays, uint32_t from, struct tray **tray);
char *tray_slot(const struct trays *trays, const struct tray *tray, uint32_t number);

/* Is message `number` known to be taken out, so that no stream need wait? */
bool tray_is_emptied(const struct tray *out, uint32_t number);

/* Whatever streams of this rank wait for in trays is over: words go so far beyond what
 * is counted. Any thread, any number of times. NULL is fine. */
void trays_let_go(struct trays *trays, uint32_t beyond);

/* When no stream uses them any more. NULL is fine. */
void trays_close(struct trays *trays);

#endif
