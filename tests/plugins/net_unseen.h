/*
 * net_unseen.h - what has come to the test plugin for a GPU, and is not there yet.
 */
#ifndef NET_UNSEEN_H
#define NET_UNSEEN_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* The GPU does not see it before it is flushed. */
struct unseen {
	struct unseen *next;
	char *data, *aside; /* aside owned */
	size_t bytes;
};

static inline void unseen_drop(struct unseen **at)
{
	struct unseen *unseen = *at;

	*at = unseen->next;
	free(unseen->aside);
	free(unseen);
}

/* .. and now it does. */
static inline void unseen_show(struct unseen **at)
{
	memcpy((*at)->data, (*at)->aside, (*at)->bytes);
	unseen_drop(at);
}

#endif
