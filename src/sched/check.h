/*
 * check.h - proves a schedule: runs the lowered moves of all ranks on symbols.
 *
 * Ranks are sequential and meet only through positions that grow, so as long as there is
 * no race (checked in the same run, by vector clocks), one run is a proof for its n: the
 * order in which ranks are stepped cannot change the result. At least three tiles, and
 * one more than there are slots, show that slots wrap safely. Calls do not overlap: the
 * engines enter a call only when every rank has.
 *
 * Checked: every output chunk holds exactly what the collective's definition says, no
 * rank counted twice, post-operator applied exactly once, no read of undefined or stale
 * data, no race on any place (user buffers, scratch, stage slots, local or of a peer), no
 * deadlock, message lengths agree, every send received, no dead write, IN left untouched
 * when not in place, and no peer at a rank's buffers after the call returned there.
 * Between hosts also: nothing is written where a message may still be leaving from, every
 * message fits its inbox and has left when the call returns, and no rank reaches into
 * another host.
 */
#ifndef SCHED_CHECK_H
#define SCHED_CHECK_H

#include "sched/lower.h"

struct check_args {
	const struct sched_kind *kind;
	uint32_t rank_count, root;
	enum lower_mode mode;
	uint32_t depth;
	bool in_place;
	const uint16_t *hosts; /* borrowed: which host each rank is on; NULL: one */
};

struct check_report {
	char text[256]; /* the first thing wrong, with rank, lane and move; "" when proved
			 */
};

/* OK when proved; ERR_USAGE with report->text when the schedule is wrong; other codes for
 * trouble of our own (memory). */
enum err check_schedule(const struct check_args *args, struct check_report *report);

/* The same on schedules already written (mutants); `scheds` is borrowed. */
enum err check_scheds(const struct sched *scheds, const struct check_args *args,
	struct check_report *report);

/* The same on programs already lowered, one per rank. */
enum err check_programs(const struct sched *scheds, struct program *const *programs,
	const struct check_args *args, struct check_report *report);

/* Smallest depth up to `depth_max` at which the staged schedule is right; 0 if none. */
uint32_t check_min_depth(const struct sched_kind *kind, uint32_t rank_count,
	uint32_t root, uint32_t depth_max);

#endif
