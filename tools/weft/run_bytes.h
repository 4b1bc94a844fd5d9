/*
 * run_bytes.h - bytes that grow, and what is packed into them: numbers and texts.
 *
 * Reading never goes beyond the end: what is not there is 0 or "", and sets `is_bad`.
 */
#ifndef TOOLS_WEFT_RUN_BYTES_H
#define TOOLS_WEFT_RUN_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct run_bytes {
	char *data; /* owned */
	size_t count, room;
	size_t at;   /* of the next that is read */
	bool is_bad; /* something was not there to be read */
};

/* Without memory a tool ends, with a sentence. */
void run_bytes_add(struct run_bytes *bytes, const void *data, size_t count);
void run_bytes_add_number(struct run_bytes *bytes, uint32_t number);
void run_bytes_add_text(struct run_bytes *bytes, const char *text);

uint32_t run_bytes_number(struct run_bytes *bytes);
const char *run_bytes_text(struct run_bytes *bytes); /* inside `data` */

/* Drop the first ones. */
void run_bytes_drop(struct run_bytes *bytes, size_t count);

void run_bytes_fini(struct run_bytes *bytes);

#endif
