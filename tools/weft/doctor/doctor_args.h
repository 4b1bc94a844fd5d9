/*
 * doctor_args.h - what `weft doctor` and `weft log` are asked.
 */
#ifndef TOOLS_WEFT_DOCTOR_DOCTOR_ARGS_H
#define TOOLS_WEFT_DOCTOR_DOCTOR_ARGS_H

#include <stdbool.h>
#include <stdint.h>

enum { DOCTOR_ROOTS_MAX = 256 };

struct doctor_args {
	char **logs; /* borrowed from argv */
	int log_count;
	bool json;
	const char *expect;		     /* a machine; NULL: none */
	uint32_t nodes;			     /* of it; 0: as many as the log has */
	const char *roots[DOCTOR_ROOTS_MAX]; /* folders instead of this host */
	int root_count;			     /* 0: this host */
	const char *capture;		     /* where to write one; NULL: nowhere */
	const char *svg;		     /* weft log; NULL: none */
};

/* False, after a sentence on standard error. */
bool doctor_args_parse(struct doctor_args *args, int argc, char **argv);
bool log_args_parse(struct doctor_args *args, int argc, char **argv);

#endif
