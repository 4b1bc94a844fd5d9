#include "weft/versus.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 1024 };

/* The words of the first configuration without --vs and its value, then those of the
 * value: what is said last holds. */
void versus_words(struct versus *v, int argc, char **argv, const char *vs)
{
	char text[TEXT_MAX], *save = NULL;

	v->count = 0;
	for (int i = 0; i < argc && v->count < VERSUS_WORDS_MAX / 2; i++) {
		if (!strcmp(argv[i], "--vs"))
			i++;
		else if (strncmp(argv[i], "--vs=", 5) != 0)
			v->words[v->count++] = argv[i];
	}
	snprintf(text, sizeof(text), "%s", vs);
	for (char *word = strtok_r(text, " \t", &save);
		word && v->count < VERSUS_WORDS_MAX - 1;
		word = strtok_r(NULL, " \t", &save)) {
		bool is_bare = *word != '-' && strchr(word, '=');

		snprintf(v->texts[v->count], VERSUS_WORD_BYTES, "%s%s",
			is_bare ? "--" : "", word);
		v->words[v->count] = v->texts[v->count];
		v->count++;
	}
	v->words[v->count] = NULL;
}
