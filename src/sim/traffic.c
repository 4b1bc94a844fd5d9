#include "sim/traffic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Flows are made one by one and either kept or only counted. */
struct maker {
	const struct fabric *fabric;
	struct sim_flow *flows; /* NULL: count the load of links */
	uint32_t count, room;
	double *loads; /* by link */
	double bytes;
	bool is_cut; /* one of them has no way: `cut` */
	uint32_t cut[2];
};

/* A link of its way is down. */
static bool is_cut(const struct fabric *f, const struct sim_flow *flow)
{
	for (uint32_t h = 0; h < flow->hop_count; h++)
		if (!(f->links[flow->hops[h]].rate > 0))
			return true;
	return false;
}

static void put(
	struct maker *m, uint32_t from, uint32_t to, uint32_t nic, const double bytes)
{
	struct sim_flow flow = {.bytes = bytes};

	fabric_path(m->fabric, from, to, nic, &flow);
	if (!m->is_cut && is_cut(m->fabric, &flow)) {
		m->is_cut = true;
		m->cut[0] = from;
		m->cut[1] = to;
	}
	m->bytes += flow.hop_count ? bytes : 0;
	for (uint32_t h = 0; m->loads && h < flow.hop_count; h++)
		m->loads[flow.hops[h]] += bytes;
	if (m->flows && m->count < m->room)
		m->flows[m->count] = flow;
	m->count++;
}

static void ring_make(struct maker *m, double bytes)
{
	const struct fabric *f = m->fabric;

	for (uint32_t node = 0; node < f->nodes; node++)
		for (uint32_t nic = 0; nic < f->nics; nic++)
			put(m, node, (node + 1) % f->nodes, nic, bytes / f->nics);
}

static void tree_make(struct maker *m, double bytes)
{
	const struct fabric *f = m->fabric;

	for (uint32_t node = 0; node < f->nodes; node++) {
		struct binary_tree trees[2];

		binary_tree((int)node, (int)f->nodes, trees);
		for (int t = 0; t < 2; t++)
			for (uint32_t nic = 0; trees[t].up >= 0 && nic < f->nics; nic++) {
				double part = bytes / 2 / f->nics;

				put(m, node, (uint32_t)trees[t].up, nic, part);
				put(m, (uint32_t)trees[t].up, node, nic, part);
			}
	}
}

static void all_make(struct maker *m, double bytes)
{
	const struct fabric *f = m->fabric;
	double part = bytes / f->nics / (f->nodes - 1);

	for (uint32_t from = 0; from < f->nodes; from++)
		for (uint32_t to = 0; to < f->nodes; to++)
			for (uint32_t nic = 0; from != to && nic < f->nics; nic++)
				put(m, from, to, nic, part);
}

static void one_make(struct maker *m, double bytes)
{
	for (uint32_t node = 1; node < m->fabric->nodes; node++)
		put(m, node, 0, 0, bytes);
}

/* The same for every pair without looking at pairs: of what a NIC sends, as much leaves
 * its leaf as there are nodes elsewhere, and takes all spines alike. */
static void all_count(struct maker *m, double bytes)
{
	const struct fabric *f = m->fabric;
	double part = bytes / f->nics;

	for (uint32_t node = 0; node < f->nodes; node++)
		for (uint32_t k = 0; k < f->nics; k++) {
			uint32_t nic = fabric_nic(f, node, k), leaf, inside, ways = 0;
			uint32_t spines = f->plan.sprays ? 1 : f->spines;
			uint32_t first = node / f->leaf_nodes * f->leaf_nodes;
			double away;

			m->loads[fabric_out(f, node, nic)] += part;
			m->loads[fabric_in(f, node, nic)] += part;
			m->bytes += part;
			if (!f->leaves)
				continue;
			inside = f->nodes - first < f->leaf_nodes ? f->nodes - first
								  : f->leaf_nodes;
			leaf = fabric_leaf_of(f, node, nic);
			away = part * (f->nodes - inside) / (f->nodes - 1);
			for (uint32_t s = 0; s < spines; s++)
				ways += f->links[fabric_up(f, leaf, s)].rate > 0;
			for (uint32_t s = 0; s < spines; s++) {
				if (!(f->links[fabric_up(f, leaf, s)].rate > 0))
					continue;
				m->loads[fabric_up(f, leaf, s)] += away / ways;
				m->loads[fabric_down(f, leaf, s)] += away / ways;
			}
		}
	m->count = f->nodes * (f->nodes - 1) * f->nics;
}

static enum err cut_check(const struct maker *m)
{
	return !m->is_cut ? OK
			  : err_set(ERR_USAGE,
				    "node %u has no way to node %u: their leaves have no "
				    "spine in common",
				    m->cut[0], m->cut[1]);
}

static void make(struct maker *m, enum sim_traffic kind, double bytes)
{
	switch (kind) {
	case SIM_TRAFFIC_RING:
		ring_make(m, bytes);
		return;
	case SIM_TRAFFIC_TREE:
		tree_make(m, bytes);
		return;
	case SIM_TRAFFIC_ALL:
		all_make(m, bytes);
		return;
	default:
		one_make(m, bytes);
	}
}

static double flows_of(const struct fabric *f, enum sim_traffic kind)
{
	double nodes = f->nodes, nics = f->nics;

	switch (kind) {
	case SIM_TRAFFIC_RING:
		return nodes * nics;
	case SIM_TRAFFIC_TREE:
		return 4 * nodes * nics;
	case SIM_TRAFFIC_ALL:
		return nodes * (nodes - 1) * nics;
	default:
		return nodes;
	}
}

