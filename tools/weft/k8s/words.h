/*
 * words.h - what a container runs, word by word: its command and arguments, and the
 * scripts in them, split where a shell would.
 *
 * This is no shell: nothing is expanded, and a word that depends on a variable is just
 * that text.
 */
#ifndef TOOLS_WEFT_K8S_WORDS_H
#define TOOLS_WEFT_K8S_WORDS_H

#include "weft/k8s/doc.h"

enum { WORDS_MAX = 2048, WORD_BYTES = 256 };

struct word {
	char text[WORD_BYTES]; /* without quotes; cut where longer */
	size_t start, end;     /* bytes of the file; equal where the place is not known */
	uint32_t line, column;
	const struct node *node; /* the scalar it stands in */
};

struct words {
	struct word *list; /* owned */
	uint32_t count;
};

/* Of the command and then the args of a container, or of a TrainJob's trainer. Free with
 * words_free(). */
void words_read(
	const struct doc_file *file, const struct node *container, struct words *words);

void words_free(struct words *words);

/* The program somewhere in there: "mpirun"; also with a folder before it. NULL. */
const struct word *words_program(const struct words *words, const char *name);

/* The value of an option after `from`, up to where another command begins: "-np 16",
 * "--np=16". `names` has a blank between alternatives; a dash in a name stands for an
 * underscore too. The word that holds the value; *value points into it. NULL. */
const struct word *words_option(const struct words *words, const struct word *from,
	const char *names, const char **value);

#endif
