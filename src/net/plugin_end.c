/*
 * plugin_end.c - the network of a plugin: our operations made of NCCL's. What travels on
 * a connection is in plugin_pieces.h; here is how they come about, and who gets in.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/plugin_kept.h"

enum { ARRIVALS_MAX = 64, WAIT_SLEEP_US = 20 };

static const char claim_magic[8] = "WEFTPLG2";

/* The first message of a connection; the tag is over the rest and the listener's nonce.
 */
struct plugin_claim {
	char magic[sizeof(claim_magic)];
	unsigned char listener[PLUGIN_NONCE_BYTES];
	struct net_claim claim;
	uint32_t is_packed;
	uint64_t message_bytes_max; /* of both devices: where messages are cut */
	unsigned char tag[AUTH_TAG_BYTES];
};
_Static_assert(sizeof(struct plugin_claim) == 80, "no padding on the wire");

/* What a listener has of its own. */
struct door {
	unsigned char key[AUTH_KEY_BYTES];
	unsigned char nonce[PLUGIN_NONCE_BYTES];
	struct plugin_end *arrivals[ARRIVALS_MAX]; /* owned: have not proved themselves */
	uint32_t arrival_count;
};

struct plugin_end {
	struct plugin_line line;
	struct door *door;	   /* owned: of a listener */
	struct plugin_claim words; /* as they travel */
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

static struct plugin_end *plugin_end_make(
	const struct net_plugin *plugin, enum end_kind kind)
{
	struct plugin_end *end = calloc(1, sizeof(*end));

	if (!end) {
		err_set(ERR_SYSTEM, "no memory for a connection");
		return NULL;
	}
	end->line.plugin = plugin;
	end->line.kind = kind;
	end->line.message_bytes_max = plugin->device.message_bytes_max;
	return end;
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

/* The plugin has nothing of it any more, and writes nowhere. */
static void line_close(struct plugin_line *line)
{
	const struct plugin_abi *abi = line->plugin->file->abi;

	for (; line->pieces.count; ring_drop(&line->pieces))
		plugin_piece_forget(line, plugin_piece_at(line, 0));
	kept_line_close(line);
	if (line->shorts_known)
		abi->dereg(line->comm, line->shorts_known);
	line->shorts_known = NULL;
	if (line->comm && line->kind == END_LISTENER)
		abi->close_listen(line->comm);
	else if (line->comm && line->kind == END_SENDER)
		abi->close_send(line->comm);
	else if (line->comm)
		abi->close_recv(line->comm);
	line->comm = NULL;
}

void net_plugin_rest(struct net_end *net_end)
{
	struct plugin_end *end = end_of(net_end);

	if (!end || !end->line.pieces.count)
		return;
	line_close(&end->line);
	end->line.is_lost = true;
}

static void plugin_close(struct net_end *net_end)
{
	struct plugin_end *end = end_of(net_end);

	if (!end)
		return;
	plugin_door_close(end->door);
	line_close(&end->line);
	free(end->line.shorts);
	free(end->line.pieces.things);
	free(end);
}

static enum err plugin_recv(
	struct net_end *net_end, void *data, size_t bytes, struct net_request *request)
{
	struct plugin_end *end = end_of(net_end);
	size_t first = 0;
	enum err e;

	do {
		size_t left = bytes - first;
		size_t most = end->line.message_bytes_max;

		e = plugin_piece_add(
			&end->line, (char *)data + first, left < most ? left : most);
		first += left < most ? left : most;
	} while (!e && first < bytes);
	end->line.told = NULL;
	end->line.gpu = NULL;
	*request = (struct net_request){
		.end = net_end, .goal = end->line.done + end->line.pieces.count};
	return e;
}

static enum err plugin_send(struct net_end *net_end, const void *data, size_t bytes,
	struct net_request *request)
{
	return plugin_recv(net_end, (char *)(uintptr_t)data, bytes, request);
}

static void plugin_tell(struct net_end *end, void *told)
{
	end_of(end)->line.told = told;
}

/* One line a connection, as NCCL's; which GPUs these are is not known in this room. */
static void gpu_log(const struct plugin_end *end)
{
	log_info(LOG_INIT | LOG_NET,
		"Channel 00/0 : %u[%u] -> %u[%u] [%s] via NET/%s/%d/GDRDMA",
		end->line.claim.from, end->line.claim.from, end->line.claim.to,
		end->line.claim.to, end->line.kind == END_SENDER ? "send" : "receive",
		end->line.plugin->file->name, end->line.plugin->device_index);
}

void net_plugin_in_gpu(struct net_end *net_end, const struct net_gpu *gpu)
{
	struct plugin_end *end = end_of(net_end);

	end->line.gpu = gpu;
	if (gpu->enter)
		gpu->enter(gpu->context);
	if (!end->is_gpu_told)
		gpu_log(end);
	end->is_gpu_told = true;
}

bool net_plugin_try_gpu(
	struct net_end *net_end, const struct net_gpu *gpu, void *data, size_t bytes)
{
	struct plugin_end *end = end_of(net_end);
	const struct plugin_file *file = end->line.plugin->file;
	struct speak_memory memory = {data, bytes, gpu};
	void *known = NULL;
	int result;

	if (bytes > end->line.message_bytes_max)
		memory.bytes = end->line.message_bytes_max;
	if (gpu->enter)
		gpu->enter(gpu->context);
	result = speak_reg(end->line.plugin, end->line.comm, &memory, &known);
	if (!result)
		return !file->abi->dereg(end->line.comm, known);
	if (!end->is_refusal_told)
		log_warn("the network plugin %s (v%d) refuses GPU memory for rank %u: "
			 "regMr gave: %s; it goes through pinned host memory, "
			 "NCCL_NET_GDR_LEVEL=LOC has it go so without a try",
			file->name, file->version, plugin_line_rank(&end->line),
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

	while (end->line.done < request->goal) {
		e = plugin_line_move(&end->line);
		if (end->line.done >= request->goal)
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
	made->line.claim = args->claim;
	memcpy(&made->line.handle, args->handle->bytes, sizeof(made->line.handle));
	if (made->line.handle.message_bytes_max < made->line.message_bytes_max)
		made->line.message_bytes_max =
			(size_t)made->line.handle.message_bytes_max;
	made->words.claim = args->claim;
	made->words.message_bytes_max = made->line.message_bytes_max;
	made->words.is_packed = args->is_packed;
	memcpy(made->words.magic, claim_magic, sizeof(claim_magic));
	memcpy(made->words.listener, made->line.handle.nonce, PLUGIN_NONCE_BYTES);
	claim_tag(&made->words, args->key, made->words.tag);
	e = made->line.message_bytes_max < sizeof(made->words)
		    ? err_set(ERR_REMOTE, "rank %u takes no messages of its plugin",
			      args->claim.to)
		    : plugin_send(net_end_of(made), &made->words, sizeof(made->words),
			      &request);
	made->line.is_packed = args->is_packed;
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
	auth_random(end->door->nonce, PLUGIN_NONCE_BYTES);
	memcpy(end->door->key, args->key, AUTH_KEY_BYTES);
	memcpy(body.nonce, end->door->nonce, PLUGIN_NONCE_BYTES);
	result = speak_listen(args->plugin, body.plugin, &end->line.comm);
	if (result || !end->line.comm) {
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

	while (!(result = speak_accept(
			 listener->line.plugin, listener->line.comm, &comm)) &&
		comm) {
		if (door->arrival_count == ARRIVALS_MAX) {
			plugin_close(net_end_of(door->arrivals[0]));
			door_drop(door, 0);
		}
		end = plugin_end_make(listener->line.plugin, END_RECEIVER);
		if (!end) {
			listener->line.plugin->file->abi->close_recv(comm);
			return ERR_SYSTEM;
		}
		end->line.comm = comm;
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
				listener->line.plugin->file->name,
				listener->line.plugin->file->version,
				err_name((enum err)result))
		      : OK;
}

static bool claim_is_good(const struct door *door, const struct plugin_end *end)
{
	const struct plugin_claim *words = &end->words;

	return !memcmp(words->magic, claim_magic, sizeof(claim_magic)) &&
	       !memcmp(words->listener, door->nonce, PLUGIN_NONCE_BYTES) &&
	       auth_check(door->key, "plugin claim", words,
		       offsetof(struct plugin_claim, tag), words->tag) &&
	       words->message_bytes_max >= sizeof(*words) &&
	       words->message_bytes_max <= end->line.plugin->device.message_bytes_max;
}

/* One of those that have come and proved themselves; who did not goes. */
static struct plugin_end *door_find(struct door *door)
{
	for (uint32_t i = 0; i < door->arrival_count; i++) {
		struct plugin_end *end = door->arrivals[i];
		enum err e = plugin_line_move(&end->line);

		if (e == ERR_AGAIN)
			continue;
		door_drop(door, i--);
		if (!e && claim_is_good(door, end)) {
			end->line.claim = end->words.claim;
			end->line.message_bytes_max =
				(size_t)end->words.message_bytes_max;
			end->line.is_packed = end->words.is_packed;
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
	*claim = found->line.claim;
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
