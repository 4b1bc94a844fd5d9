/*
 * search_walk.c - the depth-first walk: GPU after GPU, channel after channel.
 *
 * A channel begins at a NET (or at a GPU, when nothing is elsewhere), passes all GPUs and
 * ends where the pattern says. Once it is complete the walk goes on to the next channel
 * with what is left on the links, so every solution is a path from the root to some
 * depth. Everything taken on the way down is given back on the way up.
 */
#include "graph/search.h"

/* Steps for the first try in index order, which are not counted. */
enum { PROBE_STEPS = 1 << 10, PROBE_STEPS_UNBOUNDED = 1 << 14 };

/* How the next GPU is chosen. */
enum follow {
	FOLLOW_ORDER,  /* all candidates, best first */
	FOLLOW_INDEX,  /* only the next index */
	FOLLOW_CHANNEL /* only as the channel before went */
};

/* Where in a channel we are. */
struct leg {
	int step;      /* the seat of the GPU that is entered */
	int net_step;  /* the seat that sends to the NET; -1: done, or none does */
	int loop_step; /* the seat that sends to the first GPU; -1: none does */
	enum follow follow;
};

static enum err visit(struct search *search, const struct topo_node *gpu, struct leg leg);

static struct topo_node *gpu_at(const struct search *search, int index)
{
	return topo_gpu_at(search->topo, (uint32_t)index);
}

/* A channel is complete. The trial replaces the best when it carries more, or as much
 * over fewer hops. */
static bool is_better(const struct graph *trial, const struct graph *best, int gpu_count)
{
	float channels = (float)trial->channel_count;
	float best_channels = (float)best->channel_count;
	float bw = channels * trial->bw_intra;
	float best_bw = best_channels * best->bw_intra;

	if (trial->channel_count < trial->min_channels)
		return false;
	if (trial->pattern == PATTERN_NVLS)
		return (trial->channel_count > best->channel_count &&
			       trial->channel_count <= gpu_count) ||
		       channels * trial->bw_inter > best_channels * best->bw_inter;
	if (bw != best_bw)
		return bw > best_bw;
	return trial->pattern == best->pattern && trial->cross_nic == best->cross_nic &&
	       trial->hop_count < best->hop_count;
}

static enum err complete(struct search *search)
{
	struct graph *trial = &search->trial;
	enum err err = OK;

	trial->channel_count++;
	if (is_better(trial, search->best, search->gpu_count)) {
		*search->best = *trial;
		if (trial->channel_count == trial->max_channels)
			*search->steps = STEPS_PERFECT;
	}
	if (trial->channel_count < trial->max_channels)
		err = walk(search);
	trial->channel_count--;
	return err;
}

/* Go to GPU `index` from where we are (NULL: the channel begins there), and on. */
static enum err enter(
	struct search *search, const struct topo_node *from, int index, struct leg leg)
{
	uint64_t flag = 1ull << search->trial.channel_count;
	struct topo_node *gpu = gpu_at(search, index);
	bool fits = true;
	enum err err = from ? path_take(search, from, gpu, 1, &fits) : OK;

	if (err || !fits)
		return err;
	gpu->used ^= flag;
	err = visit(search, gpu, leg);
	gpu->used ^= flag;
	if (!err && from)
		err = path_give(search, from, gpu, 1);
	return err;
}

/* May data that came in by `start` leave by `net`? */
static bool is_way_out(const struct graph *trial, const struct topo_node *start,
	const struct topo_node *net, int step)
{
	const struct topo_net *a = &start->net, *b = &net->net;
	int channel = trial->channel_count;

	if (a->plane >= 0 && b->plane >= 0 && a->plane != b->plane)
		return false;
	if (trial->pattern == PATTERN_TREE && net->id != start->id)
		return false;
	if (trial->pattern == PATTERN_BALANCED_TREE && step != 0 &&
		net->id != trial->inter[channel][1])
		return false;
	if (trial->pattern == PATTERN_RING && trial->cross_nic == 2)
		return !(channel & 1) || net->id == trial->inter[channel - 1][0];
	if (trial->cross_nic)
		return true;
	if (a->rail >= 0 && b->rail >= 0)
		return a->rail == b->rail;
	return a->asic == b->asic && a->port == b->port;
}

