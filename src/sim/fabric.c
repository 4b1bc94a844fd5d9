#include "sim/fabric.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Links are numbered: out of NICs, into NICs, up from leaves, down to leaves. A leaf is
 * of one plane; of rails a leaf has NIC k of its nodes. */

uint32_t fabric_out(const struct fabric *f, uint32_t node, uint32_t nic)
{
	return node * f->nics + nic;
}

uint32_t fabric_in(const struct fabric *f, uint32_t node, uint32_t nic)
{
	return f->nodes * f->nics + fabric_out(f, node, nic);
}

static uint32_t ways(const struct fabric *f)
{
	return f->plan.sprays ? 1 : f->spines;
}

uint32_t fabric_up(const struct fabric *f, uint32_t leaf, uint32_t spine)
{
	return 2 * f->nodes * f->nics + leaf * ways(f) + (ways(f) > 1 ? spine : 0);
}

uint32_t fabric_down(const struct fabric *f, uint32_t leaf, uint32_t spine)
{
	return fabric_up(f, leaf, spine) + f->leaves * ways(f);
}

uint32_t fabric_leaf_of(const struct fabric *f, uint32_t node, uint32_t nic)
{
	uint32_t row = node / f->leaf_nodes;

	switch (f->plan.shape) {
	case FABRIC_RAILS:
		return row * f->nics + nic;
	case FABRIC_LEAVES:
		return row * f->plan.planes + nic % f->plan.planes;
	default:
		return 0;
	}
}

uint32_t fabric_nic(const struct fabric *f, uint32_t node, uint32_t nic)
{
	for (uint32_t i = 0; i < f->nics; i++) {
		uint32_t at = (nic + i) % f->nics;

		if (f->links[fabric_out(f, node, at)].rate > 0)
			return at;
	}
	return nic;
}

static bool is_way(const struct fabric *f, uint32_t from, uint32_t to, uint32_t spine)
{
	return f->links[fabric_up(f, from, spine)].rate > 0 &&
	       f->links[fabric_down(f, to, spine)].rate > 0;
}

/* One of those that both leaves still reach; all get the same share of numbers. */
static uint32_t spine_of(
	const struct fabric *f, uint32_t from, uint32_t to, uint32_t number)
{
	uint32_t alive = 0, pick;

	for (uint32_t spine = 0; spine < ways(f); spine++)
		alive += is_way(f, from, to, spine);
	if (!alive)
		return ways(f) ? number % ways(f) : 0;
	pick = number % alive;
	for (uint32_t spine = 0;; spine++)
		if (is_way(f, from, to, spine) && !pick--)
			return spine;
}

void fabric_path(const struct fabric *f, uint32_t from, uint32_t to, uint32_t nic,
	struct sim_flow *flow)
{
	uint32_t out = fabric_nic(f, from, nic), in = fabric_nic(f, to, nic);
	uint32_t near, far, spine;

	flow->hop_count = 0;
	if (from == to)
		return;
	flow->hops[flow->hop_count++] = fabric_out(f, from, out);
	near = fabric_leaf_of(f, from, out);
	far = fabric_leaf_of(f, to, in);
	if (near != far) {
		spine = spine_of(f, near, far, from + to + nic);
		flow->hops[flow->hop_count++] = fabric_up(f, near, spine);
		flow->hops[flow->hop_count++] = fabric_down(f, far, spine);
	}
	flow->hops[flow->hop_count++] = fabric_in(f, to, in);
}

static enum err absent(const char *what, uint32_t number, uint32_t count)
{
	return err_set(ERR_USAGE, "there is no %s %u: the fabric has %u, from 0", what,
		number, count);
}

static void node_harm(struct fabric *f, uint32_t node, uint32_t nic, double share)
{
	f->links[fabric_out(f, node, nic)].rate *= share;
	f->links[fabric_in(f, node, nic)].rate *= share;
}

/* What the harm leaves of the way from a leaf to a spine. */
static double way_share(const struct fabric_harm *harm, uint32_t leaf, uint32_t spine)
{
	bool is_hit = (harm->what == HARM_SPINE && harm->first == spine) ||
		      (harm->what == HARM_LINK && harm->first == leaf &&
			      harm->second == spine);

	return is_hit ? harm->share : 1;
}

/* One spine of a leaf that sprays is a part of what all carry; each counts once, however
 * many harms it has. */
