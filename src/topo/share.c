#include "topo/share.h"

#include <stdlib.h>
#include <string.h>

#include "topo/fuse.h"
#include "topo/topo.h"

struct dealing {
	const struct share_args *args;
	struct share *share;
	struct xml_node *nets[TOPO_NODES_MAX];
	uint32_t users[TOPO_NODES_MAX]; /* pods that have it */
	uint32_t given;			/* NICs every pod has */
};

static uint32_t depth_of(const struct xml_node *node)
{
	uint32_t depth = 0;

	for (; node; node = node->parent)
		depth++;
	return depth;
}

/* How far down the machine's tree the ways to both are one. */
static uint32_t nearness(const struct xml_node *a, const struct xml_node *b)
{
	uint32_t deep_a = depth_of(a), deep_b = depth_of(b);

	for (; deep_a > deep_b; deep_a--)
		a = a->parent;
	for (; deep_b > deep_a; deep_b--)
		b = b->parent;
	for (; a != b; deep_a--) {
		a = a->parent;
		b = b->parent;
	}
	return deep_a;
}

static uint32_t pod_nearness(const struct dealing *dealing, uint32_t pod, uint32_t net)
{
	const struct share_args *args = dealing->args;
	uint32_t sum = 0;

	for (uint32_t g = 0; g < args->gpus_per_pod; g++) {
		const struct xml_node *gpu = fuse_gpu(
			args->tree, args->devs[pod * args->gpus_per_pod + g]);
		sum += gpu ? nearness(gpu, dealing->nets[net]) : 0;
	}
	return sum;
}

static bool has_net(const struct dealing *dealing, uint32_t pod, uint32_t net)
{
	const uint16_t *nets = dealing->share->nets + pod * dealing->share->per_pod;

	for (uint32_t i = 0; i < dealing->given; i++)
		if (nets[i] == net)
			return true;
	return false;
}

/* A round: every pod gets one more, and the pair that is nearest is served first. */
static void deal_round(struct dealing *dealing)
{
	const struct share *share = dealing->share;
	bool is_served[TOPO_GPUS_MAX] = {false};

	for (uint32_t turn = 0; turn < dealing->args->pods; turn++) {
		uint32_t best_pod = 0, best_net = 0, best_users = UINT32_MAX, best = 0;

		for (uint32_t pod = 0; pod < dealing->args->pods; pod++)
			for (uint32_t net = 0; net < share->net_count; net++) {
				uint32_t users = dealing->users[net], near;

				if (is_served[pod] || users > best_users ||
					has_net(dealing, pod, net))
					continue;
				near = pod_nearness(dealing, pod, net);
				if (users == best_users && near <= best)
					continue;
				best_pod = pod;
				best_net = net;
				best_users = users;
				best = near;
			}
		is_served[best_pod] = true;
		dealing->users[best_net]++;
		share->nets[best_pod * share->per_pod + dealing->given] =
			(uint16_t)best_net;
	}
	dealing->given++;
}

static enum err count_nets(struct dealing *dealing)
{
	const struct share_args *args = dealing->args;
	struct share *share = dealing->share;
	struct xml_node *tree = (struct xml_node *)args->tree, *net = NULL;

	while (share->net_count < TOPO_NODES_MAX && (net = xml_find(tree, "net", net)))
		dealing->nets[share->net_count++] = net;
	share->per_pod = args->nets_per_pod ? args->nets_per_pod
					    : share->net_count / args->pods;
	if (!share->per_pod && share->net_count)
		share->per_pod = 1;
	if (share->per_pod > share->net_count)
		return err_set(ERR_USAGE,
			"a pod cannot have %u NICs: the machine has %u; ask for fewer",
			share->per_pod, share->net_count);
	return OK;
}

enum err share_nets(const struct share_args *args, struct share *share)
{
	struct dealing *dealing = calloc(1, sizeof(*dealing));
	struct share made = {0};
	enum err e;

	if (!dealing)
		return err_set(ERR_SYSTEM, "no memory to share NICs");
	dealing->args = args;
	dealing->share = &made;
	e = count_nets(dealing);
	if (!e && made.per_pod) {
		made.nets = calloc((size_t)args->pods * made.per_pod, sizeof(*made.nets));
		if (!made.nets)
			e = err_set(ERR_SYSTEM, "no memory to share NICs");
	}
	while (!e && dealing->given < made.per_pod)
		deal_round(dealing);
	for (uint32_t net = 0; net < made.net_count; net++)
		if (dealing->users[net] > made.most_pods)
			made.most_pods = dealing->users[net];
	free(dealing);
	if (!e)
		*share = made;
	return e;
}

void share_free(struct share *share)
{
	free(share->nets);
	*share = (struct share){0};
}
