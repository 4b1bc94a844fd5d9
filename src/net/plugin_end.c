/*
 * plugin_end.c - the network of a plugin: our operations made of NCCL's.
 *
 * A message is one isend that meets one irecv of the same size; longer ones than both
 * devices take are cut alike at both ends, and empty ones do not travel. Messages under
 * way are asked about in order, the oldest first, as NCCL does. Short ones go through
 * memory of the connection that the plugin knows; for others the caller's memory is
 * made known while they are under way. What lies in a GPU's memory is never touched here:
 * it is made known as such, however short, and what has come there is flushed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/ring.h"
#include "net/plugin_speak.h"

enum {
	DEPTH = 8, /* messages of a connection that the plugin has at once */
	SHORT_BYTES = 4096,
	NONCE_BYTES = 16,
	ARRIVALS_MAX = 64,
	WAIT_SLEEP_US = 20,
	LOOKS_PER_GLANCE = 1024, /* .. at the clock, while nothing moves */
	STILL_SEC = 10
};

static const char claim_magic[8] = "WEFTPLG1";

struct plugin_handle {
	unsigned char nonce[NONCE_BYTES];
	uint64_t message_bytes_max;
	unsigned char plugin[PLUGIN_HANDLE_BYTES];
};
_Static_assert(sizeof(struct plugin_handle) <= NET_HANDLE_BYTES, "a handle holds it");

/* The first message of a connection; the tag is over the rest and the listener's nonce.
 */
struct plugin_claim {
	char magic[sizeof(claim_magic)];
	unsigned char listener[NONCE_BYTES];
	struct net_claim claim;
	uint32_t zero;
	uint64_t message_bytes_max; /* of both devices: where messages are cut */
	unsigned char tag[AUTH_TAG_BYTES];
};
_Static_assert(sizeof(struct plugin_claim) == 80, "no padding on the wire");

/* One isend or irecv. */
struct piece {
	char *data;
	size_t bytes;
	void *known;		   /* .. to the plugin, for this piece alone */
	void *request;		   /* the plugin's; NULL: not asked for yet */
	bool is_short;		   /* it goes through the connection's own memory */
	const struct net_gpu *gpu; /* in whose memory it lies; NULL: the host's */
	bool is_flushing;	   /* it has come, and `request` is the flush's */
	void *told;
};

enum end_kind { END_LISTENER, END_SENDER, END_RECEIVER };

/* What a listener has of its own. */
struct door {
	unsigned char key[AUTH_KEY_BYTES];
	unsigned char nonce[NONCE_BYTES];
	struct plugin_end *arrivals[ARRIVALS_MAX]; /* owned: have not proved themselves */
	uint32_t arrival_count;
};

struct plugin_end {
	const struct net_plugin *plugin; /* borrowed */
	enum end_kind kind;
	void *comm;	   /* the plugin's; NULL while a sender is connecting */
	struct door *door; /* owned: of a listener */
	struct net_claim claim;
	struct plugin_claim words; /* as they travel */
	size_t message_bytes_max;
	struct plugin_handle handle; /* of the listener; plugins write into it */
	struct ring pieces;	     /* of struct piece */
	uint32_t posted;	     /* so many of the first */
	uint64_t done;
	char *shorts; /* owned: DEPTH times SHORT_BYTES; NULL until first needed */
	void *shorts_known;
	uint32_t looks; /* since something moved */
	uint64_t still_ns;
	bool is_lost, is_still_told;
	void *told;		   /* of what is asked for next, */
	const struct net_gpu *gpu; /* and in whose memory it lies; NULL: the host's */
	bool is_gpu_told, is_refusal_told;
};

static struct plugin_end *end_of(struct net_end *end)
{
	return (struct plugin_end *)end;
}

static struct net_end *net_end_of(struct plugin_end *end)
{
	return (struct net_end *)end;
}

static uint32_t end_rank(const struct plugin_end *end)
{
	return end->kind == END_SENDER ? end->claim.to : end->claim.from;
}

/* Nothing more comes or goes by it. */
static enum err end_lost(struct plugin_end *end, const char *function, int result)
{
	const struct plugin_file *file = end->plugin->file;

	end->is_lost = true;
	return err_set(ERR_REMOTE,
		"the network plugin %s (v%d) failed %s rank %u: %s gave: %s", file->name,
		file->version, end->kind == END_SENDER ? "towards" : "from",
		end_rank(end), function, err_name((enum err)result));
}

