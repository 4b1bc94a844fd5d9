/*
 * sched.h - the parts of `weft sched`.
 */
#ifndef TOOLS_WEFT_SCHED_H
#define TOOLS_WEFT_SCHED_H

#include "sched/catalog.h"

/* The collective of that name, in any case of letters; COLL_COUNT after a sentence. */
enum coll sched_coll(const char *text);

/* The schedule of that name, or NULL after a sentence that lists what there is. */
const struct sched_kind *sched_find(const char *coll, const char *name);

/* Each gets its own name as argv[0] and returns the exit status. */
int sched_list(int argc, char **argv);
int sched_show(int argc, char **argv);
int sched_check(int argc, char **argv);
int sched_time(int argc, char **argv);

#endif
