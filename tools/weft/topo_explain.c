#include "weft/topo_explain.h"

#include <inttypes.h>
#include <string.h>

#include "topo/decide_path.h"

enum { NAME_MAX_BYTES = TOPO_VIEW_NAME_MAX, RANGE_BYTES = 40 };

static const char *const meanings[PATH_TYPES] = {
	[PATH_LOC] = "the same GPU",
	[PATH_NVL] = "NVLink",
	[PATH_NVB] = "NVLink through another GPU",
	[PATH_C2C] = "the chip-to-chip link",
	[PATH_PIX] = "one PCIe switch",
	[PATH_PXB] = "several PCIe switches, no host bridge",
	[PATH_P2C] = "the chip-to-chip link to the CPU and one host bridge",
	[PATH_PXN] = "NVLink to another GPU that is nearer to the NIC",
	[PATH_PHB] = "the host bridge of one NUMA node",
	[PATH_SYS] = "the link between NUMA nodes",
	[PATH_NET] = "the network",
	[PATH_DIS] = "no way at all",
};

static const char *link_word(enum link_type type)
{
	static const char *const words[] = {
		"", "NVLink", "C2C", "PCIe", "CPU to CPU", "network port"};

	return words[type];
}

static void print_busid(FILE *file, const struct topo_node *node)
{
	char name[NAME_MAX_BYTES], busid[20];

	topo_view_name(node, name);
	topo_busid_print(topo_local(node->id), busid);
	if (node->kind == TOPO_GPU)
		fprintf(file, "%s (%s)", name, busid);
	else
		fprintf(file, "%s (NET %d)", name, node->net.dev);
}

/* A line per hop that is one outside of a chip. */
static void print_hops(
	FILE *file, const struct topo_node *from, const struct topo_path *path)
{
	const struct topo_node *at = from;
	char near[NAME_MAX_BYTES], far[NAME_MAX_BYTES];

	for (uint32_t i = 0; i < path->hop_count; i++) {
		const struct topo_link *link = path->hops[i];

		if (link->type != LINK_LOC && link->type != LINK_NET) {
			topo_view_name(at, near);
			topo_view_name(link->to, far);
			fprintf(file, "    %-24s -> %-24s %-12s %5.1f GB/s\n", near, far,
				link_word(link->type), (double)link->bw);
		} else if (link->type == LINK_NET) {
			const struct topo_node *net = at->kind == TOPO_NET ? at
									   : link->to;

			topo_view_name(net, near);
			fprintf(file, "    %-24s    %-24s %-12s %5.1f GB/s\n", near, "",
				link_word(link->type), (double)link->bw);
		}
		at = link->to;
	}
}

static void print_way(FILE *file, const char *what, const struct topo_node *from,
	const struct topo_path *path)
{
	fprintf(file, "  %s: %s, %.1f GB/s, by %s\n", what, path_name(path->type),
		(double)path->bw, meanings[path->type]);
	print_hops(file, from, path);
}

/* What nvidia-smi would say of the pair. */
static void print_smi(FILE *file, const struct topo_view *view, const struct topo_node *a,
	const struct topo_node *b)
{
	const struct topo_node *nodes[] = {a, b};
	uint32_t rows[2] = {0};
	const struct matrix *matrix = view->matrix;
	uint32_t count = matrix->gpu_count + matrix->nic_count;
	char text[MATRIX_CELL_MAX];

	for (int i = 0; i < 2; i++) {
		for (rows[i] = 0; rows[i] < count; rows[i]++) {
			const struct matrix_part *part = &matrix->parts[rows[i]];

			if (rows[i] < matrix->gpu_count
					? nodes[i]->kind == TOPO_GPU &&
						  nodes[i]->gpu.dev == part->number
					: nodes[i]->kind == TOPO_NET &&
						  topo_view_find(view, part->name) ==
							  nodes[i])
				break;
		}
		if (rows[i] == count)
			return;
	}
	matrix_cell_text(*matrix_at(matrix, rows[0], rows[1]), text);
	fprintf(file, "  nvidia-smi topo -m calls it %s\n", text);
}

