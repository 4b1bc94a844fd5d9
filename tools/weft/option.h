/*
 * option.h - getopt_long() as the commands use it, and what they all say of an option
 * that it refuses: one sentence with everything that there is.
 */
#ifndef TOOLS_WEFT_OPTION_H
#define TOOLS_WEFT_OPTION_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

/* Flags of long options start here; below are letters. */
enum { OPTION_LONG = 256 };

struct option_set {
	const char *command; /* such as "graph" */
	const char *letters; /* getopt's short options, after "-" where order counts */
	const struct option *options;
};

/* Before the first option_next() of a loop. */
void option_start(void);

/* getopt's next flag; what it refuses is '?' or ':', for option_refuse(). So is an option
 * where a value should be: `--svg --json` has forgotten the file. A value that does begin
 * with a dash is given as --svg=-name; a dash alone is a value. */
int option_next(const struct option_set *set, int argc, char **argv);

/* Say on standard error what is wrong with the option just met. Always false. */
bool option_refuse(const struct option_set *set, int flag, char **argv);

/* Say that the value just met is wrong for `flag`, and what to give. Always false. */
bool option_wrong(const struct option_set *set, const char *flag, const char *how);

/* The value just met as a number from 1 to `most`, or as "8x1", pods of a machine and
 * GPUs of a pod; false after option_wrong(). */
bool option_count(
	const struct option_set *set, const char *flag, int64_t most, uint32_t *value);
bool option_pods(const struct option_set *set, uint32_t *pods, uint32_t *gpus);

#endif
