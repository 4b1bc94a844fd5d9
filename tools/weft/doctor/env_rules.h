/*
 * env_rules.h - what to say of a variable and its value: unknown, empty, or one that
 * overrides a choice of NCCL's. The same for a log and for a live environment.
 */
#ifndef TOOLS_WEFT_DOCTOR_ENV_RULES_H
#define TOOLS_WEFT_DOCTOR_ENV_RULES_H

#include <stdbool.h>
#include <stddef.h>

enum env_verdict { ENV_FINE, ENV_UNKNOWN, ENV_EMPTY, ENV_OVERRIDES };

struct env_context {
	bool has_ofi;	       /* aws-ofi-nccl is at work, which sets some itself */
	bool is_forced_simple; /* .. and NCCL_PROTO among them */
};

/* `why` gets half a sentence for all but ENV_FINE. */
enum env_verdict env_judge(const struct env_context *context, const char *name,
	const char *value, char *why, size_t room);

#endif