static enum err direct_verdict(const struct topo_view *view, const uint32_t pair[2],
	struct topo_p2p *verdict, float *bw)
{
	struct topo *topo;
	enum err e = topo_view_direct(view, &topo);

	if (e)
		return e;
	topo_p2p(topo, pair[0], pair[1], verdict);
	*bw = topo_path(topo_gpu_at(topo, pair[0]), TOPO_GPU, pair[1])->bw;
	topo_free(topo);
	return OK;
}

static void print_p2p_yes(
	FILE *file, const struct topo_view *view, const struct topo_p2p *verdict)
{
	fprintf(file, "  transport: P2P, %s\n",
		verdict->read ? "the receiver reads the sender's memory"
			      : "the sender writes into the receiver's memory");
	if (verdict->middle >= 0)
		fprintf(file, "    GPU%d lies between and passes the data on\n",
			topo_gpu_at(view->topo, (uint32_t)verdict->middle)->gpu.dev);
	fprintf(file, "  why: %s; %s is within %s\n", verdict->rule,
		path_name(verdict->type), path_name(verdict->level));
}

static void print_p2p_no(FILE *file, const struct topo_view *view,
	const struct topo_p2p *verdict, const uint32_t pair[2])
{
	if (topo_shm_connects(view->topo, pair[0], pair[1]))
		fprintf(file, "  transport: SHM, copies through host memory\n");
	else
		fprintf(file,
			"  transport: NET, through the NICs even inside the host\n");
	if (verdict->type > verdict->level)
		fprintf(file, "  why: %s; %s is beyond %s\n", verdict->rule,
			path_name(verdict->type), path_name(verdict->level));
	else
		fprintf(file, "  why: %s\n", verdict->rule);
}

static const char *transport_of(const struct topo *topo, const uint32_t pair[2])
{
	if (topo_path(topo_gpu_at(topo, pair[0]), TOPO_GPU, pair[1])->type == PATH_NET)
		return "NET";
	return topo_p2p_connects(topo, pair[0], pair[1])   ? "P2P"
	       : topo_shm_connects(topo, pair[0], pair[1]) ? "SHM"
							   : "NET";
}

/* Ask the same pair by other rules and say what comes out, if anything does. */
static enum err print_other(FILE *file, const struct topo_view *view,
	const struct topo_rules *rules, const uint32_t pair[2], const char *knob)
{
	const struct topo_path *now = topo_path(
		topo_gpu_at(view->topo, pair[0]), TOPO_GPU, pair[1]);
	const struct topo_path *then;
	struct topo *topo;
	const char *transport;
	enum err e = topo_view_ask(view, rules, &topo);

	if (e)
		return e;
	then = topo_path(topo_gpu_at(topo, pair[0]), TOPO_GPU, pair[1]);
	transport = transport_of(topo, pair);
	if (then->type == PATH_NET && now->type != PATH_NET)
		fprintf(file, "  to change it: %s gives NET, through the NICs\n", knob);
	else if (strcmp(transport, transport_of(view->topo, pair)) ||
		 now->type != then->type || now->bw != then->bw)
		fprintf(file, "  to change it: %s gives %s, %s at %.1f GB/s\n", knob,
			transport, path_name(then->type), (double)then->bw);
	topo_free(topo);
	return OK;
}

static enum err print_changes(FILE *file, const struct topo_view *view,
	const struct topo_p2p *verdict, const uint32_t pair[2])
{
	struct topo_rules rules = view->rules;
	char knob[64];

	if (verdict->ok) {
		rules.p2p_level = PATH_LOC;
		return print_other(file, view, &rules, pair, "NCCL_P2P_DISABLE=1");
	}
	if (verdict->type > verdict->level && verdict->type <= PATH_SYS) {
		rules.p2p_level = (int)verdict->type;
		snprintf(knob, sizeof(knob), "NCCL_P2P_LEVEL=%s",
			path_name(verdict->type));
		return print_other(file, view, &rules, pair, knob);
	}
	if (!rules.nvml_p2p_ok) {
		fprintf(file,
			"  to change it: nothing in NCCL; nvidia-smi topo -p2p r says "
			"what the driver refuses and why\n");
		return OK;
	}
	rules.net_disable_intra = true;
	return print_other(file, view, &rules, pair, "NCCL_NET_DISABLE_INTRA=1");
}

