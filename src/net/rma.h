/*
 * rma.h - NCCL's one-sided plugins: shared objects that write into memory of other hosts,
 * whose ranks need not be in any call.
 *
 * NCCL_RMA_PLUGIN has a list of them, each a file or the suffix of libnccl-rma-SUFFIX.so;
 * unset it is libnccl-rma.so, if there is one. Then the network plugin's own file is
 * looked at. Of each the newest version that it speaks is used, 16 down to 13.
 *
 * All ranks of a communicator listen, connect and register memory together: memory is
 * then known by one name on all of them. No such call is waited for longer than
 * WEFT_PLUGIN_SEC: a plugin that has not returned then is stuck, with the thread that
 * called it, and is called no more for this communicator. What moves data returns at
 * once, or should: it is called by one thread, while others may register memory.
 */
#ifndef NET_RMA_H
#define NET_RMA_H

#include "net/plugin.h"

struct net_rma; /* a one-sided plugin as one communicator has it */

enum { RMA_HANDLE_BYTES = 128 };

struct net_rma_args {
	uint64_t comm;	/* the same for all its ranks, and for no other */
	uint32_t local; /* of the ranks of this host: which device it takes */
	/* the file that the network plugin of this rank was asked for by; NULL: none */
	const char *network_file;
};

/* The first of the plugins that works; NULL: there is none. */
struct net_rma *net_rma_open(const struct net_rma_args *args);
/* No thread may move data any more. False: it is stuck, and stays with all the memory
 * that it was told of. */
bool net_rma_close(struct net_rma *rma);

const char *net_rma_name(const struct net_rma *rma);
int net_rma_version(const struct net_rma *rma);
/* The most that one put may carry. */
size_t net_rma_put_max(const struct net_rma *rma);

/* Be reached, then reach all: `handles` has every rank's, one after the other. A failure
 * says so in a sentence that names the plugin, as do all below. */
enum err net_rma_listen(struct net_rma *rma, unsigned char handle[RMA_HANDLE_BYTES]);
enum err net_rma_connect(struct net_rma *rma, const unsigned char *handles,
	uint32_t rank_count, uint32_t rank);

/* Memory that all ranks register at once, each its own. */
struct rma_memory {
	void *data;
	size_t bytes;
	bool is_ordered; /* what is put there lands in the order it was put */
	bool is_signals; /* .. and there are signals in it, which begin with 0 */
};
/* The first refusal has a sentence, and others are like it. */
enum err net_rma_register(
	struct net_rma *rma, const struct rma_memory *memory, void **known);
void net_rma_deregister(struct net_rma *rma, void *known);

/* Bytes from memory here to memory there, each by its name and an offset, and then a
 * signal that counts one more there. */
struct rma_put {
	uint32_t rank;
	uint64_t from, to;
	void *from_known, *to_known; /* NULL where there are no bytes */
	size_t bytes;
	uint64_t signal;
	void *signal_known; /* NULL: no signal */
};

/* OK and NULL: not now. Else ask about it until it is done, which means that the source
 * may be written again. Nothing below has a deadline. */
enum err net_rma_put(struct net_rma *rma, const struct rma_put *put, void **request);
enum err net_rma_test(struct net_rma *rma, void *request, bool *done);

/* Let the plugin do what it has to, now and then, and hear whether it has failed. */
enum err net_rma_progress(struct net_rma *rma);

/* The function of the plugin that is called to move data, and since when; NULL: none.
 * From any thread. */
const char *net_rma_calling(const struct net_rma *rma, uint64_t *since_ns);

/* It will be called no more: a function has not returned. */
void net_rma_abandon(struct net_rma *rma);

#endif
