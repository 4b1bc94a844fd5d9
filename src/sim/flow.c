#include "sim/flow.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* Times and rates that differ by less are the same: they differ by rounding only. */
static const double SAME = 1e-9;

struct state {
	struct sim_flow *flows;
	struct flow_link *links;
	uint32_t flow_count, link_count;
	double *left;	 /* owned: bytes, by flow */
	double *rate;	 /* owned: by flow; negative: not settled yet */
	double *spare;	 /* owned: by link */
	uint32_t *users; /* owned: flows that are not settled, by link */
	double now;
};

static bool is_active(const struct state *s, uint32_t i)
{
	return s->left[i] > 0 && s->flows[i].start_us <= s->now + SAME;
}

static void rates_begin(struct state *s)
{
	for (uint32_t l = 0; l < s->link_count; l++) {
		s->spare[l] = s->links[l].rate;
		s->users[l] = 0;
	}
	for (uint32_t i = 0; i < s->flow_count; i++) {
		s->rate[i] = 0;
		if (!is_active(s, i))
			continue;
		s->rate[i] = -1;
		for (uint32_t h = 0; h < s->flows[i].hop_count; h++)
			s->users[s->flows[i].hops[h]]++;
	}
}

/* The least that any link has for each of those who are not settled. */
static double least_share(const struct state *s)
{
	double least = INFINITY;

	for (uint32_t l = 0; l < s->link_count; l++)
		if (s->users[l] && s->spare[l] / s->users[l] < least)
			least = s->spare[l] / s->users[l];
	return least;
}

static bool is_bound(const struct state *s, const struct sim_flow *flow, double share)
{
	for (uint32_t h = 0; h < flow->hop_count; h++) {
		uint32_t l = flow->hops[h];

		if (s->spare[l] <= share * s->users[l] * (1 + SAME))
			return true;
	}
	return false;
}

/* Settle all whose narrowest link has just this share for each. The links are looked at
 * before any is changed. */
static void settle(struct state *s, double share)
{
	for (uint32_t i = 0; i < s->flow_count; i++)
		if (s->rate[i] < 0 && is_bound(s, &s->flows[i], share))
			s->rate[i] = -2;
	for (uint32_t i = 0; i < s->flow_count; i++) {
		if (s->rate[i] > -2)
			continue;
		s->rate[i] = share;
		for (uint32_t h = 0; h < s->flows[i].hop_count; h++) {
			uint32_t l = s->flows[i].hops[h];

			s->spare[l] = s->spare[l] > share ? s->spare[l] - share : 0;
			s->users[l]--;
		}
	}
}

static void rates_make(struct state *s)
{
	rates_begin(s);
	for (;;) {
		double share = least_share(s);

		if (isinf(share))
			break;
		settle(s, share);
	}
	for (uint32_t l = 0; l < s->link_count; l++) {
		double used = s->links[l].rate > 0 ? 1 - s->spare[l] / s->links[l].rate
						   : 0;

		if (used > s->links[l].busiest)
			s->links[l].busiest = used;
	}
}

/* Until the first flow ends or begins. */
static double step_of(const struct state *s)
{
	double step = INFINITY;

	for (uint32_t i = 0; i < s->flow_count; i++) {
		double wait = s->flows[i].start_us - s->now;

		if (s->rate[i] > 0 && s->left[i] / s->rate[i] < step)
			step = s->left[i] / s->rate[i];
		if (s->left[i] > 0 && wait > SAME && wait < step)
			step = wait;
	}
	return step;
}

static void step_take(struct state *s, double step)
{
	s->now += step;
	for (uint32_t i = 0; i < s->flow_count; i++) {
		struct sim_flow *flow = &s->flows[i];
		double moved = s->rate[i] * step;

		if (!(s->rate[i] > 0))
			continue;
		if (moved >= s->left[i] * (1 - SAME))
			moved = s->left[i];
		s->left[i] -= moved;
		for (uint32_t h = 0; h < flow->hop_count; h++)
			s->links[flow->hops[h]].bytes += moved;
		if (!(s->left[i] > 0))
			flow->end_us = s->now;
	}
}

static enum err state_make(struct state *s)
{
	s->left = calloc(s->flow_count + 1, sizeof(*s->left));
	s->rate = calloc(s->flow_count + 1, sizeof(*s->rate));
	s->spare = calloc(s->link_count + 1, sizeof(*s->spare));
	s->users = calloc(s->link_count + 1, sizeof(*s->users));
	if (!s->left || !s->rate || !s->spare || !s->users)
		return err_set(ERR_SYSTEM, "no memory for %u flows", s->flow_count);
	for (uint32_t l = 0; l < s->link_count; l++)
		s->links[l].bytes = s->links[l].busiest = 0;
	for (uint32_t i = 0; i < s->flow_count; i++) {
		struct sim_flow *flow = &s->flows[i];

		flow->end_us = flow->start_us;
		s->left[i] = flow->hop_count ? flow->bytes : 0;
		for (uint32_t h = 0; h < flow->hop_count; h++)
			if (s->left[i] > 0 && !(s->links[flow->hops[h]].rate > 0))
				return err_set(ERR_USAGE,
					"a flow would go over a link that is down");
	}
	return OK;
}

enum err flow_run(struct sim_flow *flows, uint32_t flow_count, struct flow_link *links,
	uint32_t link_count, double *end_us)
{
	struct state s = {.flows = flows,
		.links = links,
		.flow_count = flow_count,
		.link_count = link_count};
	enum err e = state_make(&s);

	while (!e) {
		double step;

		rates_make(&s);
		step = step_of(&s);
		if (isinf(step))
			break;
		step_take(&s, step);
	}
	*end_us = s.now;
	free(s.left);
	free(s.rate);
	free(s.spare);
	free(s.users);
	return e;
}
