#include "weft/tune_net.h"

#include <stdio.h>

#include "ofi/platform.h"

struct tune_net tune_net_find(const struct tune_args *args)
{
	const char *name = args->machines.name_count == 1 ? args->machines.names[0] : "";
	enum net_choice choice = args->machines.net;
	struct tune_net net = {.is_socket = choice == NET_CHOICE_SOCKET};

	if (choice == NET_CHOICE_PLAIN || net.is_socket || !platform_of(name))
		return net;
	net.type = name;
	net.machine = region_machine(name);
	net.forces_simple = !args->proto && net_forces_simple(name);
	return net;
}

enum err tune_net_apply(const struct tune_net *net, struct model_rules *rules)
{
	return net->forces_simple ? model_proto_parse("simple", rules) : OK;
}

/* Does the tuner prefer something that the model allows? */
static bool prefers(const struct tune_net *net, const struct model *model,
	const struct model_call *call, model_costs costs)
{
	const struct cluster *cluster = model->cluster;
	struct region_question question = {.machine = net->machine,
		.node_count = (uint32_t)cluster->node_count,
		.ranks_per_node = (uint32_t)(cluster->rank_count / cluster->node_count),
		.func = call->func,
		.bytes = call->bytes};
	enum proto proto;
	enum algo algo;

	if (!net->machine || cluster->rank_count % cluster->node_count ||
		!region_choose(&question, &algo, &proto) || !(costs[algo][proto] >= 0))
		return false;
	for (int i = 0; i < ALGO_COUNT * PROTO_COUNT; i++)
		if (i != (int)algo * PROTO_COUNT + (int)proto)
			costs[i / PROTO_COUNT][i % PROTO_COUNT] = MODEL_IGNORE;
	return true;
}

enum err tune_net_choose(const struct tune_net *net, const struct model *model,
	const struct model_call *call, struct model_choice *choice)
{
	model_costs costs;

	model_costs_fill(model, call, costs);
	if (net && prefers(net, model, call, costs))
		return model_costs_pick(model, call, costs, 0, choice);
	return model_choose(model, call, choice);
}

void tune_net_text(const struct tune_net *net, const struct cluster *cluster,
	char text[TUNE_NET_TEXT])
{
	text[0] = '\0';
	if (net->is_socket)
		snprintf(text, TUNE_NET_TEXT, "over sockets of the first interface");
	else if (net->forces_simple)
		snprintf(text, TUNE_NET_TEXT,
			"with the libfabric plugin of AWS, which allows Simple alone on "
			"%s; --net plain: without",
			net->type);
	else if (net->machine && cluster->node_count > 2)
		snprintf(text, TUNE_NET_TEXT,
			"with the libfabric plugin of AWS, whose tuner knows %s; --net "
			"plain: without",
			net->type);
	else if (net->type)
		snprintf(text, TUNE_NET_TEXT,
			"with the libfabric plugin of AWS, which changes nothing here");
}