/* Take or give the way to the NET. The first two GPUs of a balanced tree share it. */
static enum err net_path(struct search *search, const struct topo_node *gpu,
	const struct topo_node *net, bool *fits)
{
	float bw = search->trial.bw_inter;
	enum err err;

	if (search->trial.pattern == PATTERN_BALANCED_TREE)
		search->trial.bw_inter /= 2;
	err = fits ? path_take(search, gpu, net, 1, fits)
		   : path_give(search, gpu, net, 1);
	search->trial.bw_inter = bw;
	return err;
}

/* From this GPU data leaves the domain. */
static enum err leave(struct search *search, const struct topo_node *gpu, struct leg leg)
{
	struct graph *trial = &search->trial;
	int channel = trial->channel_count, type = (int)trial->type_inter;
	const struct order *nets = order_nets(search, (int)gpu->index, type);
	int start = topo_net_of_id(search->topo, trial->inter[channel][0]);
	bool is_first = trial->pattern == PATTERN_BALANCED_TREE && leg.step == 0;
	enum err err = OK;

	leg.net_step = is_first ? 1 : -1;
	for (uint32_t i = 0; i < nets->count && start >= 0 && !err; i++) {
		struct topo_node *const *all = search->topo->nodes[TOPO_NET];
		const struct topo_node *net = all[nets->list[i]];
		bool fits;

		if (!is_way_out(trial, all[start], net, leg.step))
			continue;
		err = net_path(search, gpu, net, &fits);
		if (err || !fits)
			continue;
		trial->inter[channel][1] = net->id;
		err = visit(search, gpu, leg);
		if (!err)
			err = net_path(search, gpu, net, NULL);
	}
	return err;
}

/* The GPUs and the NVSwitch both ways, as multicast and reduction of one head load them:
 * twice on the head's own link, once on the others. `count` GPUs get it or give it back.
 */
static enum err multicast(
	struct search *search, const struct topo_node *head, bool is_up, int *count)
{
	const struct topo_node *nvs = search->topo->nodes[TOPO_NVS][0];
	bool fits = true;
	enum err err = OK;

	for (*count = 0; *count < search->gpu_count && !err; ++*count) {
		const struct topo_node *gpu = gpu_at(search, *count);
		float share = gpu == head ? 2 : 1;

		err = is_up ? path_take(search, gpu, nvs, share, &fits)
			    : path_take(search, nvs, gpu, share, &fits);
		if (!fits)
			break;
	}
	return err;
}

static enum err multicast_undo(
	struct search *search, const struct topo_node *head, bool is_up, int count)
{
	const struct topo_node *nvs = search->topo->nodes[TOPO_NVS][0];
	enum err err = OK;

	while (count-- && !err) {
		const struct topo_node *gpu = gpu_at(search, count);
		float share = gpu == head ? 2 : 1;

		err = is_up ? path_give(search, gpu, nvs, share)
			    : path_give(search, nvs, gpu, share);
	}
	return err;
}

static enum err visit_nvls(struct search *search, const struct topo_node *head)
{
	struct leg end = {search->gpu_count, -1, -1, FOLLOW_ORDER};
	int down, up = 0;
	enum err err = multicast(search, head, false, &down);

	if (!err && down == search->gpu_count) {
		err = multicast(search, head, true, &up);
		if (!err && up == search->gpu_count)
			err = visit(search, NULL, end);
		if (!err)
			err = multicast_undo(search, head, true, up);
	}
	return err ? err : multicast_undo(search, head, false, down);
}

/* Every GPU sends its part to the head, or the head to every GPU. */
static enum err star(struct search *search, const struct topo_node *head, bool is_in,
	float share, int *count)
{
	bool fits = true;
	enum err err = OK;

	for (*count = 0; *count < search->gpu_count && !err; ++*count) {
		const struct topo_node *gpu = gpu_at(search, *count);

		err = is_in ? path_take(search, gpu, head, share, &fits)
			    : path_take(search, head, gpu, share, &fits);
		if (!fits)
			break;
	}
	return err;
}

static enum err star_undo(struct search *search, const struct topo_node *head, bool is_in,
	float share, int count)
{
	enum err err = OK;

	while (count-- && !err) {
		const struct topo_node *gpu = gpu_at(search, count);

		err = is_in ? path_give(search, gpu, head, share)
			    : path_give(search, head, gpu, share);
	}
	return err;
}

