/*
 * plugin_kept.h - memory that its owner keeps for longer than a message, and the
 * connections that have made it known to the plugin: for the plugin*.c files alone.
 *
 * To make memory known is dear for some devices. Memory that is kept is made known whole
 * when the first message that lies in it goes by a connection, and stays known there
 * until it is kept no more, the connection closes, or its pages are replaced. It is not
 * for memory that may be given back without a word: a device would go on using the old
 * pages.
 *
 * Any thread may keep and forget, as NCCL has one thread register memory of a connection
 * that another one moves messages on. A plugin that does not return from regMr holds up
 * who forgets that very memory, for WEFT_PLUGIN_SEC, and nobody else.
 */
#ifndef NET_PLUGIN_KEPT_H
#define NET_PLUGIN_KEPT_H

#include "net/plugin_pieces.h"

struct plugin_kept; /* all that is kept for one communicator */
struct kept_hold;   /* what one connection knows of one piece of memory */

struct plugin_kept *plugin_kept_make(void); /* NULL: no memory */
/* All connections are closed. NULL is fine. */
void plugin_kept_free(struct plugin_kept *kept);

/* Memory may be kept several times and parts of it again; each is forgotten by itself. */
enum err plugin_kept_add(struct plugin_kept *kept, char *data, size_t bytes);
void plugin_kept_remove(struct plugin_kept *kept, char *data, size_t bytes);

/* What the plugin knows the memory of a message by, which stays good until kept_give().
 * NULL: it is not kept, or the plugin would not have it whole. */
struct kept_hold *kept_take(
	const struct plugin_line *line, const struct speak_memory *memory);
void *kept_known(const struct kept_hold *hold);
void kept_give(struct kept_hold *hold);

/* The connection is about to close: nothing of it is taken any more. */
void kept_line_close(const struct plugin_line *line);

#endif