enum err traffic_flows(const struct fabric *fabric, enum sim_traffic kind, double bytes,
	struct sim_flow **flows, uint32_t *count)
{
	struct maker m = {.fabric = fabric};

	*flows = NULL;
	if (flows_of(fabric, kind) > TRAFFIC_FLOWS_RUN)
		return err_set(ERR_USAGE,
			"there are more than %d flows; ask about fewer nodes",
			TRAFFIC_FLOWS_RUN);
	m.room = (uint32_t)flows_of(fabric, kind);
	m.flows = calloc(m.room + 1, sizeof(*m.flows));
	if (!m.flows)
		return err_set(ERR_SYSTEM, "no memory for %u flows", m.room);
	make(&m, kind, bytes);
	if (m.is_cut) {
		free(m.flows);
		return cut_check(&m);
	}
	*flows = m.flows;
	*count = m.count;
	return OK;
}

static enum err run(struct fabric *fabric, enum sim_traffic kind, double bytes,
	struct traffic_report *report)
{
	struct sim_flow *flows;
	enum err e = traffic_flows(fabric, kind, bytes, &flows, &report->flow_count);

	if (!e)
		e = flow_run(flows, report->flow_count, fabric->links, fabric->link_count,
			&report->time_us);
	for (uint32_t i = 0; !e && i < report->flow_count; i++)
		report->bytes += flows[i].hop_count ? flows[i].bytes : 0;
	free(flows);
	report->was_run = true;
	return e;
}

static enum err count(struct fabric *fabric, enum sim_traffic kind, double bytes,
	struct traffic_report *report)
{
	struct maker m = {.fabric = fabric,
		.loads = calloc(fabric->link_count + 1, sizeof(double))};

	if (!m.loads)
		return err_set(ERR_SYSTEM, "no memory for %u links", fabric->link_count);
	if (kind == SIM_TRAFFIC_ALL)
		all_count(&m, bytes);
	else
		make(&m, kind, bytes);
	for (uint32_t i = 0; i < fabric->link_count; i++) {
		fabric->links[i].bytes = m.loads[i];
		if (m.loads[i] > 0 &&
			m.loads[i] / fabric->links[i].rate > report->time_us)
			report->time_us = m.loads[i] / fabric->links[i].rate;
	}
	report->flow_count = m.count;
	report->bytes = m.bytes;
	free(m.loads);
	return cut_check(&m);
}

static void busiest_find(const struct fabric *fabric, struct traffic_report *report)
{
	for (uint32_t i = 0; i < fabric->link_count; i++) {
		const struct flow_link *link = &fabric->links[i];
		double share = link->bytes > 0
				       ? link->bytes / link->rate / report->time_us
				       : 0;
		uint32_t at = report->busiest_count;

		if (!(share > 0))
			continue;
		while (at && report->busiest[at - 1].share < share * (1 - 1e-9)) {
			if (at < TRAFFIC_BUSIEST)
				report->busiest[at] = report->busiest[at - 1];
			at--;
		}
		if (at == TRAFFIC_BUSIEST)
			continue;
		report->busiest[at].link = i;
		report->busiest[at].share = share;
		if (report->busiest_count < TRAFFIC_BUSIEST)
			report->busiest_count++;
	}
}

double traffic_ideal(const struct fabric *fabric, enum sim_traffic kind, double bytes)
{
	double nic_rate = 0, all;

	for (uint32_t i = 0; i < 2 * fabric->nodes * fabric->nics; i++)
		if (fabric->links[i].rate > nic_rate)
			nic_rate = fabric->links[i].rate;
	all = nic_rate * fabric->nics;
	switch (kind) {
	case SIM_TRAFFIC_TREE:
		return (fabric->nodes > 2 ? 2 : 1) * bytes / all;
	case SIM_TRAFFIC_ONE:
		return bytes * (fabric->nodes - 1) / nic_rate;
	default:
		return bytes / all;
	}
}

enum err traffic_measure(struct fabric *fabric, enum sim_traffic kind, double bytes,
	enum traffic_way way, struct traffic_report *report)
{
	bool is_run = way == TRAFFIC_RUN ||
		      (way == TRAFFIC_AUTO &&
			      flows_of(fabric, kind) <= TRAFFIC_FLOWS_RUN);
	enum err e;

	*report = (struct traffic_report){0};
	if (fabric->nodes < 2)
		return OK;
	e = is_run ? run(fabric, kind, bytes, report)
		   : count(fabric, kind, bytes, report);
	if (e)
		return e;
	report->ideal_us = traffic_ideal(fabric, kind, bytes);
	busiest_find(fabric, report);
	return OK;
}

enum err traffic_strain(struct fabric *fabric, struct sim_strain *strain)
{
	enum err e = OK;

	*strain = (struct sim_strain){1 / fabric->inner_share, {1, 1, 1, 1}};
	for (int kind = 0; !e && kind < SIM_TRAFFICS; kind++) {
		struct traffic_report report;

		e = traffic_measure(
			fabric, (enum sim_traffic)kind, 1e9, TRAFFIC_AUTO, &report);
		if (!e && report.ideal_us > 0 && report.time_us > report.ideal_us)
			strain->outer[kind] = report.time_us / report.ideal_us;
	}
	return e;
}