/* The other GPUs follow the head in index order. */
static void seat_others(struct search *search, const struct topo_node *head)
{
	int *seats = search->trial.intra[search->trial.channel_count];
	int step = 1;

	for (int i = 0; i < search->gpu_count; i++)
		if (gpu_at(search, i) != head)
			seats[step++] = gpu_at(search, i)->gpu.rank;
}

static enum err visit_direct(struct search *search, const struct topo_node *head)
{
	struct leg end = {search->gpu_count, -1, -1, FOLLOW_ORDER};
	float share = (float)(1.0 / (float)(search->gpu_count - 1));
	int out, in = 0;
	enum err err = star(search, head, false, share, &out);

	if (!err && out == search->gpu_count) {
		err = star(search, head, true, share, &in);
		if (!err && in == search->gpu_count) {
			seat_others(search, head);
			err = visit(search, NULL, end);
		}
		if (!err)
			err = star_undo(search, head, true, share, in);
	}
	return err ? err : star_undo(search, head, false, share, out);
}

static enum net_hint hint_of(struct leg leg)
{
	if (leg.net_step == -1)
		return NET_BEHIND;
	return leg.net_step == leg.step + 1 ? NET_NEXT : NET_FARTHER;
}

/* On to the next GPU. */
static enum err forward(
	struct search *search, const struct topo_node *gpu, struct leg leg)
{
	int channel = search->trial.channel_count;
	struct order_gpus next;
	uint8_t only;
	enum err err = OK;

	if (leg.follow == FOLLOW_ORDER) {
		next = order_gpus(search, gpu, leg.step, hint_of(leg));
	} else {
		only = leg.follow == FOLLOW_INDEX
			       ? (uint8_t)(leg.step + 1)
			       : search->seat[channel - 1][leg.step + 1];
		next = (struct order_gpus){1, &only};
	}
	leg.step++;
	for (uint32_t i = 0; i < next.count && !err; i++)
		err = enter(search, gpu, next.list[i], leg);
	return err;
}

/* Back to the first GPU: a ring inside the domain. */
static enum err loop(struct search *search, const struct topo_node *gpu, struct leg leg)
{
	int first = search->seat[search->trial.channel_count][0];
	const struct topo_node *to = gpu_at(search, first);
	bool fits;
	enum err err = path_take(search, gpu, to, 1, &fits);

	if (err || !fits)
		return err;
	leg.step++;
	leg.loop_step = -1;
	err = visit(search, to, leg);
	return err ? err : path_give(search, gpu, to, 1);
}

static enum err visit(struct search *search, const struct topo_node *gpu, struct leg leg)
{
	struct graph *trial = &search->trial;
	int channel = trial->channel_count;

	if (*search->steps <= 0)
		return OK;
	--*search->steps;
	if (leg.step == search->gpu_count)
		return complete(search);
	trial->intra[channel][leg.step] = gpu->gpu.rank;
	search->seat[channel][leg.step] = (uint8_t)gpu->index;
	if (leg.step == leg.net_step)
		return leave(search, gpu, leg);
	if (trial->pattern == PATTERN_NVLS)
		return visit_nvls(search, gpu);
	if (trial->pattern == PATTERN_COLLNET_DIRECT)
		return visit_direct(search, gpu);
	if (leg.step < search->gpu_count - 1)
		return forward(search, gpu, leg);
	if (leg.step == leg.loop_step)
		return loop(search, gpu, leg);
	leg = (struct leg){search->gpu_count, -1, -1, leg.follow};
	return visit(search, gpu, leg);
}

static bool is_head_only(enum graph_pattern pattern)
{
	return pattern == PATTERN_NVLS || pattern == PATTERN_COLLNET_DIRECT;
}

/* May a channel begin at this NET? */
static bool is_way_in(const struct graph *trial, const struct topo_node *net)
{
	int channel = trial->channel_count;

	if (trial->collnet && !net->net.coll)
		return false;
	if (net->net.bw < (float)(int)trial->bw_inter)
		return false;
	return trial->pattern != PATTERN_RING || trial->cross_nic != 2 ||
	       !(channel & 1) || net->id == trial->inter[channel - 1][1];
}

