/*
 * net.h - bytes between hosts: what any network offers, in eight operations.
 *
 * A connection carries messages one way, from the end that connected to the end that
 * accepted, in order: the k-th send meets the k-th receive, which takes as many bytes as
 * it asked for and no more than were sent. Nothing blocks. A send or receive is asked for
 * and tested until it is done; its memory is the network's until then. This is the shape
 * of NCCL's network plugins, so one of those is another `struct net_ops`.
 *
 * One thread at a time uses an end, or ends that came to the same listener. Which rank is
 * at the other one is said by the claim that comes with the connection; who does not know
 * the listener's key gets none in.
 */
#ifndef NET_NET_H
#define NET_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "net/auth.h"

struct addr;
struct net_plugin; /* plugin.h */
struct net_end;	   /* a listener, or one end of a connection */

/* How to reach a listener: travels to the other ranks. */
enum { NET_HANDLE_BYTES = 160 };
struct net_handle {
	unsigned char bytes[NET_HANDLE_BYTES];
};

/* What a connection is for, said by who makes it. The fields are the caller's. */
struct net_claim {
	uint32_t from, to, purpose;
};

/* How a message is made sure of. */
enum net_guard {
	NET_BARE,
	NET_SUMMED, /* a byte that was changed on the way is noticed, and where */
	NET_SEALED  /* .. and nobody can read, change, leave out or repeat one */
};

/* How connections are made and kept. */
struct net_manner {
	enum net_guard guard; /* the same at both ends */
	uint32_t cables;      /* a message is striped over so many; 0: one */
	uint32_t threads;     /* so many help with each end; 0: who tests does it all */
	uint32_t silence_ms; /* a cable that is mute for so long is lost, and the only one
			      * after twice that; 0: never */
};

/* Of connections with several cables those that are left carry on when one is lost. */
enum { NET_CABLES_MAX = 64 };

struct net_listen_args {
	const struct addr *addrs; /* of the interfaces to use; ports are not looked at */
	uint32_t addr_count;
	unsigned char key[AUTH_KEY_BYTES];
	struct net_manner manner;
	const struct net_plugin *plugin; /* of net_by_plugin; borrowed until close */
};

struct net_connect_args {
	const struct net_handle *handle;
	struct net_claim claim;
	unsigned char key[AUTH_KEY_BYTES];
	uint32_t way; /* which of several interfaces is first, modulo their number */
	struct net_manner manner;
	const struct net_plugin *plugin; /* of net_by_plugin; borrowed until close */
	bool is_packed; /* .. short messages may go together: none is in a GPU's memory */
};

/* Memory to send or receive and how far that has come. The caller's to keep. */
struct net_request {
	struct net_end *end;
	uint64_t goal; /* the network's */
};

struct net_ops {
	const char *name;
	enum err (*listen)(const struct net_listen_args *args, struct net_end **listener,
		struct net_handle *handle);
	/* Begins only; sends and receives may be asked for at once. */
	enum err (*connect)(const struct net_connect_args *args, struct net_end **end);
	/* ERR_AGAIN: nobody has come who knows the key. */
	enum err (*accept)(
		struct net_end *listener, struct net_claim *claim, struct net_end **end);
	/* What is sent or received next is told of under this name, by networks that tell
	 * what they do (plugin.h); NULL where none does. */
	void (*tell)(struct net_end *end, void *told);
	enum err (*send)(struct net_end *end, const void *data, size_t bytes,
		struct net_request *request);
	enum err (*recv)(struct net_end *end, void *data, size_t bytes,
		struct net_request *request);
	/* OK: done. ERR_AGAIN: not yet, after waiting `wait_us` at most where the network
	 * can wait. Else the connection is lost, and so is all that was asked of it. */
	enum err (*test)(const struct net_request *request, uint32_t wait_us);
	void (*close)(struct net_end *end); /* NULL is fine */
};

/* TCP. */
extern const struct net_ops net_socket;

/* What is not done is moved by nobody, until it is tested or more is asked for: threads
 * that help with the end stop, and its memory is the caller's again. NULL is fine. */
void net_socket_rest(struct net_end *end);

/* Short messages may go in bunches, said at both ends: while one is on its way that the
 * receiver has not read, the sender's kernel keeps the next ones, and sends them together
 * when it has, or after 40 ms when it does not read. So who is ahead of its receiver pays
 * less for each, and a receiver that comes late waits for one way there and back. For
 * messages that nobody needs whom, in the end, the sender waits for. Nothing on several
 * sockets, or with a guard. NULL is fine. */
void net_socket_bunch(struct net_end *end, bool in_bunches);

#endif
