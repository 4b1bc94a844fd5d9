#include "weft/graph_json.h"
#include "weft/graph_pods.h"

static json_t *reach_json(const struct pods_reach *reach)
{
	json_t *object = json_object();

	json_object_set_new(object, "p2p", json_integer(reach->p2p));
	json_object_set_new(object, "shm", json_integer(reach->shm));
	json_object_set_new(object, "net", json_integer(reach->net));
	json_object_set_new(object, "netGdr", json_integer(reach->net_gdr));
	if (reach->p2p)
		json_object_set_new(
			object, "worstP2p", json_string(path_name(reach->worst)));
	return object;
}

static json_t *choice_json(const struct model_choice *choice)
{
	json_t *object = json_object();

	json_object_set_new(object, "algo", json_string(algo_name(choice->algo)));
	json_object_set_new(object, "proto", json_string(proto_name(choice->proto)));
	json_object_set_new(object, "timeUs", graph_json_float(choice->time_us));
	return object;
}

static json_t *side_json(const struct pods_side *side)
{
	const struct {
		const char *name;
		int64_t value;
	} numbers[] = {{"podsPerMachine", side->pods}, {"gpusPerPod", side->gpus},
		{"nicsPerPod", side->nics}, {"nNodes", side->nodes},
		{"localRanks", side->local_ranks}, {"nChannels", side->channels}};
	json_t *object = json_object();

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		json_object_set_new(
			object, numbers[i].name, json_integer(numbers[i].value));
	json_object_set_new(object, "ringNeighbours", reach_json(&side->reach));
	json_object_set_new(object, "ringIntra", graph_json_float(side->ring_intra));
	json_object_set_new(object, "ringInter", graph_json_float(side->ring_inter));
	json_object_set_new(object, "nicLoad", graph_json_float((float)side->nic_load));
	json_object_set_new(object, "allReduce8B", choice_json(&side->small));
	json_object_set_new(object, "allReduce1GiB", choice_json(&side->large));
	json_object_set_new(object, "busbw", graph_json_float((float)side->bus_gbps));
	json_object_set_new(
		object, "busbwNicsShared", graph_json_float((float)pods_real_gbps(side)));
	return object;
}

json_t *graph_pods_json(const struct graph_job *job, const struct pods_answer *answer)
{
	json_t *top = json_object(), *assumed = json_object();
	char text[PODS_TEXT_BYTES];
	int bad = 0;

	pods_assumed(answer, text);
	json_object_set_new(assumed, "nicsPerPod", json_integer(answer->split.nics));
	json_object_set_new(assumed, "nicsPerMachine", json_integer(answer->nics));
	json_object_set_new(assumed, "podsPerNic", json_integer(answer->pods_per_nic));
	json_object_set_new(assumed, "isSaid", json_boolean(answer->is_said));
	json_object_set_new(assumed, "text", json_string(text));
	bad |= json_object_set_new(top, "run", graph_json_run(job));
	bad |= json_object_set_new(top, "assumed", assumed);
	bad |= json_object_set_new(top, "whole", side_json(&answer->whole));
	bad |= json_object_set_new(top, "pods", side_json(&answer->split));
	bad |= json_object_set_new(
		top, "slowdown", graph_json_float((float)answer->slowdown));
	if (!bad)
		return top;
	json_decref(top);
	err_set(ERR_SYSTEM, "no memory for the comparison as JSON");
	return NULL;
}
