#include "comm/profile_mail.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "prof/profiler.h"

struct mail_way {
	struct mail_way *next;
	uint32_t peer, lane;
	bool is_send;
	void *event; /* PROXY_OP */
	uint32_t begun, over;
	size_t bytes; /* .. of those that are over */
};

struct mail_message {
	struct mail_message *next; /* of the call's that are not over */
	struct mail_message **link;
	struct profiler *plugin; /* borrowed; NULL: its call is over */
	struct mail_way *way;	 /* borrowed */
	void *event;		 /* PROXY_STEP */
	size_t bytes;
};

static struct mail_way *way_find(
	struct call_mail *mail, const struct host_message *message)
{
	struct mail_way *way = mail->ways;

	while (way && (way->peer != message->peer || way->lane != message->lane ||
			      way->is_send != message->is_send))
		way = way->next;
	return way;
}

static struct mail_way *way_open(
	struct call_mail *mail, const struct host_message *message)
{
	struct mail_way *way = calloc(1, sizeof(*way));
	struct prof_way told = {.pid = getpid(),
		.channel = (int)message->lane,
		.peer = (int)message->peer,
		.steps = (int)message->count,
		.step_bytes = message->bytes,
		.is_send = message->is_send};

	if (!way)
		return NULL;
	*way = (struct mail_way){.next = mail->ways,
		.peer = message->peer,
		.lane = message->lane,
		.is_send = message->is_send};
	way->event = profiler_start(mail->plugin,
		&(struct prof_event){
			.kind = PROF_PROXY_OP, .parent = mail->parent, .way = &told});
	profiler_state(mail->plugin, way->event, PROF_WAY_MOVES, NULL);
	mail->ways = way;
	return way;
}

void *mail_began(struct call_mail *mail, const struct host_message *message)
{
	struct prof_progress progress = {0};
	struct mail_message *made;
	struct mail_way *way;

	if (!profiler_wants(mail->plugin, PROF_PROXY_OP))
		return NULL;
	way = way_find(mail, message);
	if (!way)
		way = way_open(mail, message);
	made = way ? calloc(1, sizeof(*made)) : NULL;
	if (!made)
		return NULL;
	*made = (struct mail_message){.next = mail->open,
		.link = &mail->open,
		.plugin = mail->plugin,
		.way = way,
		.bytes = message->bytes};
	made->event = profiler_start(
		mail->plugin, &(struct prof_event){.kind = PROF_PROXY_STEP,
				      .parent = way->event,
				      .step = (int)way->begun++});
	progress.bytes = made->bytes;
	profiler_state(mail->plugin, made->event,
		way->is_send ? PROF_STEP_SENDS : PROF_STEP_RECEIVES,
		way->is_send ? &progress : NULL);
	if (mail->open)
		mail->open->link = &made->next;
	mail->open = made;
	return made;
}

static void message_end(struct mail_message *message)
{
	*message->link = message->next;
	if (message->next)
		message->next->link = message->link;
	profiler_stop(message->plugin, message->event);
	message->plugin = NULL;
}

void mail_over(void *opaque)
{
	struct mail_message *message = opaque;
	struct mail_way *way = message->way;

	if (message->plugin) {
		way->bytes += message->bytes;
		way->over++;
		if (!way->is_send)
			profiler_state(message->plugin, message->event, PROF_STEP_CAME,
				&(struct prof_progress){.bytes = message->bytes});
		profiler_state(message->plugin, way->event,
			way->is_send ? PROF_WAY_SENT : PROF_WAY_RECEIVED,
			&(struct prof_progress){
				.bytes = way->bytes, .steps = (int)way->over});
		message_end(message);
		free(message);
	}
}

struct mail_message *mail_end(struct call_mail *mail, struct mail_message *others)
{
	while (mail->open) {
		struct mail_message *message = mail->open;

		message_end(message);
		message->next = others;
		others = message;
	}
	while (mail->ways) {
		struct mail_way *way = mail->ways;

		mail->ways = way->next;
		profiler_stop(mail->plugin, way->event);
		free(way);
	}
	return others;
}

void mail_forget(struct mail_message *messages)
{
	while (messages) {
		struct mail_message *next = messages->next;

		free(messages);
		messages = next;
	}
}

/* ---- network plugins ---- */

enum net_event_kind { NET_STARTS, NET_STOPS, NET_TELLS, NET_TELLS_AND_STOPS };

/* What a plugin holds of an event of its own. */
struct net_event {
	struct profiler *plugin; /* borrowed */
	void *event;
};

static void net_event_start(
	void **event, const struct mail_message *parent, int64_t id, void *details)
{
	struct net_event *made;

	*event = NULL;
	if (!parent || !parent->plugin ||
		!profiler_wants(parent->plugin, PROF_NET_PLUGIN))
		return;
	made = calloc(1, sizeof(*made));
	if (!made)
		return;
	made->plugin = parent->plugin;
	made->event = profiler_start(
		parent->plugin, &(struct prof_event){.kind = PROF_NET_PLUGIN,
					.parent = parent->event,
					.net_id = id,
					.net_details = details});
	*event = made;
}

int mail_net_event(void **event, int kind, void *parent, int64_t id, void *details)
{
	struct net_event *made;

	if (!event)
		return ERR_ARGUMENT;
	if (kind == NET_STARTS) {
		net_event_start(event, parent, id, details);
		return OK;
	}
	made = *event;
	if (!made)
		return OK;
	if (kind == NET_TELLS || kind == NET_TELLS_AND_STOPS)
		profiler_state(made->plugin, made->event, PROF_NET_TELLS,
			&(struct prof_progress){.details = details});
	if (kind == NET_STOPS || kind == NET_TELLS_AND_STOPS) {
		profiler_stop(made->plugin, made->event);
		free(made);
		*event = NULL;
	}
	return OK;
}