static enum err explain_gpus(FILE *file, const struct topo_view *view,
	const struct topo_node *a, const struct topo_node *b)
{
	const uint32_t pair[2] = {a->index, b->index};
	const struct topo_path *path = topo_path(a, TOPO_GPU, b->index);
	struct topo_p2p verdict;
	float bw;
	enum err e;

	if (a == b) {
		fprintf(file, "  it is the same GPU: %.0f GB/s, nothing to decide\n",
			(double)path->bw);
		return OK;
	}
	print_smi(file, view, a, b);
	e = direct_verdict(view, pair, &verdict, &bw);
	if (e)
		return e;
	if (path->type != verdict.type)
		fprintf(file, "  the direct way would be %s, %.1f GB/s, by %s\n",
			path_name(verdict.type), (double)bw, meanings[verdict.type]);
	print_way(file, "the way", a, path);
	/* NICs that are faster than the way that is left decide against both. */
	if (verdict.ok && !topo_p2p_connects(view->topo, pair[0], pair[1]))
		topo_p2p(view->topo, pair[0], pair[1], &verdict);
	if (verdict.ok)
		print_p2p_yes(file, view, &verdict);
	else
		print_p2p_no(file, view, &verdict, pair);
	return print_changes(file, view, &verdict, pair);
}

/* What NCCL has of a GPU and a NIC. */
struct net_state {
	enum path_type type; /* of sending */
	float bw;
	enum gdr_mode send, receive;
};

static void net_state_read(
	const struct topo *topo, const uint32_t pair[2], struct net_state *state)
{
	const struct topo_node *gpu = topo_gpu_at(topo, pair[0]);
	const struct topo_path *path = topo_path(gpu, TOPO_NET, pair[1]);
	uint64_t net = topo->nodes[TOPO_NET][pair[1]]->id;
	struct topo_gdr send, receive;

	topo_gdr(topo, gpu->gpu.rank, net, true, &send);
	topo_gdr(topo, gpu->gpu.rank, net, false, &receive);
	*state = (struct net_state){path->type, path->bw, send.mode, receive.mode};
}

/* NCCL measures from the GPU that sends, in both directions; with PXN that is another
 * one, by which nothing is received. */
static void print_gdr_distance(FILE *file, const struct topo_view *view,
	const struct topo_node *gpu, const struct topo_gdr *gdr, enum path_type received)
{
	int relay = topo_gpu_of_rank(view->topo, gdr->relay);
	int dev = relay < 0 ? -1 : topo_gpu_at(view->topo, (uint32_t)relay)->gpu.dev;
	const char *distance = path_name(gdr->distance);

	if (dev == gpu->gpu.dev)
		fprintf(file, ": from GPU%d it is %s", dev, distance);
	else if (received == PATH_DIS)
		fprintf(file, ": from GPU%d, which sends for GPU%d, it is %s", dev,
			gpu->gpu.dev, distance);
	else
		fprintf(file,
			": NCCL asks as for sending, from GPU%d (%s); what is received "
			"does not pass GPU%d and takes the way above, %s",
			dev, distance, dev, path_name(received));
}

/* `received`: the type of the receiving way, PATH_DIS when it is about sending. */
static void print_gdr(FILE *file, const struct topo_view *view,
	const struct topo_node *gpu, const struct topo_gdr *gdr, enum path_type received)
{
	static const char *const modes[] = {
		"off, staged in host memory", "on", "on, over PCIe beside C2C"};

	fprintf(file, "  GPUDirect RDMA, %s: %s\n    why: %s",
		received == PATH_DIS ? "sending" : "receiving", modes[gdr->mode],
		gdr->rule);
	if (gdr->is_measured)
		print_gdr_distance(file, view, gpu, gdr, received);
	fprintf(file, "\n");
}

static bool has_c2c(const struct topo *topo)
{
	for (uint32_t i = 0; i < topo->counts[TOPO_CPU]; i++) {
		const struct topo_node *cpu = topo->nodes[TOPO_CPU][i];

		for (uint32_t l = 0; l < cpu->link_count; l++)
			if (cpu->links[l].type == LINK_C2C)
				return true;
	}
	return false;
}

