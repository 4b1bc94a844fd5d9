#include "comm/wiring.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/param.h"
#include "comm/host_ranks.h"
#include "comm/machine.h"
#include "graph/print.h"
#include "topo/print.h"

struct wiring {
	struct wiring *next;
	uint64_t token; /* of the board */
	uint32_t users;
	bool is_done; /* the members below will not change */
	enum err code;
	char sentence[ERR_TEXT_BYTES];
	struct xml_node *tree;	   /* owned: the machine with the ranks on it */
	struct decision *decision; /* owned; NULL: not known */
	uint64_t topo_ns;
};

/* Guards the list, `users` and `is_done`. Not held while anything is computed. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;
static struct wiring *wirings;

bool wiring_is_wanted(void)
{
	const char *tuner = param_text(PARAM_TUNER_PLUGIN);

	return log_is_on(LOG_INFO, LOG_INIT | LOG_GRAPH | LOG_TUNING) ||
	       param_text(PARAM_GRAPH_FILE) || param_text(PARAM_GRAPH_DUMP_FILE) ||
	       param_text(PARAM_TOPO_DUMP_FILE) || (tuner && strcasecmp(tuner, "none"));
}

static enum err ranks_place(const struct board *board, struct xml_node *tree)
{
	struct host_rank *ranks = calloc(board->rank_count, sizeof(*ranks));
	enum err e;

	if (!ranks)
		return err_set(ERR_SYSTEM, "no memory for the topology");
	for (uint32_t i = 0; i < board->rank_count; i++)
		ranks[i] = (struct host_rank){
			board_status(board, i)->cpus, BOARD_CPU_WORDS};
	e = host_ranks_place(tree, ranks, board->rank_count);
	free(ranks);
	return e;
}

static enum err graphs_decide(
	const struct wiring_args *args, const char *file, struct wiring *wiring)
{
	const struct xml_node *trees[] = {wiring->tree};
	struct decide_args decide_args = {.machines = trees,
		.machine_count = 1,
		.host_count = 1,
		.graph_file = file};
	enum err e = topo_rules_read(&decide_args.rules);

	channel_rules_read(&decide_args.channels);
	if (!decide_args.channels.min_ctas)
		decide_args.channels.min_ctas = args->min_ctas;
	if (!decide_args.channels.max_ctas)
		decide_args.channels.max_ctas = args->max_ctas;
	return e ? e : decide(&decide_args, &wiring->decision);
}

static void graph_line(void *context, const char *line)
{
	(void)context;
	log_info(LOG_GRAPH, "%s", line);
}

/* Once per communicator and process, where NCCL's ranks all print it. */
static void domain_log(const struct domain *domain)
{
	static const enum graph_id order[] = {GRAPH_RING, GRAPH_TREE, GRAPH_NVLS};
	const struct print_sink sink = {.line = graph_line};

	if (!log_is_on(LOG_INFO, LOG_GRAPH))
		return;
	topo_print(domain->topo, graph_line, NULL);
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		if (domain->set.graphs[order[i]].channel_count)
			print_graph(domain->topo, &domain->set.graphs[order[i]], &sink);
}

static void wiring_make(const struct wiring_args *args, struct wiring *wiring)
{
	const char *file = param_text(PARAM_GRAPH_FILE);
	uint64_t start = clock_ns();
	enum err e;

	if (args->board->rank_count > TOPO_GPUS_MAX) {
		log_info(LOG_INIT | LOG_GRAPH,
			"graphs are computed for up to %d ranks of a host, not for %u",
			TOPO_GPUS_MAX, args->board->rank_count);
		return;
	}
	wiring->tree = machine_copy(NULL);
	wiring->topo_ns = clock_ns() - start;
	if (!wiring->tree)
		return;
	e = ranks_place(args->board, wiring->tree);
	if (!e)
		e = graphs_decide(args, file, wiring);
	if (e && file) {
		wiring->code = e;
		snprintf(wiring->sentence, sizeof(wiring->sentence), "%s", err_last());
	} else if (e) {
		log_info(LOG_INIT | LOG_GRAPH, "no graphs of this machine: %s",
			err_last());
	}
	for (uint32_t i = 0; wiring->decision && i < wiring->decision->domain_count; i++)
		domain_log(wiring->decision->domains[i]);
}

/* The entry of this board; `is_first` when the caller is to fill it. */
static struct wiring *wiring_find(uint64_t token, bool *is_first)
{
	struct wiring *wiring = wirings;

	while (wiring && wiring->token != token)
		wiring = wiring->next;
	*is_first = !wiring;
	if (!wiring)
		wiring = calloc(1, sizeof(*wiring));
	if (!wiring)
		return NULL;
	if (*is_first) {
		wiring->token = token;
		wiring->next = wirings;
		wirings = wiring;
	}
	wiring->users++;
	return wiring;
}

/* A dump that cannot be written is worth a warning, which it is given where it fails. */
static void dumps_write(const struct wiring *wiring)
{
	const char *topo = param_text(PARAM_TOPO_DUMP_FILE);
	const char *graph = param_text(PARAM_GRAPH_DUMP_FILE);
	const struct domain *domain = wiring->decision ? wiring->decision->domains[0]
						       : NULL;

	if (topo && wiring->tree)
		(void)xml_write(topo, wiring->tree);
	if (graph && domain)
		(void)graph_file_write(graph, domain->topo, &domain->set);
}

enum err wiring_get(const struct wiring_args *args, struct wiring **out)
{
	struct wiring *wiring;
	bool is_first;
	enum err e;

	pthread_mutex_lock(&lock);
	wiring = wiring_find(args->board->token, &is_first);
	if (wiring && is_first) {
		pthread_mutex_unlock(&lock);
		wiring_make(args, wiring);
		pthread_mutex_lock(&lock);
		wiring->is_done = true;
		pthread_cond_broadcast(&done);
	}
	while (wiring && !wiring->is_done)
		pthread_cond_wait(&done, &lock);
	pthread_mutex_unlock(&lock);
	if (!wiring)
		return err_set(ERR_SYSTEM, "no memory for the topology");
	e = wiring->code;
	if (e && !is_first)
		err_adopt(wiring->sentence);
	if (!e && !args->rank)
		dumps_write(wiring);
	if (e || !wiring->decision) {
		wiring_put(wiring);
		wiring = NULL;
	}
	if (!e)
		*out = wiring;
	return e;
}

void wiring_put(struct wiring *wiring)
{
	struct wiring **at = &wirings;
	bool is_last;

	if (!wiring)
		return;
	pthread_mutex_lock(&lock);
	is_last = !--wiring->users;
	while (is_last && *at != wiring)
		at = &(*at)->next;
	if (is_last)
		*at = wiring->next;
	pthread_mutex_unlock(&lock);
	if (!is_last)
		return;
	decision_free(wiring->decision);
	xml_free(wiring->tree);
	free(wiring);
}

const struct cluster *wiring_cluster(const struct wiring *wiring)
{
	return wiring->decision->cluster;
}

uint64_t wiring_topo_ns(const struct wiring *wiring)
{
	return wiring->topo_ns;
}
