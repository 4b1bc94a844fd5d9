/*
 * profile_mail.h - what a profiler plugin is told of a call's messages with other hosts:
 * for profile.c.
 *
 *	COLL or P2P
 *	  PROXY_OP		what goes one way between two ranks, on one lane
 *	    PROXY_STEP		a message of it
 *	      NET_PLUGIN	what a network plugin tells of that message
 */
#ifndef COMM_PROFILE_MAIL_H
#define COMM_PROFILE_MAIL_H

#include "exec/host/engine.h"
#include "net/plugin_abi.h"

struct profiler;
struct mail_way;
struct mail_message;

/* Of one call; zeroed but for the first two there is nothing yet. Used by the thread that
 * runs the call. */
struct call_mail {
	struct profiler *plugin; /* borrowed */
	void *parent;		 /* the plugin's event of the call */
	struct mail_way *ways;	 /* owned */
	struct mail_message *open;
};

/* As host_teller has them. */
void *mail_began(struct call_mail *mail, const struct host_message *message);
void mail_over(void *message);

/* The call is over. What of its messages is not, because it failed, stays in memory for a
 * network that may still hold it: the caller's, for mail_forget(). */
struct mail_message *mail_end(struct call_mail *mail, struct mail_message *others);
void mail_forget(struct mail_message *messages);

/* What network plugins call. */
plugin_event mail_net_event;

#endif
