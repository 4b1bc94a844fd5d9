#include "weft/doctor/log_view.h"

#include <stdlib.h>
#include <string.h>

#include "common/terminal.h"

static const char letters[WAY_COUNT] = {'.', 'P', 'S', 'G', 'N'};

const char *log_way_name(enum log_way way)
{
	static const char *const names[WAY_COUNT] = {
		"none", "P2P", "SHM", "NET with GPUDirect", "NET"};

	return names[way];
}

static enum log_way way_of(const struct fact_edge *edge)
{
	if (edge->counts[VIA_NET] || edge->counts[VIA_COLLNET])
		return edge->gdr ? WAY_GDR : WAY_NET;
	return edge->counts[VIA_SHM] ? WAY_SHM : WAY_P2P;
}

/* Connections of smaller communicators number their ranks anew: leave them out. */
static bool is_of_all(const struct log_facts *facts, const struct fact_edge *edge)
{
	return edge->is_used && (!edge->comm_ranks || !facts->rank_count ||
					edge->comm_ranks == facts->rank_count);
}

static uint32_t highest_rank(const struct log_facts *facts)
{
	uint32_t highest = 0;

	for (uint32_t i = 0; i < FACTS_EDGES_MAX; i++) {
		const struct fact_edge *edge = &facts->edges[i];

		if (!is_of_all(facts, edge))
			continue;
		if ((uint32_t)edge->from >= highest)
			highest = (uint32_t)edge->from + 1;
		if ((uint32_t)edge->to >= highest)
			highest = (uint32_t)edge->to + 1;
	}
	return highest;
}

static void name_hosts(const struct log_facts *facts, struct log_view *view)
{
	for (uint32_t i = 0; i < FACTS_PROCS_MAX; i++) {
		const struct fact_proc *proc = &facts->procs[i];

		if (!proc->is_used || proc->rank < 0 ||
			(uint32_t)proc->rank >= view->rank_count ||
			(uint32_t)proc->rank % view->per_cell)
			continue;
		memcpy(view->hosts[(uint32_t)proc->rank / view->per_cell],
			facts->hosts[proc->host], FACTS_NAME_BYTES);
	}
}

static void choose_rings(const struct log_facts *facts, struct log_view *view)
{
	for (uint32_t i = 0; i < facts->ring_count && view->ring_count < LOG_VIEW_RINGS;
		i++) {
		bool known = !facts->rings[i][0];

		for (uint32_t k = 0; k < view->ring_count; k++)
			known = known ||
				!strcmp(facts->rings[i], facts->rings[view->rings[k]]);
		if (!known)
			view->rings[view->ring_count++] = i;
	}
}

bool log_ring_next(const char **text, uint32_t *rank)
{
	char *end;
	unsigned long value = strtoul(*text, &end, 10);

	if (end == *text || value > UINT32_MAX)
		return false;
	*text = end;
	*rank = (uint32_t)value;
	return true;
}

void log_view_make(const struct log_facts *facts, struct log_view *view)
{
	memset(view, 0, sizeof(*view));
	view->rank_count = highest_rank(facts);
	/* a torn line may name a rank that is not there */
	if (facts->rank_count > 0 && view->rank_count > (uint32_t)facts->rank_count)
		view->rank_count = (uint32_t)facts->rank_count;
	if (!view->rank_count)
		return;
	view->per_cell = (view->rank_count + LOG_VIEW_CELLS - 1) / LOG_VIEW_CELLS;
	/* whole nodes where there are too many ranks */
	if (view->per_cell > 1 && facts->local_max > (int32_t)view->per_cell)
		view->per_cell = (uint32_t)facts->local_max;
	view->cells = (view->rank_count + view->per_cell - 1) / view->per_cell;
	for (uint32_t i = 0; i < FACTS_EDGES_MAX; i++) {
		const struct fact_edge *edge = &facts->edges[i];
		uint32_t row, column;
		enum log_way way;

		if (!is_of_all(facts, edge) || (uint32_t)edge->from >= view->rank_count ||
			(uint32_t)edge->to >= view->rank_count)
			continue;
		row = (uint32_t)edge->from / view->per_cell;
		column = (uint32_t)edge->to / view->per_cell;
		way = way_of(edge);
		for (int k = 0; k < VIA_COUNT; k++) {
			view->connections[row][column] += edge->counts[k];
			view->totals[way] += edge->counts[k];
		}
		if (way > view->way[row][column])
			view->way[row][column] = (uint8_t)way;
	}
	name_hosts(facts, view);
	choose_rings(facts, view);
}

static enum terminal_look look_of(enum log_way way)
{
	static const enum terminal_look looks[WAY_COUNT] = {
		LOOK_SOFT, LOOK_GOOD, LOOK_FAIR, LOOK_GOOD, LOOK_BAD};

	return looks[way];
}

static void print_rings(
	FILE *file, const struct log_facts *facts, const struct log_view *view)
{
	for (uint32_t i = 0; i < view->ring_count; i++)
		fprintf(file, "%sring %-3u %s%s\n", i ? "" : "\n", view->rings[i],
			facts->rings[view->rings[i]],
			facts->ring_ranks[view->rings[i]] < view->rank_count ? " .."
									     : "");
}

void log_view_print(
	FILE *file, const struct log_facts *facts, const struct log_view *view)
{
	if (!view->cells) {
		fprintf(file, "\nthis log names no connections between ranks; "
			      "NCCL_DEBUG=INFO writes them\n");
		return;
	}
	fprintf(file, "\nrows send, columns receive");
	if (view->per_cell > 1)
		fprintf(file, "; each stands for %u ranks, by the slowest way",
			view->per_cell);
	fprintf(file, "\n\n%6s ", "");
	for (uint32_t i = 0; i < view->cells; i++)
		fprintf(file, "%3u", i * view->per_cell);
	fputc('\n', file);
	for (uint32_t row = 0; row < view->cells; row++) {
		fprintf(file, "%6u ", row * view->per_cell);
		for (uint32_t column = 0; column < view->cells; column++) {
			enum log_way way = (enum log_way)view->way[row][column];

			fprintf(file, "  %s%c%s", terminal_look(look_of(way)),
				letters[way], terminal_look(LOOK_PLAIN));
		}
		fprintf(file, "%s%s\n", view->hosts[row][0] ? "  " : "",
			view->hosts[row]);
	}
	fputc('\n', file);
	for (int way = WAY_P2P; way < WAY_COUNT; way++)
		if (view->totals[way])
			fprintf(file, "%c  %s, %llu connections\n", letters[way],
				log_way_name((enum log_way)way),
				(unsigned long long)view->totals[way]);
	fprintf(file, ".  no connection, as far as the log goes\n");
	print_rings(file, facts, view);
}