/* How far GPUDirect RDMA may go, and what that word means here. */
static void print_gdr_limit(
	FILE *file, const struct topo *topo, const struct topo_gdr *gdr)
{
	if (!gdr->is_measured)
		return;
	fprintf(file, "    allowed: up to %s, %s", path_name(gdr->level),
		meanings[gdr->level]);
	if (gdr->level == PATH_P2C && !has_c2c(topo))
		fprintf(file, "; without such a link, as here, that is up to PXB, %s",
			meanings[PATH_PXB]);
	fprintf(file, "\n");
}

static void print_gdr_change(FILE *file, const struct net_state *now,
	const struct net_state *then, const char *before)
{
	static const char *const words[] = {"off", "on", "on, over PCIe"};

	if (now->send != then->send && now->receive != then->receive &&
		now->send == now->receive && then->send == then->receive) {
		fprintf(file, "%sGPUDirect RDMA %s instead of %s", before,
			words[then->send], words[now->send]);
		return;
	}
	if (now->send != then->send)
		fprintf(file, "%sGPUDirect RDMA for sending %s instead of %s", before,
			words[then->send], words[now->send]);
	if (now->receive != then->receive)
		fprintf(file, "%sGPUDirect RDMA for receiving %s instead of %s",
			now->send != then->send ? "; " : before, words[then->receive],
			words[now->receive]);
}

/* The same GPU and NIC when a knob is turned; not a word when nothing comes of it. */
static enum err print_net_other(FILE *file, const struct topo_view *view,
	const struct topo_rules *rules, const uint32_t pair[2], const char *knob)
{
	struct net_state now, then;
	struct topo *topo;
	bool moved;
	enum err e = topo_view_ask(view, rules, &topo);

	if (e)
		return e;
	net_state_read(view->topo, pair, &now);
	net_state_read(topo, pair, &then);
	topo_free(topo);
	if (now.type == then.type && now.bw == then.bw && now.send == then.send &&
		now.receive == then.receive)
		return OK;
	fprintf(file, "  to change it: %s gives ", knob);
	moved = now.type != then.type || now.bw != then.bw;
	if (moved)
		fprintf(file, "%s at %.1f GB/s for sending instead of %s at %.1f GB/s",
			path_name(then.type), (double)then.bw, path_name(now.type),
			(double)now.bw);
	print_gdr_change(file, &now, &then, moved ? "; " : "");
	fprintf(file, "\n");
	return OK;
}

/* GPUDirect RDMA that a knob of NCCL could turn on. */
static enum err print_gdr_knobs(FILE *file, const struct topo_view *view,
	const struct topo_gdr *gdr, const uint32_t pair[2])
{
	struct topo_rules rules = view->rules;
	char knob[64];

	if (!topo_gpu_at(view->topo, pair[0])->gpu.gdr ||
		!view->topo->nodes[TOPO_NET][pair[1]]->net.gdr) {
		fprintf(file,
			"  to change it: no variable does; the GPU, the NIC and its "
			"driver must all do GPUDirect RDMA\n");
		return OK;
	}
	if (!gdr->is_measured) {
		rules.gdr_read = 1;
		return print_net_other(file, view, &rules, pair, "NCCL_NET_GDR_READ=1");
	}
	if (gdr->distance <= gdr->level || gdr->distance > PATH_SYS)
		return OK;
	rules.gdr_level = (int)gdr->distance;
	snprintf(knob, sizeof(knob), "NCCL_NET_GDR_LEVEL=%s", path_name(gdr->distance));
	return print_net_other(file, view, &rules, pair, knob);
}

static enum err print_net_changes(FILE *file, const struct topo_view *view,
	const struct topo_gdr *gdr, const uint32_t pair[2])
{
	const struct topo_path *path = topo_path(
		topo_gpu_at(view->topo, pair[0]), TOPO_NET, pair[1]);
	struct topo_rules rules = view->rules;
	enum err e = OK;

	if (path->type == PATH_PXN) {
		rules.pxn_disable = true;
		e = print_net_other(file, view, &rules, pair, "NCCL_PXN_DISABLE=1");
	}
	return e || gdr->mode != GDR_OFF ? e : print_gdr_knobs(file, view, gdr, pair);
}