static struct plugin_end *plugin_end_make(
	const struct net_plugin *plugin, enum end_kind kind)
{
	struct plugin_end *end = calloc(1, sizeof(*end));

	if (!end) {
		err_set(ERR_SYSTEM, "no memory for a connection");
		return NULL;
	}
	end->plugin = plugin;
	end->kind = kind;
	end->message_bytes_max = plugin->device.message_bytes_max;
	return end;
}

static struct piece *piece_at(const struct plugin_end *end, uint32_t i)
{
	return ring_at(&end->pieces, sizeof(struct piece), i);
}

static void plugin_close(struct net_end *net_end);

static void plugin_door_close(struct door *door)
{
	if (!door)
		return;
	for (uint32_t i = 0; i < door->arrival_count; i++)
		plugin_close(net_end_of(door->arrivals[i]));
	auth_wipe(door->key, sizeof(door->key));
	free(door);
}

static void plugin_close(struct net_end *net_end)
{
	struct plugin_end *end = end_of(net_end);
	const struct plugin_abi *abi;

	if (!end)
		return;
	abi = end->plugin->file->abi;
	plugin_door_close(end->door);
	for (uint32_t i = 0; i < end->pieces.count; i++)
		if (piece_at(end, i)->known)
			abi->dereg(end->comm, piece_at(end, i)->known);
	if (end->shorts_known)
		abi->dereg(end->comm, end->shorts_known);
	if (end->comm && end->kind == END_LISTENER)
		abi->close_listen(end->comm);
	else if (end->comm && end->kind == END_SENDER)
		abi->close_send(end->comm);
	else if (end->comm)
		abi->close_recv(end->comm);
	free(end->shorts);
	free(end->pieces.things);
	free(end);
}

/* ---- messages ---- */

static enum err shorts_make(struct plugin_end *end)
{
	enum { ALL = DEPTH * SHORT_BYTES };
	int result;

	if (end->shorts)
		return OK;
	end->shorts = aligned_alloc(SHORT_BYTES, ALL);
	if (!end->shorts)
		return err_set(ERR_SYSTEM, "no memory for short messages");
	result = speak_reg(end->plugin, end->comm,
		&(struct speak_memory){end->shorts, ALL, NULL}, &end->shorts_known);
	return result ? end_lost(end, "regMr", result) : OK;
}

static char *short_of(const struct plugin_end *end, uint32_t i)
{
	return end->shorts + (end->done + i) % DEPTH * SHORT_BYTES;
}

/* Ask the plugin for one message. ERR_AGAIN: it has no room now. */
static enum err piece_post(struct plugin_end *end, uint32_t i)
{
	struct piece *piece = piece_at(end, i);
	struct speak_message message = {
		end->comm, piece->data, piece->bytes, NULL, piece->told};
	bool is_sender = end->kind == END_SENDER;
	enum err e = piece->is_short ? shorts_make(end) : OK;
	int result = 0;

	if (e)
		return e;
	if (piece->is_short) {
		message.data = short_of(end, i);
		message.known = end->shorts_known;
		if (is_sender)
			memcpy(message.data, piece->data, piece->bytes);
	} else if (!piece->known) {
		result = speak_reg(end->plugin, end->comm,
			&(struct speak_memory){piece->data, piece->bytes, piece->gpu},
			&piece->known);
	}
	if (result)
		return end_lost(end, "regMr", result);
	if (!piece->is_short)
		message.known = piece->known;
	result = is_sender ? speak_send(end->plugin, &message, &piece->request)
			   : speak_recv(end->plugin, &message, &piece->request);
	if (result)
		return end_lost(end, is_sender ? "isend" : "irecv", result);
	return piece->request ? OK : ERR_AGAIN;
}

static enum err pieces_post(struct plugin_end *end)
{
	enum err e = OK;

	while (!e && end->posted < end->pieces.count && end->posted < DEPTH) {
		if (piece_at(end, end->posted)->bytes)
			e = piece_post(end, end->posted);
		end->posted += !e;
	}
	return e;
}

/* What the plugin says of a message must be true. */
static enum err piece_judge(struct plugin_end *end, const struct piece *piece, int bytes)
{
	const struct plugin_file *file = end->plugin->file;

	if (end->kind == END_SENDER || (size_t)bytes == piece->bytes)
		return OK;
	end->is_lost = true;
	return err_set(ERR_REMOTE,
		"the network plugin %s (v%d) says that %d bytes came from rank %u where "
		"%zu were sent",
		file->name, file->version, bytes, end_rank(end), piece->bytes);
}

