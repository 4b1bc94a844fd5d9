#include "net/plugin_kept.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

enum {
	DEPTH = 8, /* messages of a connection that the plugin has at once */
	SHORT_BYTES = 8192,
	LOOKS_PER_GLANCE = 1024, /* .. at the clock, while nothing moves */
	STILL_SEC = 10
};

/* Of a frame; the bytes of its messages follow. */
struct frame_head {
	uint32_t bytes, zero;
};

uint32_t plugin_line_rank(const struct plugin_line *line)
{
	return line->kind == END_SENDER ? line->claim.to : line->claim.from;
}

/* Nothing more comes or goes by it. */
enum err plugin_line_lost(struct plugin_line *line, const char *function, int result)
{
	const struct plugin_file *file = line->plugin->file;

	line->is_lost = true;
	return err_set(ERR_REMOTE,
		"the network plugin %s (v%d) failed %s rank %u: %s gave: %s", file->name,
		file->version, line->kind == END_SENDER ? "towards" : "from",
		plugin_line_rank(line), function, err_name((enum err)result));
}

struct plugin_piece *plugin_piece_at(const struct plugin_line *line, uint32_t i)
{
	return ring_at(&line->pieces, sizeof(struct plugin_piece), i);
}

static enum err shorts_make(struct plugin_line *line)
{
	enum { ALL = DEPTH * SHORT_BYTES };
	int result;

	if (line->shorts)
		return OK;
	line->shorts = aligned_alloc(SHORT_BYTES, ALL);
	if (!line->shorts)
		return err_set(ERR_SYSTEM, "no memory for short messages");
	result = speak_reg(line->plugin, line->comm,
		&(struct speak_memory){line->shorts, ALL, NULL}, &line->shorts_known);
	return result ? plugin_line_lost(line, "regMr", result) : OK;
}

static char *short_of(const struct plugin_line *line, uint32_t i)
{
	return line->shorts + (line->done + i) % DEPTH * SHORT_BYTES;
}

/* Memory that is kept is known for longer than a message. */
static int piece_know(const struct plugin_line *line, struct plugin_piece *piece)
{
	const struct speak_memory memory = {piece->data, piece->bytes, piece->gpu};

	if (piece->known || piece->hold)
		return 0;
	piece->hold = kept_take(line, &memory);
	return piece->hold ? 0
			   : speak_reg(line->plugin, line->comm, &memory, &piece->known);
}

static void *piece_known(const struct plugin_piece *piece)
{
	return piece->hold ? kept_known(piece->hold) : piece->known;
}

int plugin_piece_forget(const struct plugin_line *line, struct plugin_piece *piece)
{
	void *known = piece->known;

	if (piece->hold)
		kept_give(piece->hold);
	piece->hold = NULL;
	piece->known = NULL;
	return known ? line->plugin->file->abi->dereg(line->comm, known) : 0;
}

/* Ask the plugin for one message. ERR_AGAIN: it has no room now. */
static enum err piece_post(struct plugin_line *line, uint32_t i)
{
	struct plugin_piece *piece = plugin_piece_at(line, i);
	struct speak_message message = {
		line->comm, piece->data, piece->bytes, NULL, piece->told};
	bool is_sender = line->kind == END_SENDER;
	enum err e = piece->is_short ? shorts_make(line) : OK;
	int result = 0;

	if (e)
		return e;
	if (piece->is_short) {
		message.data = short_of(line, i);
		message.known = line->shorts_known;
		if (is_sender)
			memcpy(message.data, piece->data, piece->bytes);
	} else {
		result = piece_know(line, piece);
	}
	if (result)
		return plugin_line_lost(line, "regMr", result);
	if (!piece->is_short)
		message.known = piece_known(piece);
	result = is_sender ? speak_send(line->plugin, &message, &piece->request)
			   : speak_recv(line->plugin, &message, &piece->request);
	if (result)
		return plugin_line_lost(line, is_sender ? "isend" : "irecv", result);
	return piece->request ? OK : ERR_AGAIN;
}

/* Bytes of the messages that a frame may have. */
static size_t frame_room(const struct plugin_line *line)
{
	size_t most = line->message_bytes_max;

	return (most < SHORT_BYTES ? most : SHORT_BYTES) - sizeof(struct frame_head);
}

/* All that may go in one, from the first that is not posted on. */
static enum err frame_send(struct plugin_line *line)
{
	struct plugin_piece *first = plugin_piece_at(line, line->posted);
	struct frame_head head = {0};
	struct speak_message message = {line->comm, NULL, 0, NULL, NULL};
	uint32_t count = 0;
	enum err e = shorts_make(line);
	int result;

