/* A machine in pods, and a search without bounds, as tables and as JSON. */
#include <unistd.h>

#include "test.h"
#include "weft/graph_json.h"
#include "weft/graph_pods.h"

enum { TEXT_BYTES = 1 << 16 };

static char text[TEXT_BYTES];

/* What `weft graph` answers on standard output. */
static void answer(const char *machine, const struct graph_args *args)
{
	char *name = (char *)(uintptr_t)machine;
	struct graph_job job;
	FILE *file = tmpfile();
	int kept = dup(1);
	size_t bytes;

	graph_job_init(&job);
	job.args.host_count = 2;
	EQ(graph_job_load(&job, 1, &name), OK);
	TRUE(file && kept >= 0);
	fflush(stdout);
	EQ(dup2(fileno(file), 1), 1);
	EQ(args->pods ? graph_pods(&job, args) : graph_better(&job, args), OK);
	fflush(stdout);
	EQ(dup2(kept, 1), 1);
	close(kept);
	rewind(file);
	bytes = fread(text, 1, sizeof(text) - 1, file);
	text[bytes] = 0;
	fclose(file);
	graph_job_fini(&job);
}

static json_t *parsed(void)
{
	json_t *top = json_loads(text, 0, NULL);

	TRUE(top);
	TRUE(json_is_object(json_object_get(top, "run")));
	return top;
}

static long side_int(const json_t *top, const char *side, const char *name)
{
	return (long)json_integer_value(
		json_object_get(json_object_get(top, side), name));
}

static void an_equal_share(void)
{
	struct graph_args args = {.pods = 4, .gpus_per_pod = 1};
	json_t *top;

	answer("p4d.24xlarge", &args);
	TRUE(strstr(text, "Assumed: each pod has 1 of the machine's 4 NICs (an equal "
			  "share), the nearest that is free. --nics-per-pod says "
			  "otherwise."));
	args.json = true;
	answer("p4d.24xlarge", &args);
	top = parsed();
	EQ(side_int(top, "pods", "nicsPerPod"), 1);
	EQ(side_int(top, "whole", "nicsPerPod"), 4);
	EQ(side_int(top, "assumed", "podsPerNic"), 1);
	EQ(side_int(top, "pods", "nNodes"), 8);
	TRUE(json_is_false(json_object_get(json_object_get(top, "assumed"), "isSaid")));
	/* no NIC is asked for more than it has */
	TRUE(json_number_value(
		     json_object_get(json_object_get(top, "pods"), "nicLoad")) <= 1.01);
	TRUE(json_number_value(json_object_get(top, "slowdown")) > 1);
	json_decref(top);
}

static void as_asked_for(void)
{
	struct graph_args args = {.pods = 4, .gpus_per_pod = 2, .nics_per_pod = 4};
	json_t *top;

	answer("p4d.24xlarge", &args);
	TRUE(strstr(text, "each pod has 4 of the machine's 4 NICs (as asked for), the "
			  "nearest that are free; up to 4 pods share a NIC."));
	args.json = true;
	answer("p4d.24xlarge", &args);
	top = parsed();
	EQ(side_int(top, "pods", "nicsPerPod"), 4);
	TRUE(json_is_true(json_object_get(json_object_get(top, "assumed"), "isSaid")));
	json_decref(top);
}

static void better(void)
{
	struct graph_args args = {.json = true};
	struct decision *bounded;
	struct graph_job job;
	json_t *top, *first;

	answer("dgx-h100", &args);
	top = parsed();
	TRUE(json_is_array(json_object_get(top, "better")));
	EQ(json_array_size(json_object_get(top, "better")), 0);
	json_decref(top);
	graph_job_init(&job); /* as if NCCL had found half of a ring */
	EQ(graph_job_load(&job, 1, (char *[]){"dgx-h100"}), OK);
	EQ(graph_job_run(&job), OK);
	bounded = job.decision;
	job.decision = NULL;
	EQ(graph_job_run(&job), OK);
	bounded->domains[0]->set.graphs[GRAPH_RING].channel_count /= 2;
	top = graph_better_json(&job, bounded);
	EQ(json_array_size(json_object_get(top, "better")), 1);
	first = json_array_get(json_object_get(top, "better"), 0);
	EQ(json_integer_value(json_object_get(first, "kindOfNode")), 1);
	EQ_STR(json_string_value(json_object_get(first, "graph")), "ring");
	EQ(2 * json_integer_value(
		       json_object_get(json_object_get(first, "nccl"), "nChannels")),
		json_integer_value(
			json_object_get(json_object_get(first, "better"), "nChannels")));
	json_decref(top);
	decision_free(bounded);
	graph_job_fini(&job);
}

int main(void)
{
	an_equal_share();
	as_asked_for();
	better();
	return 0;
}
