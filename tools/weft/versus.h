/*
 * versus.h - the words of a second configuration: those of the first, and then what --vs
 * says in their place.
 */
#ifndef TOOLS_WEFT_VERSUS_H
#define TOOLS_WEFT_VERSUS_H

enum { VERSUS_WORDS_MAX = 128, VERSUS_WORD_BYTES = 256 };

struct versus {
	char texts[VERSUS_WORDS_MAX][VERSUS_WORD_BYTES];
	char *words[VERSUS_WORDS_MAX];
	int count;
};

/* `vs` is "pods=4x1 nics=2" or with the dashes; what is said last holds. */
void versus_words(struct versus *v, int argc, char **argv, const char *vs);

#endif
