/*
 * json_print.h - the last step of every --json.
 */
#ifndef TOOLS_WEFT_JSON_PRINT_H
#define TOOLS_WEFT_JSON_PRINT_H

#include <jansson.h>

/* Print a value on standard output and give the caller's reference up. Returns the exit
 * status, after a sentence when it is not 0; NULL is a value there was no memory for. */
int json_print(const char *command, json_t *value);

#endif