static double sprayed_share(const struct fabric *f, uint32_t leaf)
{
	const struct fabric_harm *harms = f->plan.harms;
	double lost = 0;

	for (uint32_t i = 0; i < f->plan.harm_count; i++) {
		bool is_link = harms[i].what == HARM_LINK;
		uint32_t spine = is_link ? harms[i].second : harms[i].first;
		double share = way_share(&harms[i], leaf, spine);

		for (uint32_t j = 0; j < i; j++)
			if (way_share(&harms[j], leaf, spine) < 1)
				share = 1;
		for (uint32_t j = i + 1; share < 1 && j < f->plan.harm_count; j++)
			share *= way_share(&harms[j], leaf, spine);
		lost += 1 - share;
	}
	return 1 - lost / f->spines;
}

static void sprayed_harm(struct fabric *f)
{
	for (uint32_t leaf = 0; f->plan.sprays && leaf < f->leaves; leaf++) {
		double share = sprayed_share(f, leaf);

		f->links[fabric_up(f, leaf, 0)].rate *= share;
		f->links[fabric_down(f, leaf, 0)].rate *= share;
	}
}

static void way_harm(struct fabric *f, uint32_t leaf, uint32_t spine, double share)
{
	if (f->plan.sprays)
		return;
	f->links[fabric_up(f, leaf, spine)].rate *= share;
	f->links[fabric_down(f, leaf, spine)].rate *= share;
}

static enum err switch_harm(struct fabric *f, const struct fabric_harm *harm)
{
	if (f->plan.shape == FABRIC_SWITCH)
		return err_set(ERR_USAGE,
			"the fabric is one switch, without leaves and spines; name one "
			"such as fat-tree:leaf=16,spine=8");
	if (harm->what == HARM_SPINE) {
		if (harm->first >= f->spines)
			return absent("spine", harm->first, f->spines);
		for (uint32_t leaf = 0; leaf < f->leaves; leaf++)
			way_harm(f, leaf, harm->first, harm->share);
		return OK;
	}
	if (harm->first >= f->leaves)
		return absent("leaf", harm->first, f->leaves);
	if (harm->what == HARM_LINK) {
		if (harm->second >= f->spines)
			return absent("spine", harm->second, f->spines);
		way_harm(f, harm->first, harm->second, harm->share);
		return OK;
	}
	for (uint32_t node = 0; node < f->nodes; node++)
		for (uint32_t nic = 0; nic < f->nics; nic++)
			if (fabric_leaf_of(f, node, nic) == harm->first)
				node_harm(f, node, nic, harm->share);
	return OK;
}

static enum err harm_apply(
	struct fabric *f, const struct sim_site *site, const struct fabric_harm *harm)
{
	switch (harm->what) {
	case HARM_NIC:
		if (harm->first >= f->nodes)
			return absent("node", harm->first, f->nodes);
		if (harm->second >= f->nics)
			return absent("NIC", harm->second, f->nics);
		node_harm(f, harm->first, harm->second, harm->share);
		return OK;
	case HARM_NODE:
		if (harm->first >= f->nodes)
			return absent("node", harm->first, f->nodes);
		for (uint32_t nic = 0; nic < f->nics; nic++)
			node_harm(f, harm->first, nic, harm->share);
		return OK;
	case HARM_GPU:
		if (harm->first >= site->nodes * site->gpus)
			return absent("GPU", harm->first, site->nodes * site->gpus);
		if (!(harm->share > 0))
			return err_set(ERR_USAGE,
				"a GPU that fails takes its rank along; leave it out of "
				"the count, or make it slow");
		if (harm->share < f->inner_share)
			f->inner_share = harm->share;
		return OK;
	default:
		return switch_harm(f, harm);
	}
}

/* NICs that a node has on this leaf; of an odd number one plane has one more. */
static uint32_t leaf_nics(const struct fabric *f, uint32_t leaf)
{
	uint32_t planes = f->plan.planes;

	if (f->plan.shape == FABRIC_RAILS)
		return 1;
	return (f->nics + planes - 1 - leaf % planes) / planes;
}

static void rates_set(struct fabric *f, double nic_rate)
{
	uint32_t nics = 2 * f->nodes * f->nics, up = f->leaves * ways(f);

	for (uint32_t i = 0; i < nics; i++)
		f->links[i].rate = nic_rate;
	for (uint32_t i = 0; i < 2 * up; i++)
		f->links[nics + i].rate = nic_rate * f->leaf_nodes *
					  leaf_nics(f, i % up / ways(f)) / f->plan.over /
					  ways(f);
}

static bool has_way(const struct fabric *f, uint32_t from, uint32_t to)
{
	for (uint32_t spine = 0; spine < ways(f); spine++)
		if (is_way(f, from, to, spine) && is_way(f, to, from, spine))
			return true;
	return false;
}

/* Two leaves that each lost other spines may have none in common; a message stays on its
 * rail and in its plane. */
static enum err pairs_check(const struct fabric *f)
{
	const struct fabric_harm *harms = f->plan.harms;
	uint32_t kinds = f->plan.shape == FABRIC_RAILS ? f->nics : f->plan.planes;

