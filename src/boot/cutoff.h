/*
 * cutoff.h - is this host cut off from all others?
 *
 * Who falls silent is noticed by those next to it, and they tell everybody. A host whose
 * link is unplugged hears no such word: of a process that it has no strand to, nobody
 * tells it anything any more. So a process that has heard nothing from any other host for
 * half of the time that one may be silent calls the others itself. When the time is over
 * and not one has said a word, it is this host that is cut off, and they are all lost to
 * it, as it is to them.
 *
 * A part of session.h, with the hub's lock held.
 */
#ifndef BOOT_CUTOFF_H
#define BOOT_CUTOFF_H

#include <stdbool.h>
#include <stdint.h>

struct session;

/* Zeroed: no other host was heard yet. */
struct cutoff {
	uint64_t heard_ns; /* when the last byte of another host came; 0: none did */
	bool is_in_doubt;  /* .. which is so long ago that others were called */
};

/* A byte of another host has come. */
void cutoff_heard(struct cutoff *cutoff, uint64_t now_ns);

/* This process was held up for so long. */
void cutoff_forgive(struct cutoff *cutoff, uint64_t late_ns);

/* What the clock asks for; returns when it wants to be asked again. */
uint64_t cutoff_tick(struct session *session, uint64_t now_ns);

#endif