/* A card may tell that bytes have come before a GPU would read them: ask once for all of
 * a piece to be there. ERR_AGAIN: that is under way. */
static enum err piece_flush(struct plugin_end *end, struct piece *piece)
{
	const struct speak_message message = {
		end->comm, piece->data, piece->bytes, piece->known, NULL};
	int result;

	if (!piece->gpu || piece->is_flushing || end->kind == END_SENDER ||
		!speak_must_flush(end->plugin, piece->gpu))
		return OK;
	piece->is_flushing = true;
	result = speak_flush(end->plugin, &message, &piece->request);
	if (result)
		return end_lost(end, "iflush", result);
	return piece->request ? ERR_AGAIN : OK;
}

static enum err piece_test(struct plugin_end *end)
{
	const struct plugin_abi *abi = end->plugin->file->abi;
	struct piece *piece = piece_at(end, 0);
	int is_done = 0, bytes[8] = {0}, result = 0;
	enum err e;

	if (!piece->bytes)
		return OK;
	result = abi->test(piece->request, &is_done, bytes);
	if (result)
		return end_lost(end, "test", result);
	if (!is_done)
		return ERR_AGAIN;
	e = piece->is_flushing ? OK : piece_judge(end, piece, bytes[0]);
	if (!e)
		e = piece_flush(end, piece);
	if (e == ERR_AGAIN)
		return e;
	if (!e && piece->is_short && end->kind == END_RECEIVER)
		memcpy(piece->data, short_of(end, 0), piece->bytes);
	if (piece->known)
		result = abi->dereg(end->comm, piece->known);
	piece->known = NULL;
	if (!e && result)
		e = end_lost(end, "deregMr", result);
	return e;
}

/* Say once that a plugin stands still: it may be waiting for the other rank, or not. */
static void end_look(struct plugin_end *end)
{
	if (++end->looks % LOOKS_PER_GLANCE || end->is_still_told)
		return;
	if (!end->still_ns)
		end->still_ns = clock_ns();
	if (!clock_is_over(end->still_ns, STILL_SEC))
		return;
	end->is_still_told = true;
	log_attn("NET/Plugin: nothing has moved through %s %s rank %u for %d s",
		end->plugin->file->name, end->kind == END_SENDER ? "to" : "from",
		end_rank(end), STILL_SEC);
}

static void end_moved(struct plugin_end *end)
{
	end->looks = 0;
	end->still_ns = 0;
	end->is_still_told = false;
}

static enum err end_connect(struct plugin_end *end)
{
	int result = speak_connect(end->plugin, end->handle.plugin, &end->comm);

	if (result)
		return end_lost(end, "connect", result);
	return end->comm ? OK : ERR_AGAIN;
}

static enum err end_move(struct plugin_end *end)
{
	enum err e = OK, posted;

	if (end->is_lost)
		return ERR_REMOTE;
	if (!end->comm)
		e = end_connect(end);
	while (!e && end->pieces.count) {
		posted = pieces_post(end);
		if (posted && posted != ERR_AGAIN)
			return posted;
		e = end->posted ? piece_test(end) : ERR_AGAIN;
		if (e)
			break;
		ring_drop(&end->pieces);
		end->posted--;
		end->done++;
		end_moved(end);
	}
	if (e == ERR_AGAIN)
		end_look(end);
	return e;
}

static enum err piece_add(struct plugin_end *end, char *data, size_t bytes)
{
	struct piece *piece = ring_add(&end->pieces, sizeof(*piece));

	if (!piece)
		return ERR_SYSTEM;
	*piece = (struct piece){.data = data,
		.bytes = bytes,
		.is_short = bytes <= SHORT_BYTES && !end->gpu,
		.gpu = end->gpu,
		.told = end->told};
	return OK;
}

static enum err plugin_recv(
	struct net_end *net_end, void *data, size_t bytes, struct net_request *request)
{
	struct plugin_end *end = end_of(net_end);
	size_t first = 0;
	enum err e;

	do {
		size_t left = bytes - first;
		size_t most = end->message_bytes_max;

		e = piece_add(end, (char *)data + first, left < most ? left : most);
		first += left < most ? left : most;
	} while (!e && first < bytes);
	end->told = NULL;
	end->gpu = NULL;
	*request = (struct net_request){
		.end = net_end, .goal = end->done + end->pieces.count};
	return e;
}

static enum err plugin_send(struct net_end *net_end, const void *data, size_t bytes,
	struct net_request *request)
{
	return plugin_recv(net_end, (char *)(uintptr_t)data, bytes, request);
}