	for (uint32_t i = 0; i < f->plan.harm_count; i++)
		for (uint32_t j = 0; j < i; j++) {
			uint32_t a = harms[j].first, b = harms[i].first;

			if (harms[i].what != HARM_LINK || harms[j].what != HARM_LINK ||
				a == b || a % kinds != b % kinds || has_way(f, a, b))
				continue;
			return err_set(ERR_USAGE,
				"leaf %u and leaf %u have no spine in common: their "
				"nodes cannot reach each other",
				a, b);
		}
	return OK;
}

/* Every node needs a NIC, and every leaf a spine where there are several. */
static enum err reach_check(const struct fabric *f)
{
	for (uint32_t node = 0; node < f->nodes; node++)
		if (!(f->links[fabric_out(f, node, fabric_nic(f, node, 0))].rate > 0))
			return err_set(ERR_USAGE,
				"node %u has no NIC left: it cannot be reached; leave it "
				"out of the nodes",
				node);
	for (uint32_t leaf = 0; f->leaves > 1 && leaf < f->leaves; leaf++) {
		double rate = 0;

		if (!leaf_nics(f, leaf))
			continue; /* a plane that no NIC is in */
		for (uint32_t way = 0; way < ways(f); way++)
			rate += f->links[fabric_up(f, leaf, way)].rate;
		if (!(rate > 1e-9))
			return err_set(ERR_USAGE,
				"leaf %u has no way to any spine: its nodes cannot be "
				"reached",
				leaf);
	}
	return pairs_check(f);
}

/* Nobody has so many; more than 32 bits count are asked for easily. */
enum { LINKS_MAX = 1 << 26 };

static enum err links_count(struct fabric *f)
{
	uint64_t nics = (uint64_t)f->nodes * f->nics;
	uint64_t all = 2 * (nics + (uint64_t)f->leaves * ways(f));

	if (all > LINKS_MAX)
		return err_set(ERR_USAGE,
			"a fabric of %llu links is too large: ask about fewer nodes, "
			"larger leaves or fewer spines",
			(unsigned long long)all);
	f->link_count = (uint32_t)all;
	return OK;
}

enum err fabric_build(
	const struct fabric_plan *plan, const struct sim_site *site, struct fabric *f)
{
	double nic_rate = site->nics ? sim_site_nic_total(site) / site->nics * 1e3 : 0;
	uint32_t rows;
	enum err e;

	*f = (struct fabric){.plan = *plan,
		.nodes = site->nodes,
		.nics = site->nics ? site->nics : 1,
		.inner_share = 1};
	f->leaf_nodes = plan->shape == FABRIC_SWITCH ? f->nodes : plan->leaf;
	rows = (f->nodes + f->leaf_nodes - 1) / f->leaf_nodes;
	f->spines = plan->shape == FABRIC_SWITCH ? 1 : plan->spine;
	f->leaves = plan->shape == FABRIC_SWITCH  ? 0
		    : plan->shape == FABRIC_RAILS ? rows * f->nics
						  : rows * plan->planes;
	e = links_count(f);
	if (e)
		return e;
	if (f->nodes > 1 && !(nic_rate > 0))
		return err_set(ERR_USAGE,
			"the machine has no NIC, so its nodes cannot be connected");
	f->links = calloc(f->link_count + 1, sizeof(*f->links));
	if (!f->links)
		return err_set(ERR_SYSTEM, "no memory for %u links", f->link_count);
	rates_set(f, nic_rate);
	for (uint32_t i = 0; !e && i < plan->harm_count; i++)
		e = harm_apply(f, site, &plan->harms[i]);
	if (!e)
		sprayed_harm(f);
	if (!e && f->nodes > 1)
		e = reach_check(f);
	if (e)
		fabric_free(f);
	return e;
}

void fabric_free(struct fabric *f)
{
	free(f->links);
	f->links = NULL;
}

void fabric_link_name(const struct fabric *f, uint32_t link, char name[FABRIC_NAME_BYTES])
{
	uint32_t nics = f->nodes * f->nics, up = f->leaves * ways(f);

	if (link < 2 * nics) {
		uint32_t nic = link % nics;

		snprintf(name, FABRIC_NAME_BYTES, "node %u NIC %u %s", nic / f->nics,
			nic % f->nics, link < nics ? "out" : "in");
		return;
	}
	link -= 2 * nics;
	if (f->plan.sprays)
		snprintf(name, FABRIC_NAME_BYTES, "leaf %u %s", link % up,
			link < up ? "to all spines" : "from all spines");
	else
		snprintf(name, FABRIC_NAME_BYTES, "leaf %u %s spine %u",
			link % up / ways(f), link < up ? "to" : "from", link % ways(f));
}
