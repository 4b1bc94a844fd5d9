/*
 * output.h - what a tool prints arrives, or the tool says so and fails.
 *
 * main() begins with output_begin() and ends with output_end(), and so does every process
 * that prints; nothing in between has to look at what printf() returns.
 */
#ifndef TOOLS_COMMON_OUTPUT_H
#define TOOLS_COMMON_OUTPUT_H

/* A closed standard descriptor must not become the first file that is opened, and a
 * limit on the size of files (ulimit -f) is an error like any other. */
void output_begin(void);

/* The exit status: `status`, or `failure` when that was 0 and standard output did not
 * take everything. A sentence on standard error says so, whatever the status is. */
int output_end(const char *program, int status, int failure);

#endif