static void plugin_tell(struct net_end *end, void *told)
{
	end_of(end)->told = told;
}

/* One line a connection, as NCCL's; which GPUs these are is not known in this room. */
static void gpu_log(const struct plugin_end *end)
{
	log_info(LOG_INIT | LOG_NET,
		"Channel 00/0 : %u[%u] -> %u[%u] [%s] via NET/%s/%d/GDRDMA",
		end->claim.from, end->claim.from, end->claim.to, end->claim.to,
		end->kind == END_SENDER ? "send" : "receive", end->plugin->file->name,
		end->plugin->device_index);
}

void net_plugin_in_gpu(struct net_end *net_end, const struct net_gpu *gpu)
{
	struct plugin_end *end = end_of(net_end);

	end->gpu = gpu;
	if (!end->is_gpu_told)
		gpu_log(end);
	end->is_gpu_told = true;
}

bool net_plugin_try_gpu(
	struct net_end *net_end, const struct net_gpu *gpu, void *data, size_t bytes)
{
	struct plugin_end *end = end_of(net_end);
	const struct plugin_file *file = end->plugin->file;
	struct speak_memory memory = {data, bytes, gpu};
	void *known = NULL;
	int result;

	if (bytes > end->message_bytes_max)
		memory.bytes = end->message_bytes_max;
	result = speak_reg(end->plugin, end->comm, &memory, &known);
	if (!result)
		return !file->abi->dereg(end->comm, known);
	if (!end->is_refusal_told)
		log_warn("the network plugin %s (v%d) refuses GPU memory for rank %u: "
			 "regMr gave: %s; it goes through pinned host memory, "
			 "NCCL_NET_GDR_LEVEL=LOC has it go so without a try",
			file->name, file->version, end_rank(end),
			err_name((enum err)result));
	end->is_refusal_told = true;
	return false;
}

/* Plugins have nothing to wait on. Who asks to wait has yielded in vain: where others
 * compute, a sleeper is back sooner than who yields. */
static void wait_turn(void)
{
	struct timespec time = {.tv_nsec = WAIT_SLEEP_US * 1000};

	nanosleep(&time, NULL);
}

static enum err plugin_test(const struct net_request *request, uint32_t wait_us)
{
	struct plugin_end *end = end_of(request->end);
	uint64_t end_ns = wait_us ? clock_ns() + wait_us * 1000ull : 0;
	enum err e = OK;

	while (end->done < request->goal) {
		e = end_move(end);
		if (end->done >= request->goal)
			break;
		if (e && e != ERR_AGAIN)
			return e;
		if (!wait_us || clock_ns() >= end_ns)
			return ERR_AGAIN;
		wait_turn();
	}
	return OK;
}

/* ---- who comes, and who gets in ---- */

static void claim_tag(const struct plugin_claim *words, const unsigned char *key,
	unsigned char tag[AUTH_TAG_BYTES])
{
	auth_tag(key, "plugin claim", words, offsetof(struct plugin_claim, tag), tag);
}

static enum err plugin_connect(const struct net_connect_args *args, struct net_end **end)
{
	struct plugin_end *made = plugin_end_make(args->plugin, END_SENDER);
	struct net_request request;
	enum err e;

	if (!made)
		return ERR_SYSTEM;
	made->claim = args->claim;
	memcpy(&made->handle, args->handle->bytes, sizeof(made->handle));
	if (made->handle.message_bytes_max < made->message_bytes_max)
		made->message_bytes_max = (size_t)made->handle.message_bytes_max;
	made->words.claim = args->claim;
	made->words.message_bytes_max = made->message_bytes_max;
	memcpy(made->words.magic, claim_magic, sizeof(claim_magic));
	memcpy(made->words.listener, made->handle.nonce, NONCE_BYTES);
	claim_tag(&made->words, args->key, made->words.tag);
	e = made->message_bytes_max < sizeof(made->words)
		    ? err_set(ERR_REMOTE, "rank %u takes no messages of its plugin",
			      args->claim.to)
		    : plugin_send(net_end_of(made), &made->words, sizeof(made->words),
			      &request);
	if (e)
		plugin_close(net_end_of(made));
	else
		*end = net_end_of(made);
	return e;
}

static enum err plugin_listen(const struct net_listen_args *args,
	struct net_end **listener, struct net_handle *handle)
{
	struct plugin_end *end = plugin_end_make(args->plugin, END_LISTENER);
	const struct plugin_file *file = args->plugin->file;
	struct plugin_handle body = {
		.message_bytes_max = args->plugin->device.message_bytes_max};
	int result;

