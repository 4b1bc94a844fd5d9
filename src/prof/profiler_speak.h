/*
 * profiler_speak.h - one way to speak to a profiler plugin, whatever its version: for the
 * files of this room alone. Nothing here logs: results are the plugin's own.
 */
#ifndef PROF_PROFILER_SPEAK_H
#define PROF_PROFILER_SPEAK_H

#include "prof/profiler.h"
#include "prof/profiler_abi.h"

/* What is the same for all that one communicator tells. */
struct speak_comm {
	const char *name; /* NULL: it has none */
	uint64_t id;
	int host_count, rank_count, rank;
};

bool profiler_is_whole(const struct profiler_abi *abi);

/* Start for a communicator; `wishes` is the plugin's to write into from now on. */
int profiler_speak_init(const struct profiler_abi *abi, int version,
	const struct speak_comm *comm, int *wishes, void **context);

/* Is there such an event in this version? */
bool profiler_speak_has(int version, enum prof_kind kind);

/* Is there such a state? */
bool profiler_speak_tells(int version, enum prof_state state);
void profiler_speak_progress(
	const struct prof_progress *progress, struct profiler_progress *told);

/* The event in the words of this version. */
void profiler_speak_descr(int version, const struct speak_comm *comm,
	const struct prof_event *event, struct profiler_descr *descr);

#endif
