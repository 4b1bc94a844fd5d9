#include "weft/doctor/words.h"

#include <assert.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* TOLD marks a state in which a word ends: one look at it, and mostly no more. */
enum { CLASSES = 64, NONE = 0xffff, TOLD = 0x8000, STATES_MAX = TOLD - 1 };

struct words {
	uint8_t class_of[256]; /* 0: in no word */
	uint32_t class_count;
	uint16_t (*next)[CLASSES]; /* owned; by state */
	uint16_t *word;		   /* owned; the word that ends in a state, or NONE */
	uint16_t *shorter; /* owned; the next state whose word ends here, too; 0 */
	uint16_t *report;  /* owned; the first such state, itself included; 0 */
	uint16_t *twin;	   /* owned; by word: one of the same text, or NONE */
	uint32_t state_count;
};

static void classify(struct words *words, const char *text)
{
	for (; *text; text++) {
		unsigned char low = (unsigned char)tolower((unsigned char)*text);

		if (words->class_of[low])
			continue;
		assert(words->class_count < CLASSES - 1);
		words->class_of[low] = (uint8_t)++words->class_count;
		words->class_of[toupper(low)] = words->class_of[low];
	}
}

static void plant(struct words *words, const char *text, uint16_t index)
{
	uint32_t state = 0;

	for (; *text; text++) {
		uint8_t class = words->class_of[(unsigned char)*text];

		if (!words->next[state][class])
			words->next[state][class] = (uint16_t)words->state_count++;
		state = words->next[state][class];
	}
	words->twin[index] = words->word[state];
	words->word[state] = index;
}

/* Breadth first, fill in where to go when a word ends early. */
static bool join(struct words *words)
{
	uint16_t *queue = calloc(words->state_count, sizeof(*queue));
	uint16_t *fallback = calloc(words->state_count, sizeof(*fallback));
	uint32_t head = 0, tail = 0;
	bool done = queue && fallback;

	for (uint32_t c = 0; done && c < CLASSES; c++)
		if (words->next[0][c])
			queue[tail++] = words->next[0][c];
	while (done && head < tail) {
		uint16_t state = queue[head++], back = fallback[state];

		words->shorter[state] = words->report[back];
		words->report[state] = words->word[state] != NONE ? state
								  : words->report[back];
		for (uint32_t c = 0; c < CLASSES; c++) {
			uint16_t to = words->next[state][c];

			if (!to) {
				words->next[state][c] = words->next[back][c];
				continue;
			}
			fallback[to] = words->next[back][c];
			queue[tail++] = to;
		}
	}
	free(queue);
	free(fallback);
	return done;
}

static void mark_told(struct words *words)
{
	for (uint32_t state = 0; state < words->state_count; state++)
		for (uint32_t c = 0; c < CLASSES; c++)
			if (words->report[words->next[state][c]])
				words->next[state][c] |= TOLD;
}

static bool reserve(struct words *words, uint32_t states, uint32_t count)
{
	words->next = calloc(states, sizeof(*words->next));
	words->word = malloc(states * sizeof(*words->word));
	words->shorter = calloc(states, sizeof(*words->shorter));
	words->report = calloc(states, sizeof(*words->report));
	words->twin = calloc(count + 1, sizeof(*words->twin));
	if (!words->next || !words->word || !words->shorter || !words->report ||
		!words->twin)
		return false;
	memset(words->word, 0xff, states * sizeof(*words->word));
	return true;
}

enum err words_create(struct words **result, const char *const *list, uint32_t count)
{
	struct words *words = calloc(1, sizeof(*words));
	uint32_t states = 1;

	assert(count <= WORDS_MAX);
	for (uint32_t i = 0; i < count; i++)
		states += (uint32_t)strlen(list[i]);
	assert(states < STATES_MAX);
	if (!words || !reserve(words, states, count))
		goto err_words;
	words->state_count = 1;
	for (uint32_t i = 0; i < count; i++)
		classify(words, list[i]);
	for (uint32_t i = 0; i < count; i++)
		plant(words, list[i], (uint16_t)i);
	if (!join(words))
		goto err_words;
	mark_told(words);
	*result = words;
	return OK;

err_words:
	words_destroy(words);
	return err_set(ERR_SYSTEM, "no memory for the words to look for");
}

void words_destroy(struct words *words)
{
	if (!words)
		return;
	free(words->next);
	free(words->word);
	free(words->shorter);
	free(words->report);
	free(words->twin);
	free(words);
}

static uint32_t add_once(uint16_t *found, uint32_t count, uint32_t room, uint16_t word)
{
	for (uint32_t i = 0; i < count; i++)
		if (found[i] == word)
			return count;
	if (count < room)
		found[count++] = word;
	return count;
}

/* The words that end in this state; how many there are then. */
static uint32_t tell(const struct words *words, uint32_t state, uint16_t *found,
	uint32_t count, uint32_t room)
{
	for (uint16_t at = words->report[state]; at; at = words->shorter[at])
		for (uint16_t word = words->word[at]; word != NONE;
			word = words->twin[word])
			count = add_once(found, count, room, word);
	return count;
}

uint32_t words_find(const struct words *words, const char *text, size_t bytes,
	uint16_t *found, uint32_t room)
{
	const uint16_t(*next)[CLASSES] = (const uint16_t(*)[CLASSES])words->next;
	const unsigned char *at = (const unsigned char *)text, *end = at + bytes;
	uint32_t count = 0, state = 0;

	while (at < end) {
		state = next[state][words->class_of[*at++]];
		if (state & TOLD) {
			state &= ~(uint32_t)TOLD;
			count = tell(words, state, found, count, room);
		}
	}
	return count;
}
