/*
 * env_names.h - names of environment variables that collective libraries know, whether or
 * not we read them: NCCL's, aws-ofi-nccl's and libfabric's for EFA.
 *
 * A variable that nobody knows is ignored without a word, so it is worth one: it is
 * misspelt, or gone, or never was.
 */
#ifndef BASE_ENV_NAMES_H
#define BASE_ENV_NAMES_H

#include <stdbool.h>

enum { ENV_NAME_BYTES = 80 };

enum env_name_kind {
	ENV_NAME_KNOWN,
	ENV_NAME_OBSOLETE, /* it was known once, or is often believed to be */
	ENV_NAME_UNKNOWN,
	ENV_NAME_FOREIGN /* not of NCCL_, OFI_NCCL_, FI_EFA_ or WEFT_, nor all but one
			  * of their names: not ours to judge */
};

/* What is this name? `why` is a half sentence for an obsolete one, else NULL. */
enum env_name_kind env_name_kind(const char *name, const char **why);

/* Would NCCL, its plugin for libfabric, libfabric or we have to read it? */
bool env_name_is_ours(const char *name);

/* The known name that is most like it; false when none is near. */
bool env_name_nearest(const char *name, char nearest[ENV_NAME_BYTES]);

/* Warn, once in a process, of what its environment gets wrong: NCCL_* variables that are
 * unknown or do nothing any more, numbers of ours that are none or out of range, and a
 * topology file that is empty or cannot be read. */
void env_names_warn(void);

#endif
