/*
 * terminal.h - what standard output is: how wide, and whether it shows colours.
 *
 * People look at a terminal, programs read a pipe: a pipe is never folded and never
 * coloured unless the user says so (COLUMNS, CLICOLOR_FORCE). NO_COLOR, set to anything,
 * forbids colours everywhere (no-color.org).
 */
#ifndef TOOLS_COMMON_TERMINAL_H
#define TOOLS_COMMON_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

enum { TERMINAL_COLUMNS_MIN = 40 };

/* Columns of a line; 0 when standard output is no terminal and COLUMNS is not set. */
int terminal_columns(void);

bool terminal_has_colours(void);

enum terminal_look {
	LOOK_PLAIN,
	LOOK_BOLD,
	LOOK_SOFT,
	LOOK_GOOD,
	LOOK_FAIR,
	LOOK_BAD,
	LOOK_UNDERLINE,
};

/* The escape sequence that begins a look, and ends all of them with LOOK_PLAIN; "" where
 * there are no colours. */
const char *terminal_look(enum terminal_look look);

/* Print a text of one paragraph and a newline. Where lines have an end, break it between
 * words and begin every line after the first with `indent` blanks; `column` is where the
 * first line stands already. */
void terminal_fold(FILE *file, const char *text, int column, int indent);

#endif