	if (e)
		return e;
	message.data = short_of(line, line->posted);
	message.known = line->shorts_known;
	for (; line->posted + count < line->pieces.count && line->posted + count < DEPTH;
		count++) {
		const struct plugin_piece *piece = plugin_piece_at(
			line, line->posted + count);

		if (!piece->is_framed || head.bytes + piece->bytes > frame_room(line))
			break;
		memcpy((char *)message.data + sizeof(head) + head.bytes, piece->data,
			piece->bytes);
		head.bytes += (uint32_t)piece->bytes;
		message.told = piece->told ? piece->told : message.told;
	}
	memcpy(message.data, &head, sizeof(head));
	message.bytes = sizeof(head) + head.bytes;
	result = speak_send(line->plugin, &message, &first->request);
	if (result)
		return plugin_line_lost(line, "isend", result);
	first->framed = count;
	line->posted += first->request ? count : 0;
	return first->request ? OK : ERR_AGAIN;
}

/* Nothing is asked for beside a frame, for nobody knows how many messages come in it. */
static enum err frame_ask(struct plugin_line *line)
{
	struct plugin_piece *piece = plugin_piece_at(line, 0);
	struct speak_message message = {line->comm, NULL,
		frame_room(line) + sizeof(struct frame_head), NULL, piece->told};
	enum err e = line->posted ? ERR_AGAIN : shorts_make(line);
	int result;

	if (!e && line->frame_at < line->frame_end) {
		line->posted++;
		return OK;
	}
	if (e)
		return e;
	message.data = line->shorts;
	message.known = line->shorts_known;
	result = speak_recv(line->plugin, &message, &piece->request);
	if (result)
		return plugin_line_lost(line, "irecv", result);
	line->posted += piece->request != NULL;
	return piece->request ? OK : ERR_AGAIN;
}

static enum err frame_lost(struct plugin_line *line, size_t came, size_t wanted)
{
	const struct plugin_file *file = line->plugin->file;

	line->is_lost = true;
	return err_set(ERR_REMOTE,
		"the network plugin %s (v%d) says that %zu bytes came from rank %u where "
		"%zu were sent",
		file->name, file->version, came, plugin_line_rank(line), wanted);
}

/* May a long message be asked for behind a frame? One that is asked for with long ones
 * behind has one message alone. What goes through the connection's memory would go where
 * that frame does. */
static bool is_behind_frame(const struct plugin_line *line)
{
	return plugin_piece_at(line, 0)->request &&
	       !plugin_piece_at(line, line->posted)->is_short;
}

/* A message by itself; after frames it waits until they have come. */
static enum err lone_post(struct plugin_line *line)
{
	bool is_receiver = line->kind == END_RECEIVER;
	enum err e = OK;

	if (is_receiver && line->posted && plugin_piece_at(line, 0)->is_framed)
		e = is_behind_frame(line) ? OK : ERR_AGAIN;
	else if (is_receiver && line->frame_at < line->frame_end)
		e = frame_lost(line, line->frame_end - line->frame_at, 0);
	if (!e)
		e = piece_post(line, line->posted);
	line->posted += !e;
	return e;
}

static enum err pieces_post(struct plugin_line *line)
{
	enum err e = OK;

	while (!e && line->posted < line->pieces.count && line->posted < DEPTH) {
		const struct plugin_piece *piece = plugin_piece_at(line, line->posted);

		if (!piece->bytes)
			line->posted++;
		else if (!piece->is_framed)
			e = lone_post(line);
		else
			e = line->kind == END_SENDER ? frame_send(line) : frame_ask(line);
	}
	return e;
}

/* The next message of a frame, which may have to come first. */
static enum err frame_take(struct plugin_line *line, struct plugin_piece *piece)
{
	int is_done = 0, bytes[8] = {0}, result = 0;
	struct frame_head head;

	if (piece->request) {
		result = line->plugin->file->abi->test(piece->request, &is_done, bytes);
		if (result)
			return plugin_line_lost(line, "test", result);
		if (!is_done)
			return ERR_AGAIN;
		piece->request = NULL;
		memcpy(&head, line->shorts, sizeof(head));
		if ((size_t)bytes[0] != sizeof(head) + head.bytes ||
			head.bytes > frame_room(line))
			return frame_lost(
				line, (size_t)bytes[0], sizeof(head) + head.bytes);
		line->frame_at = sizeof(head);
		line->frame_end = (size_t)bytes[0];
	}
	if (line->frame_end - line->frame_at < piece->bytes)
		return frame_lost(line, line->frame_end - line->frame_at, piece->bytes);
	memcpy(piece->data, line->shorts + line->frame_at, piece->bytes);
	line->frame_at += piece->bytes;
	if (line->frame_at < line->frame_end &&
		!plugin_piece_at(line, line->posted - 1)->is_framed)
		return frame_lost(line, line->frame_end - line->frame_at, 0);
	return OK;
}

