#include "link/wires.h"

#include <stdlib.h>
#include <string.h>

#include "net/plugin.h"

struct wires {
	const struct net_ops *net;
	uint32_t rank, rank_count;
	struct net_end *listener;   /* owned */
	struct net_plugin *plugin;  /* owned; NULL: sockets */
	struct net_handle *handles; /* owned */
	unsigned char key[AUTH_KEY_BYTES];
	struct net_manner manner;
	/* owned: [rank * WIRE_PURPOSES + purpose], NULL until first used */
	struct net_end **to, **from;
};

enum err wires_create(const struct wires_args *args, struct wires **wires)
{
	size_t n = args->rank_count;
	struct wires *w = calloc(1, sizeof(*w));

	if (!w) {
		args->net->close(args->listener);
		net_plugin_close(args->plugin);
		return err_set(ERR_SYSTEM, "no memory for connections");
	}
	w->net = args->net;
	w->listener = args->listener;
	w->plugin = args->plugin;
	w->rank = args->rank;
	w->rank_count = args->rank_count;
	memcpy(w->key, args->key, sizeof(w->key));
	w->manner = args->manner;
	w->handles = malloc(n * sizeof(*w->handles));
	w->to = calloc(n * WIRE_PURPOSES, sizeof(struct net_end *));
	w->from = calloc(n * WIRE_PURPOSES, sizeof(struct net_end *));
	if (!w->handles || !w->to || !w->from) {
		wires_destroy(w);
		return err_set(ERR_SYSTEM, "no memory for connections with %zu ranks", n);
	}
	memcpy(w->handles, args->handles, n * sizeof(*w->handles));
	*wires = w;
	return OK;
}

void wires_destroy(struct wires *wires)
{
	if (!wires)
		return;
	for (uint32_t i = 0; i < wires->rank_count * WIRE_PURPOSES; i++) {
		if (wires->to)
			wires->net->close(wires->to[i]);
		if (wires->from)
			wires->net->close(wires->from[i]);
	}
	wires->net->close(wires->listener);
	net_plugin_close(wires->plugin);
	auth_wipe(wires->key, sizeof(wires->key));
	free(wires->handles);
	free(wires->to);
	free(wires->from);
	free(wires);
}

enum err wires_to(struct wires *wires, uint32_t rank, enum wire_purpose purpose,
	struct net_end **end)
{
	struct net_end **to = &wires->to[rank * WIRE_PURPOSES + purpose];
	struct net_connect_args args = {.handle = &wires->handles[rank],
		.claim = {.from = wires->rank, .to = rank, .purpose = purpose},
		.is_packed = purpose != WIRE_P2P,
		.way = wires->rank + rank + purpose,
		.manner = wires->manner,
		.plugin = wires->plugin};
	enum err e = OK;

	if (!*to) {
		memcpy(args.key, wires->key, sizeof(args.key));
		e = wires->net->connect(&args, to);
		auth_wipe(args.key, sizeof(args.key));
	}
	*end = *to;
	return e;
}

/* A claim that makes no sense, or was made before, is a stranger's after all. */
static void come(struct wires *wires, const struct net_claim *claim, struct net_end *end)
{
	struct net_end **from;

	if (claim->to != wires->rank || claim->from >= wires->rank_count ||
		claim->purpose >= WIRE_PURPOSES) {
		wires->net->close(end);
		return;
	}
	from = &wires->from[claim->from * WIRE_PURPOSES + claim->purpose];
	if (*from)
		wires->net->close(end);
	else
		*from = end;
}

enum err wires_from(struct wires *wires, uint32_t rank, enum wire_purpose purpose,
	struct net_end **end)
{
	struct net_end *const *from = &wires->from[rank * WIRE_PURPOSES + purpose];
	struct net_claim claim;
	struct net_end *fresh;
	enum err e = OK;

	while (!*from && !e) {
		e = wires->net->accept(wires->listener, &claim, &fresh);
		if (!e)
			come(wires, &claim, fresh);
	}
	*end = *from;
	return *end ? OK : e;
}

const struct net_ops *wires_net(const struct wires *wires)
{
	return wires->net;
}

const struct net_plugin *wires_plugin(const struct wires *wires)
{
	return wires->plugin;
}

const char *wires_gpu_refusal(const struct wires *wires, const struct net_gpu *gpu)
{
	return wires->plugin ? net_plugin_gpu_refusal(wires->plugin, gpu)
			     : "sockets take host memory only";
}

void wires_in_gpu(struct net_end *end, const struct net_gpu *gpu)
{
	net_plugin_in_gpu(end, gpu);
}

bool wires_try_gpu(
	struct net_end *end, const struct net_gpu *gpu, void *data, size_t bytes)
{
	return net_plugin_try_gpu(end, gpu, data, bytes);
}

enum err wires_keep(const struct wires *wires, void *data, size_t bytes)
{
	return wires && wires->plugin ? net_plugin_keep(wires->plugin, data, bytes) : OK;
}

void wires_forget(const struct wires *wires, void *data, size_t bytes)
{
	if (wires && wires->plugin)
		net_plugin_forget(wires->plugin, data, bytes);
}

void wires_rest(const struct wires *wires)
{
	if (wires->plugin)
		return;
	for (uint32_t i = 0; i < wires->rank_count * WIRE_PURPOSES; i++) {
		net_socket_rest(wires->to[i]);
		net_socket_rest(wires->from[i]);
	}
}

const char *wires_name(const struct wires *wires)
{
	return wires->plugin ? net_plugin_name(wires->plugin) : wires->net->name;
}