/* Only the GPU nearest to the NET may be a head, and only once. */
static enum err begin_head(struct search *search, const struct topo_node *net,
	struct leg leg, bool *is_tried)
{
	int gpu = net->net.local_gpu;

	if (gpu < 0 || gpu >= search->gpu_count)
		return OK;
	for (int c = 0; c < search->trial.channel_count; c++)
		if (search->seat[c][0] == gpu)
			return OK;
	*is_tried = true;
	return enter(search, net, gpu, leg);
}

/* Index order first, to have something to compare with; not counted, not for long. */
static enum err probe(struct search *search, const struct topo_node *net, struct leg leg)
{
	int *counted = search->steps;
	int steps = search->options->unbounded ? PROBE_STEPS_UNBOUNDED : PROBE_STEPS;
	enum err err;

	leg.follow = FOLLOW_INDEX;
	search->steps = &steps;
	err = enter(search, net, 0, leg);
	search->steps = counted;
	if (steps == STEPS_PERFECT)
		*search->steps = STEPS_PERFECT;
	return err;
}

static enum err begin_at(
	struct search *search, const struct topo_node *net, struct leg leg)
{
	const struct graph *trial = &search->trial;
	const struct order *door = &search->doors[net->index];
	int channel = trial->channel_count, nearest = net->net.local_gpu;
	enum err err = OK;

	if (channel && trial->same_channels) {
		leg.follow = FOLLOW_CHANNEL;
		return enter(search, net, search->seat[channel - 1][0], leg);
	}
	if (!channel && !search->topo->counts[TOPO_NVS])
		err = probe(search, net, leg);
	if (!err && nearest >= 0 && nearest < search->gpu_count)
		err = enter(search, net, nearest, leg);
	for (uint32_t i = 0; i < door->count && !err; i++)
		if (door->list[i] != nearest)
			err = enter(search, net, door->list[i], leg);
	return err;
}

/* A channel that comes in over the network. */
static enum err begin_outside(struct search *search, struct leg leg)
{
	struct graph *trial = &search->trial;
	uint32_t channel = (uint32_t)trial->channel_count;
	const struct order *nets = order_nets(
		search, search->gpu_count, (int)trial->type_inter);
	int bw = (int)trial->bw_inter; /* pooled in whole GB/s */
	bool is_tried = false;
	enum err err = OK;

	for (uint32_t i = 0; i < nets->count && !is_tried && !err; i++) {
		uint32_t index = nets->list[(channel + i) % nets->count];
		struct topo_node *net = search->topo->nodes[TOPO_NET][index];

		if (!is_way_in(trial, net))
			continue;
		trial->inter[channel][0] = net->id;
		trial->latency_inter = net->net.latency;
		pool_take(search->topo, net, bw);
		if (!is_head_only(trial->pattern))
			err = begin_at(search, net, leg);
		else if (channel < nets->count)
			err = begin_head(search, net, leg, &is_tried);
		pool_take(search->topo, net, -bw);
	}
	return err;
}

/* A channel that stays inside. */
static enum err begin_inside(struct search *search, struct leg leg)
{
	int channel = search->trial.channel_count;
	enum err err;

	if (search->trial.pattern == PATTERN_NVLS)
		return enter(search, NULL, channel, leg);
	leg.follow = channel ? FOLLOW_CHANNEL : FOLLOW_INDEX;
	err = enter(search, NULL, channel ? search->seat[channel - 1][0] : 0, leg);
	leg.follow = FOLLOW_ORDER;
	if (channel && search->trial.same_channels)
		return err;
	for (int g = 0; g < search->gpu_count && !err; g++)
		err = enter(search, NULL, g, leg);
	return err;
}

enum err walk(struct search *search)
{
	enum graph_pattern pattern = search->trial.pattern;
	int last = search->gpu_count - 1;
	struct leg leg = {0, -1, -1, FOLLOW_ORDER};

	if (!search->topo->is_inter) {
		leg.loop_step = pattern == PATTERN_RING ? last : -1;
		return begin_inside(search, leg);
	}
	leg.net_step = pattern == PATTERN_RING	       ? last
		       : pattern == PATTERN_SPLIT_TREE ? 1
						       : 0;
	return begin_outside(search, leg);
}