/* What the plugin says of a message must be true. */
static enum err piece_judge(
	struct plugin_line *line, const struct plugin_piece *piece, int bytes)
{
	const struct plugin_file *file = line->plugin->file;

	if (line->kind == END_SENDER || (size_t)bytes == piece->bytes)
		return OK;
	line->is_lost = true;
	return err_set(ERR_REMOTE,
		"the network plugin %s (v%d) says that %d bytes came from rank %u where "
		"%zu were sent",
		file->name, file->version, bytes, plugin_line_rank(line), piece->bytes);
}

/* A card may tell that bytes have come before a GPU would read them: ask once for all of
 * a piece to be there. ERR_AGAIN: that is under way. */
static enum err piece_flush(struct plugin_line *line, struct plugin_piece *piece)
{
	const struct speak_message message = {
		line->comm, piece->data, piece->bytes, piece_known(piece), NULL};
	int result;

	if (!piece->gpu || piece->is_flushing || line->kind == END_SENDER ||
		!speak_must_flush(line->plugin, piece->gpu))
		return OK;
	piece->is_flushing = true;
	result = speak_flush(line->plugin, &message, &piece->request);
	if (result)
		return plugin_line_lost(line, "iflush", result);
	return piece->request ? ERR_AGAIN : OK;
}

static enum err piece_test(struct plugin_line *line)
{
	const struct plugin_abi *abi = line->plugin->file->abi;
	struct plugin_piece *piece = plugin_piece_at(line, 0);
	int is_done = 0, bytes[8] = {0}, result = 0;
	enum err e;

	if (!piece->bytes)
		return OK;
	if (piece->is_framed && line->kind == END_RECEIVER)
		return frame_take(line, piece);
	result = abi->test(piece->request, &is_done, bytes);
	if (result)
		return plugin_line_lost(line, "test", result);
	if (!is_done)
		return ERR_AGAIN;
	e = piece->is_flushing ? OK : piece_judge(line, piece, bytes[0]);
	if (!e)
		e = piece_flush(line, piece);
	if (e == ERR_AGAIN)
		return e;
	if (!e && piece->is_short && line->kind == END_RECEIVER)
		memcpy(piece->data, short_of(line, 0), piece->bytes);
	result = plugin_piece_forget(line, piece);
	if (!e && result)
		e = plugin_line_lost(line, "deregMr", result);
	return e;
}

/* Say once that a plugin stands still: it may be waiting for the other rank, or not. */
static void end_look(struct plugin_line *line)
{
	if (++line->looks % LOOKS_PER_GLANCE || line->is_still_told)
		return;
	if (!line->still_ns)
		line->still_ns = clock_ns();
	if (!clock_is_over(line->still_ns, STILL_SEC))
		return;
	line->is_still_told = true;
	log_attn("NET/Plugin: nothing has moved through %s %s rank %u for %d s",
		line->plugin->file->name, line->kind == END_SENDER ? "to" : "from",
		plugin_line_rank(line), STILL_SEC);
}

static void end_moved(struct plugin_line *line)
{
	line->looks = 0;
	line->still_ns = 0;
	line->is_still_told = false;
}

static enum err end_connect(struct plugin_line *line)
{
	int result = speak_connect(line->plugin, line->handle.plugin, &line->comm);

	if (result)
		return plugin_line_lost(line, "connect", result);
	return line->comm ? OK : ERR_AGAIN;
}

/* How many are done with the first. */
static uint32_t pieces_together(const struct plugin_line *line)
{
	uint32_t framed = plugin_piece_at(line, 0)->framed;

	return framed ? framed : 1;
}

enum err plugin_line_move(struct plugin_line *line)
{
	enum err e = OK, posted;

	if (line->is_lost)
		return ERR_REMOTE;
	if (!line->comm)
		e = end_connect(line);
	while (!e && line->pieces.count) {
		posted = pieces_post(line);
		if (posted && posted != ERR_AGAIN)
			return posted;
		e = line->posted ? piece_test(line) : ERR_AGAIN;
		if (e)
			break;
		for (uint32_t i = pieces_together(line); i; i--) {
			ring_drop(&line->pieces);
			line->posted--;
			line->done++;
		}
		end_moved(line);
	}
	if (e == ERR_AGAIN)
		end_look(line);
	return e;
}

enum err plugin_piece_add(struct plugin_line *line, char *data, size_t bytes)
{
	struct plugin_piece *piece = ring_add(&line->pieces, sizeof(*piece));

	if (!piece)
		return ERR_SYSTEM;
	*piece = (struct plugin_piece){.data = data,
		.bytes = bytes,
		.is_short = bytes <= SHORT_BYTES && !line->gpu,
		.is_framed = line->is_packed && bytes <= frame_room(line) && !line->gpu,
		.gpu = line->gpu,
		.told = line->told};
	return OK;
}
