#include "comm/machine.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/log.h"
#include "comm/plugin_nets.h"
#include "topo/discover.h"

/* Held during the look at the machine, too, which all wait for anyway. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct xml_node *machine; /* kept for the life of the process */
static bool is_known;

static void machine_look(const struct net_plugin *plugin)
{
	struct discover_report *report = calloc(1, sizeof(*report));
	struct nets_seen *nets = plugin ? plugin_nets_of(plugin) : plugin_nets_look();
	struct discover_args args = {.nets = nets, .no_dump = true};

	is_known = true;
	if (!report || machine_tree_of(&args, &machine, report)) {
		machine = NULL;
		log_info(LOG_INIT | LOG_GRAPH,
			"the machine is not known (%s): no graphs are computed",
			report ? err_last() : "no memory");
	}
	for (uint32_t i = 0; report && machine && i < report->sentence_count; i++)
		log_info(LOG_GRAPH, "machine: %s", report->sentences[i]);
	free(report);
	free(nets);
}

struct xml_node *machine_copy(const struct net_plugin *plugin)
{
	struct xml_node *copy = NULL;

	pthread_mutex_lock(&lock);
	if (!is_known)
		machine_look(plugin);
	if (machine)
		copy = xml_copy(NULL, machine);
	pthread_mutex_unlock(&lock);
	return copy;
}
