#include "link/wires.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "net/plugin.h"

/* What all sets have in common. */
struct wire_house {
	const struct net_ops *net;
	uint32_t rank, rank_count;
	struct net_plugin *plugin;  /* owned; NULL: sockets */
	struct net_handle *handles; /* owned */
	unsigned char key[AUTH_KEY_BYTES];
	struct net_manner manner;
	pthread_mutex_t lock;	  /* of all below, and of what comes to any set */
	struct net_end *listener; /* owned */
	struct wires *sets[WIRE_SETS_MAX]; /* owned: NULL until somebody asks for it, here
					      or at the other end of a wire */
};

struct wires {
	struct wire_house *house; /* owned by set 0 */
	uint32_t number;
	/* owned: [rank * WIRE_PURPOSES + purpose], NULL until first used */
	struct net_end **to;
	_Atomic(struct net_end *) *from; /* .. written with the house's lock */
};

static enum err set_make(struct wire_house *house, uint32_t number)
{
	size_t ends = (size_t)house->rank_count * WIRE_PURPOSES;
	struct wires *set = calloc(1, sizeof(*set));

	if (set) {
		set->house = house;
		set->number = number;
		set->to = calloc(ends, sizeof(*set->to));
		set->from = calloc(ends, sizeof(*set->from));
	}
	if (!set || !set->to || !set->from) {
		if (set) {
			free(set->to);
			free(set->from);
		}
		free(set);
		return err_set(ERR_SYSTEM, "no memory for connections with %u ranks",
			house->rank_count);
	}
	house->sets[number] = set;
	return OK;
}

static void set_free(struct wires *set)
{
	const struct wire_house *house = set->house;

	for (uint32_t i = 0; i < house->rank_count * WIRE_PURPOSES; i++) {
		house->net->close(set->to[i]);
		house->net->close(atomic_load(&set->from[i]));
	}
	free(set->to);
	free(set->from);
	free(set);
}

static void house_free(struct wire_house *house)
{
	for (uint32_t i = 0; i < WIRE_SETS_MAX; i++)
		if (house->sets[i])
			set_free(house->sets[i]);
	house->net->close(house->listener);
	net_plugin_close(house->plugin);
	auth_wipe(house->key, sizeof(house->key));
	pthread_mutex_destroy(&house->lock);
	free(house->handles);
	free(house);
}

enum err wires_create(const struct wires_args *args, struct wires **wires)
{
	size_t n = args->rank_count;
	struct wire_house *house = calloc(1, sizeof(*house));
	enum err e;

	if (!house) {
		args->net->close(args->listener);
		net_plugin_close(args->plugin);
		return err_set(ERR_SYSTEM, "no memory for connections");
	}
	pthread_mutex_init(&house->lock, NULL);
	house->net = args->net;
	house->listener = args->listener;
	house->plugin = args->plugin;
	house->rank = args->rank;
	house->rank_count = args->rank_count;
	memcpy(house->key, args->key, sizeof(house->key));
	house->manner = args->manner;
	house->handles = malloc(n * sizeof(*house->handles));
	if (house->handles) {
		memcpy(house->handles, args->handles, n * sizeof(*house->handles));
		e = set_make(house, 0);
	} else {
		e = err_set(ERR_SYSTEM, "no memory for connections with %zu ranks", n);
	}
	if (e)
		house_free(house);
	else
		*wires = house->sets[0];
	return e;
}

void wires_destroy(struct wires *wires)
{
	if (wires)
		house_free(wires->house);
}

bool wires_has_sets(const struct wires *wires)
{
	return wires->house->manner.cables <= 1;
}

enum err wires_set(struct wires *wires, uint32_t number, struct wires **set)
{
	struct wire_house *house = wires->house;
	enum err e = OK;

	if (number >= WIRE_SETS_MAX || (number && !wires_has_sets(wires)))
		return err_set(ERR_USAGE,
			"there is no set %u of connections: there are %d, and one where "
			"a connection has several sockets",
			number, WIRE_SETS_MAX);
	pthread_mutex_lock(&house->lock);
	if (!house->sets[number])
		e = set_make(house, number);
	if (!e)
		*set = house->sets[number];
	pthread_mutex_unlock(&house->lock);
	return e;
}