	if (end)
		end->door = calloc(1, sizeof(*end->door));
	if (!end || !end->door) {
		plugin_close(net_end_of(end));
		return err_set(ERR_SYSTEM, "no memory to listen");
	}
	auth_random(end->door->nonce, NONCE_BYTES);
	memcpy(end->door->key, args->key, AUTH_KEY_BYTES);
	memcpy(body.nonce, end->door->nonce, NONCE_BYTES);
	result = speak_listen(args->plugin, body.plugin, &end->comm);
	if (result || !end->comm) {
		plugin_close(net_end_of(end));
		return err_set(ERR_SYSTEM,
			"the network plugin %s (v%d) cannot listen on %s: %s", file->name,
			file->version, args->plugin->device.name,
			result ? err_name((enum err)result) : "it gave no listener");
	}
	memset(handle, 0, sizeof(*handle));
	memcpy(handle->bytes, &body, sizeof(body));
	*listener = net_end_of(end);
	return OK;
}

static void door_drop(struct door *door, uint32_t i)
{
	memmove(&door->arrivals[i], &door->arrivals[i + 1],
		(--door->arrival_count - i) * sizeof(struct plugin_end *));
}

/* Take in whoever the plugin has; each is asked for its claim. */
static enum err plugin_door_serve(struct plugin_end *listener)
{
	struct door *door = listener->door;
	struct net_request request;
	struct plugin_end *end;
	void *comm = NULL;
	int result;
	enum err e;

	while (!(result = speak_accept(listener->plugin, listener->comm, &comm)) &&
		comm) {
		if (door->arrival_count == ARRIVALS_MAX) {
			plugin_close(net_end_of(door->arrivals[0]));
			door_drop(door, 0);
		}
		end = plugin_end_make(listener->plugin, END_RECEIVER);
		if (!end) {
			listener->plugin->file->abi->close_recv(comm);
			return ERR_SYSTEM;
		}
		end->comm = comm;
		comm = NULL;
		door->arrivals[door->arrival_count++] = end;
		e = plugin_recv(
			net_end_of(end), &end->words, sizeof(end->words), &request);
		if (e)
			return e;
	}
	return result ? err_set(ERR_REMOTE,
				"the network plugin %s (v%d) takes no connections any "
				"more: accept gave: %s",
				listener->plugin->file->name,
				listener->plugin->file->version,
				err_name((enum err)result))
		      : OK;
}

static bool claim_is_good(const struct door *door, const struct plugin_end *end)
{
	const struct plugin_claim *words = &end->words;

	return !memcmp(words->magic, claim_magic, sizeof(claim_magic)) &&
	       !memcmp(words->listener, door->nonce, NONCE_BYTES) &&
	       auth_check(door->key, "plugin claim", words,
		       offsetof(struct plugin_claim, tag), words->tag) &&
	       words->message_bytes_max >= sizeof(*words) &&
	       words->message_bytes_max <= end->plugin->device.message_bytes_max;
}

/* One of those that have come and proved themselves; who did not goes. */
static struct plugin_end *door_find(struct door *door)
{
	for (uint32_t i = 0; i < door->arrival_count; i++) {
		struct plugin_end *end = door->arrivals[i];
		enum err e = end_move(end);

		if (e == ERR_AGAIN)
			continue;
		door_drop(door, i--);
		if (!e && claim_is_good(door, end)) {
			end->claim = end->words.claim;
			end->message_bytes_max = (size_t)end->words.message_bytes_max;
			return end;
		}
		log_info(LOG_NET,
			"NET/Plugin: a connection without a good claim is closed");
		plugin_close(net_end_of(end));
	}
	return NULL;
}

static enum err plugin_accept(
	struct net_end *listener, struct net_claim *claim, struct net_end **end)
{
	enum err e = plugin_door_serve(end_of(listener));
	struct plugin_end *found = e ? NULL : door_find(end_of(listener)->door);

	if (!found)
		return e ? e : ERR_AGAIN;
	*claim = found->claim;
	*end = net_end_of(found);
	return OK;
}

const struct net_ops net_by_plugin = {
	.name = "Plugin",
	.listen = plugin_listen,
	.connect = plugin_connect,
	.accept = plugin_accept,
	.tell = plugin_tell,
	.send = plugin_send,
	.recv = plugin_recv,
	.test = plugin_test,
	.close = plugin_close,
};
