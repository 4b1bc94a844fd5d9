/*
 * run_output.h - what ranks print, in whole lines with the rank in front, and the last of
 * it kept for the sentence about a rank that failed.
 */
#ifndef TOOLS_WEFT_RUN_OUTPUT_H
#define TOOLS_WEFT_RUN_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct run_output;

/* NULL without memory. `is_plain`: nothing in front, and bytes as they come. */
struct run_output *run_output_create(uint32_t rank_count, bool is_plain);

void run_output_destroy(struct run_output *output);

/* Of a rank's standard output, or its standard error. */
void run_output_add(struct run_output *output, uint32_t rank, bool is_error,
	const char *data, size_t bytes);

/* The rank has ended: a line without an end is one, too. */
void run_output_flush(struct run_output *output, uint32_t rank);

/* Its last lines, each after four blanks; nothing when it has printed none. Returns how
 * many.
 */
int run_output_last(const struct run_output *output, uint32_t rank, FILE *file);

#endif
