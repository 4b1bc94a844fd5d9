/*
 * wires.h - a rank's connections with ranks on other hosts, each opened on first use.
 *
 * A wire is one way, between two ranks, for one purpose: the messages of a lane of the
 * collectives, or sends and receives. Who sends connects; who receives finds, among the
 * connections that have come to its listener, the one that claims to be it.
 *
 * There are sets of wires, for threads that work side by side: each set has connections
 * of its own, and one thread at a time uses it. All have the same listener, so that a set
 * costs nothing before it is used and needs no word at a meeting; what a rank sends by
 * its set k comes by the other's set k.
 */
#ifndef LINK_WIRES_H
#define LINK_WIRES_H

#include "net/net.h"

enum wire_purpose { WIRE_LANE_0, WIRE_LANE_1, WIRE_P2P, WIRE_PURPOSES };

enum { WIRE_SETS_MAX = 64 };

struct wires;
struct net_gpu;

struct wires_args {
	const struct net_ops *net;
	uint32_t rank, rank_count;
	struct net_end *listener;	  /* owned from now on, also on failure */
	struct net_plugin *plugin;	  /* of the net, the same; NULL: it has none */
	const struct net_handle *handles; /* of every rank's listener; copied */
	unsigned char key[AUTH_KEY_BYTES];
	struct net_manner manner;
};

/* `wires` is set 0. It is destroyed by whoever made it, and all other sets with it, when
 * no thread uses any. */
enum err wires_create(const struct wires_args *args, struct wires **wires);
void wires_destroy(struct wires *wires); /* NULL is fine */

/* May there be other sets than 0? Not where a connection has several sockets: the
 * listener hands them to connections that are in use, by whichever thread. */
bool wires_has_sets(const struct wires *wires);

/* Another set, the same for the same number; from any thread, with any set of them. It
 * is the wires' own. ERR_USAGE where there are none. */
enum err wires_set(struct wires *wires, uint32_t number, struct wires **set);

/* The end to send to a rank by; made when it is asked for first. */
enum err wires_to(struct wires *wires, uint32_t rank, enum wire_purpose purpose,
	struct net_end **end);

/* The end to receive from a rank by. ERR_AGAIN: it has not connected yet. */
enum err wires_from(struct wires *wires, uint32_t rank, enum wire_purpose purpose,
	struct net_end **end);

const struct net_ops *wires_net(const struct wires *wires);

/* What carries them; NULL: sockets. */
const struct net_plugin *wires_plugin(const struct wires *wires);

/* Why what is sent and received cannot lie in a GPU's memory, in words; NULL: it can, see
 * net/plugin.h. */
const char *wires_gpu_refusal(const struct wires *wires, const struct net_gpu *gpu);

/* What goes next by this end lies there; and would it be taken? */
void wires_in_gpu(struct net_end *end, const struct net_gpu *gpu);
bool wires_try_gpu(
	struct net_end *end, const struct net_gpu *gpu, void *data, size_t bytes);
/* .. by any connection that there is; no, where there is none. */
bool wires_would_take(
	const struct wires *wires, const struct net_gpu *gpu, void *data, size_t bytes);

/* Memory that stays until it is forgotten: a plugin need not be told of it for each
 * message (net/plugin.h). No wires is fine, and to forget what was not kept. */
enum err wires_keep(const struct wires *wires, void *data, size_t bytes);
void wires_forget(const struct wires *wires, void *data, size_t bytes);

/* A call has failed for good: nothing comes or goes by threads of ours until somebody
 * asks or tests again, and by a plugin for ever, where something was under way. */
void wires_rest(const struct wires *wires);

/* Short messages that follow each other to a rank may go together (net/net.h). */
void wires_bunch(const struct wires *wires, struct net_end *end, bool in_bunches);

/* By what a message travels that can, for people: the plugin's name. */
const char *wires_name(const struct wires *wires);

#endif