/* Which NIC the GPU takes when nobody asks for one. */
static void print_own_nic(
	FILE *file, const struct topo *topo, const struct topo_node *gpu)
{
	uint64_t id;
	char name[NAME_MAX_BYTES];
	int net;

	if (topo_local_net(topo, gpu->gpu.rank, 0, &id))
		return;
	net = topo_net_of_id(topo, id);
	if (net < 0)
		return;
	topo_view_name(topo->nodes[TOPO_NET][net], name);
	fprintf(file, "  on channel 0 GPU%d uses %s\n", gpu->gpu.dev, name);
}

static enum err explain_net(FILE *file, const struct topo_view *view,
	const struct topo_node *gpu, const struct topo_node *net)
{
	const struct topo_path *out = topo_path(gpu, TOPO_NET, net->index);
	const struct topo_path *in = topo_path(net, TOPO_GPU, gpu->index);
	const uint32_t pair[2] = {gpu->index, net->index};
	struct topo_gdr send, receive;

	print_smi(file, view, gpu, net);
	print_way(file, "sending", gpu, out);
	print_way(file, "receiving", net, in);
	topo_gdr(view->topo, gpu->gpu.rank, net->id, true, &send);
	topo_gdr(view->topo, gpu->gpu.rank, net->id, false, &receive);
	print_gdr(file, view, gpu, &send, PATH_DIS);
	print_gdr_limit(file, view->topo, &send);
	print_gdr(file, view, gpu, &receive, in->type);
	if (!send.is_measured)
		print_gdr_limit(file, view->topo, &receive);
	if (receive.mode != GDR_OFF)
		fprintf(file, "    received data %s before the GPU may read\n",
			topo_gdr_needs_flush(view->topo, gpu->gpu.rank, net->id)
				? "are flushed"
				: "need no flush");
	print_own_nic(file, view->topo, gpu);
	return print_net_changes(file, view, &send, pair);
}

/* "GPU0 to GPU7", "NIC0", "no NIC" */
static void range_text(const char *kind, uint32_t count, char text[RANGE_BYTES])
{
	if (!count)
		snprintf(text, RANGE_BYTES, "no %s", kind);
	else if (count == 1)
		snprintf(text, RANGE_BYTES, "%s0", kind);
	else
		snprintf(text, RANGE_BYTES, "%s0 to %s%u", kind, kind, count - 1);
}

static enum err not_there(const struct topo_view *view, const char *name)
{
	char gpus[RANGE_BYTES], nics[RANGE_BYTES];

	if (view->matrix->gpu_count && !view->topo->counts[TOPO_GPU])
		return err_set(ERR_USAGE,
			"the GPUs of %s hang below NICs or nowhere, so NCCL finds no way "
			"to them; correct the topology file",
			view->name);
	range_text("GPU", view->matrix->gpu_count, gpus);
	range_text("NIC", view->matrix->nic_count, nics);
	return err_set(ERR_USAGE, "'%s' is not in %s, which has %s and %s; name %s", name,
		view->name, gpus, nics,
		view->matrix->gpu_count ? "one of them, or a bus id" : "a machine");
}

enum err topo_explain(
	FILE *file, const struct topo_view *view, const char *a, const char *b)
{
	const struct topo_node *first = topo_view_find(view, a);
	const struct topo_node *second = topo_view_find(view, b);

	if (!first || !second)
		return not_there(view, first ? b : a);
	if (first->kind == TOPO_NET && second->kind == TOPO_NET)
		return err_set(ERR_USAGE,
			"%s and %s are both NICs: NCCL sends nothing between two NICs of "
			"one machine; name a GPU",
			a, b);
	print_busid(file, first);
	fprintf(file, first->kind == second->kind ? " to " : " and ");
	print_busid(file, second);
	fprintf(file, "\n");
	if (first->kind == TOPO_GPU && second->kind == TOPO_GPU)
		return explain_gpus(file, view, first, second);
	return first->kind == TOPO_GPU ? explain_net(file, view, first, second)
				       : explain_net(file, view, second, first);
}
