/*
 * strike.h - the fault of a job, as the victim suffers it, and threads that end a
 * communicator while another thread is inside a call.
 *
 * Stops are the coordinator's: the victim only says when its moment has come.
 */
#ifndef CAMPAIGN_STRIKE_H
#define CAMPAIGN_STRIKE_H

#include <pthread.h>

#include "data.h"
#include "page.h"

struct strike {
	const struct job *job;
	struct page *page;
	struct seat *seat;
	bool is_first; /* this rank is the victim, and not one that shares its fate */
	bool is_done;
	const struct group *group; /* what is aborted or revoked; borrowed */
	_Atomic int gate;	   /* who may use the communicator: see strike.c */
	pthread_t thread;
	bool has_thread;
};

/* Before the first thread of a process: what it may not do from now on. */
void strike_process(const struct job *job, struct page *page, int process);

/* The rank is about to do this; `group` is what it will use. */
void strike_at(
	struct strike *strike, enum moment moment, int call, const struct group *group);

/* The victim will not do more: a death that has not come yet is waited for, and limits
 * are lifted. */
void strike_end(struct strike *strike);

/* Abort from another thread once the victim has stopped. */
void strike_abort_aside(struct strike *strike, const struct group *group);

/* Around each call on a communicator that another thread may abort. False: it is gone,
 * and so is that thread. */
bool strike_enter(struct strike *strike);
bool strike_leave(struct strike *strike);

/* Nobody will abort it any more; false: it is gone. */
bool strike_close(struct strike *strike);

/* Note what a step came to; the sentence is that of this thread. */
void outcome_begin(struct seat *seat, enum step step);
void outcome_end(struct seat *seat, enum step step, ncclResult_t code, ncclComm_t comm);

#endif