enum err wires_to(struct wires *wires, uint32_t rank, enum wire_purpose purpose,
	struct net_end **end)
{
	const struct wire_house *house = wires->house;
	struct net_end **to = &wires->to[rank * WIRE_PURPOSES + purpose];
	struct net_connect_args args = {.handle = &house->handles[rank],
		.claim = {.from = house->rank,
			.to = rank,
			.purpose = wires->number * WIRE_PURPOSES + purpose},
		.is_packed = purpose != WIRE_P2P,
		.way = house->rank + rank + purpose + wires->number,
		.manner = house->manner,
		.plugin = house->plugin};
	enum err e = OK;

	if (!*to) {
		memcpy(args.key, house->key, sizeof(args.key));
		e = house->net->connect(&args, to);
		auth_wipe(args.key, sizeof(args.key));
	}
	*end = *to;
	return e;
}

/* A claim that makes no sense, or was made before, is a stranger's after all. With the
 * lock. */
static enum err come(
	struct wire_house *house, const struct net_claim *claim, struct net_end *end)
{
	uint32_t number = claim->purpose / WIRE_PURPOSES;
	uint32_t index = claim->from * WIRE_PURPOSES + claim->purpose % WIRE_PURPOSES;
	bool is_sound = claim->to == house->rank && claim->from < house->rank_count &&
			number < WIRE_SETS_MAX;
	enum err e = OK;

	if (is_sound && !house->sets[number])
		e = set_make(house, number);
	if (e || !is_sound || atomic_load(&house->sets[number]->from[index]))
		house->net->close(end);
	else /* pairs with the acquire in wires_from() */
		atomic_store_explicit(
			&house->sets[number]->from[index], end, memory_order_release);
	return e;
}

/* Whoever looks takes in what has come to any set. */
static enum err from_await(struct wire_house *house, _Atomic(struct net_end *) *from)
{
	struct net_claim claim;
	struct net_end *fresh;
	enum err e = OK;

	pthread_mutex_lock(&house->lock);
	while (!atomic_load(from) && !e) {
		e = house->net->accept(house->listener, &claim, &fresh);
		if (!e)
			e = come(house, &claim, fresh);
	}
	pthread_mutex_unlock(&house->lock);
	return e;
}

enum err wires_from(struct wires *wires, uint32_t rank, enum wire_purpose purpose,
	struct net_end **end)
{
	_Atomic(struct net_end *) *from = &wires->from[rank * WIRE_PURPOSES + purpose];
	enum err e = OK;

	if (!atomic_load_explicit(from, memory_order_acquire))
		e = from_await(wires->house, from);
	*end = atomic_load_explicit(from, memory_order_acquire);
	return *end ? OK : e;
}

const struct net_ops *wires_net(const struct wires *wires)
{
	return wires->house->net;
}

const struct net_plugin *wires_plugin(const struct wires *wires)
{
	return wires->house->plugin;
}

const char *wires_gpu_refusal(const struct wires *wires, const struct net_gpu *gpu)
{
	const struct net_plugin *plugin = wires->house->plugin;

	return plugin ? net_plugin_gpu_refusal(plugin, gpu)
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

bool wires_would_take(
	const struct wires *wires, const struct net_gpu *gpu, void *data, size_t bytes)
{
	uint32_t ends = wires->house->rank_count * WIRE_PURPOSES;
	struct net_end *end = NULL;

	for (uint32_t i = 0; i < ends && !end; i++)
		end = atomic_load(&wires->from[i]);
	return end && wires_try_gpu(end, gpu, data, bytes);
}

enum err wires_keep(const struct wires *wires, void *data, size_t bytes)
{
	return wires && wires->house->plugin
		       ? net_plugin_keep(wires->house->plugin, data, bytes)
		       : OK;
}

void wires_forget(const struct wires *wires, void *data, size_t bytes)
{
	if (wires && wires->house->plugin)
		net_plugin_forget(wires->house->plugin, data, bytes);
}

void wires_rest(const struct wires *wires)
{
	const struct wire_house *house = wires->house;
	void (*rest)(struct net_end * end) = house->plugin ? net_plugin_rest
							   : net_socket_rest;

	for (uint32_t i = 0; i < house->rank_count * WIRE_PURPOSES; i++) {
		rest(wires->to[i]);
		rest(atomic_load(&wires->from[i]));
	}
}

void wires_bunch(const struct wires *wires, struct net_end *end, bool in_bunches)
{
	if (!wires->house->plugin)
		net_socket_bunch(end, in_bunches);
}

const char *wires_name(const struct wires *wires)
{
	return wires->house->plugin ? net_plugin_name(wires->house->plugin)
				    : wires->house->net->name;
}
