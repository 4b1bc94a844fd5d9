/*
 * plugin_pieces.h - the messages of one connection of a network plugin: ours made of
 * NCCL's. For plugin_end.c alone, which has how connections come about.
 *
 * A message is one isend that meets one irecv of the same size; longer ones than both
 * devices take are cut alike at both ends, and empty ones do not travel. Messages under
 * way are asked about in order, the oldest first, as NCCL does. Short ones go through
 * memory of the connection that the plugin knows; for others the caller's memory is
 * made known while they are under way. What lies in a GPU's memory is never touched here:
 * it is made known as such, however short, and what has come there is flushed.
 *
 * Short messages that follow each other on a packed connection travel in one, a frame, as
 * far as they are there when it is sent: a call's words and its few bytes are one message
 * of the plugin. The receiver asks for a frame when it wants the first of its messages,
 * and for nothing behind it before it has come, but for long messages: if one follows
 * that first one, the frame ends in front of it.
 */
#ifndef NET_PLUGIN_PIECES_H
#define NET_PLUGIN_PIECES_H

#include "base/ring.h"
#include "net/plugin_speak.h"

enum { PLUGIN_NONCE_BYTES = 16 };

struct plugin_handle {
	unsigned char nonce[PLUGIN_NONCE_BYTES];
	uint64_t message_bytes_max;
	unsigned char plugin[PLUGIN_HANDLE_BYTES];
};
_Static_assert(sizeof(struct plugin_handle) <= NET_HANDLE_BYTES, "a handle holds it");

/* One isend or irecv, or what goes by one with others. */
struct plugin_piece {
	char *data;
	size_t bytes;
	void *known;		   /* .. to the plugin, for this piece alone */
	struct kept_hold *hold;	   /* .. for longer (plugin_kept.h) */
	void *request;		   /* the plugin's; NULL: not asked for yet */
	bool is_short;		   /* it goes through the connection's own memory */
	bool is_framed;		   /* .. in a frame */
	uint32_t framed;	   /* of the first in one: so many are in it */
	const struct net_gpu *gpu; /* in whose memory it lies; NULL: the host's */
	bool is_flushing;	   /* it has come, and `request` is the flush's */
	void *told;
};

enum end_kind { END_LISTENER, END_SENDER, END_RECEIVER };

struct plugin_line {
	const struct net_plugin *plugin; /* borrowed */
	enum end_kind kind;
	void *comm; /* the plugin's; NULL while a sender is connecting */
	struct net_claim claim;
	size_t message_bytes_max;
	struct plugin_handle handle; /* of the listener; plugins write into it */
	struct ring pieces;	     /* of struct plugin_piece */
	uint32_t posted;	     /* so many of the first */
	uint64_t done;
	bool is_packed;
	size_t frame_at, frame_end; /* what of the last frame is not taken yet */
	char *shorts;		    /* owned: short messages; NULL until first needed */
	void *shorts_known;
	uint32_t looks; /* since something moved */
	uint64_t still_ns;
	bool is_lost, is_still_told;
	void *told;		   /* of what is asked for next, */
	const struct net_gpu *gpu; /* and in whose memory it lies; NULL: the host's */
};

/* A sentence that names the plugin; nothing more comes or goes by the end. */
enum err plugin_line_lost(struct plugin_line *line, const char *function, int result);

/* The i-th that is not done. */
struct plugin_piece *plugin_piece_at(const struct plugin_line *line, uint32_t i);

/* One more to send, or to receive: no longer than message_bytes_max. */
enum err plugin_piece_add(struct plugin_line *line, char *data, size_t bytes);

/* The plugin need not know the memory of a message any more: its result. */
int plugin_piece_forget(const struct plugin_line *line, struct plugin_piece *piece);

/* Connect, where that is not done, and move messages on. OK: all are done. */
enum err plugin_line_move(struct plugin_line *line);

/* Who is at the other end. */
uint32_t plugin_line_rank(const struct plugin_line *line);

#endif
