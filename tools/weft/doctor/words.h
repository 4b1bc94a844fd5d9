/*
 * words.h - many words looked for in one pass, however many there are.
 *
 * The words are ASCII and found in any case. Of each word two places of three letters
 * stand in a table, one at an even distance from its beginning and one at an odd, so that
 * a look at every second place of a text misses none. Looks do not wait for each other,
 * as the steps of an automaton do: a log is read at the speed of memory whatever the
 * catalogue holds.
 */
#ifndef TOOLS_WEFT_DOCTOR_WORDS_H
#define TOOLS_WEFT_DOCTOR_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct words;

/* The words are copied; word i is reported as i. At most WORDS_MAX, of WORDS_BYTES_MIN
 * letters or more; with shorter ones than four every place is looked at. */
enum { WORDS_MAX = 1024, WORDS_BYTES_MIN = 3 };
enum err words_create(struct words **words, const char *const *list, uint32_t count);
void words_destroy(struct words *words);

/* Which words are in a text: each once, in no order; at most `room`. Returns how many. */
uint32_t words_find(const struct words *words, const char *text, size_t bytes,
	uint16_t *found, uint32_t room);

#endif
