/*
 * tree.c - binary trees: a logarithmic number of hops, every byte twice over a link.
 *
 * Tree 0 is the in-order binary tree on ranks 0..n-1: rank r hangs below the rank that
 * has r's lowest set bit cleared and the next one set, or only cleared where that would
 * leave the ranks. Odd ranks are leaves.
 *
 *         0                 Tree 1 is tree 0 mirrored (n even) or turned by one rank
 *         |                 (n odd), so a rank that works in one tree rests as a leaf
 *         4                 in the other and half the data through each loads all
 *       /   \               ranks alike.
 *      2     6
 *     / \   / \             n = 8, tree 0
 *    1   3 5   7
 */
#include "sched/write.h"
#include "sched/writers.h"

enum { CHILDREN_MAX = 3, LANE_UP = 0, LANE_DOWN = 1 };

struct node {
	uint32_t parent; /* the rank itself at the root */
	uint32_t child_count;
	uint32_t children[CHILDREN_MAX];
};

/* Tree 0's parent; 0 is the root and its own parent. */
static uint32_t base_parent(uint32_t n, uint32_t rank)
{
	uint32_t bit = rank & (0u - rank);
	uint32_t up = (rank ^ bit) | bit << 1;

	if (!rank)
		return 0;
	return up < n ? up : rank ^ bit;
}

/* A rank's place in tree 0, and back: mirrored or turned for tree 1. */
static uint32_t to_base(uint32_t tree, uint32_t n, uint32_t rank)
{
	if (!tree)
		return rank;
	return n % 2 ? (rank + n - 1) % n : n - 1 - rank;
}

static uint32_t from_base(uint32_t tree, uint32_t n, uint32_t place)
{
	if (!tree)
		return place;
	return n % 2 ? (place + 1) % n : n - 1 - place;
}

uint32_t tree_parent(uint32_t tree, uint32_t rank_count, uint32_t rank)
{
	uint32_t place = to_base(tree, rank_count, rank);

	return from_base(tree, rank_count, base_parent(rank_count, place));
}

/* The places below one in tree 0, lowest first. A child differs from its parent below
 * the parent's lowest set bit, and only the child half of that bit away lies before it.
 */
static uint32_t base_children(uint32_t n, uint32_t place, uint32_t *children)
{
	uint32_t low = place ? place & (0u - place) : 2 * n, count = 0;

	if (place && low > 1 && base_parent(n, place - low / 2) == place)
		children[count++] = place - low / 2;
	for (uint32_t bit = 1; bit < low && (place | bit) < n; bit *= 2)
		if (base_parent(n, place | bit) == place)
			children[count++] = place | bit;
	return count;
}

/* The tree around one rank when ranks are counted from `first`. */
static struct node node_find(uint32_t tree, uint32_t n, uint32_t first, uint32_t rank)
{
	uint32_t place = to_base(tree, n, (rank + n - first) % n);
	struct node node = {0};

	node.parent = (from_base(tree, n, base_parent(n, place)) + first) % n;
	node.child_count = base_children(n, place, node.children);
	for (uint32_t i = 0; i < node.child_count; i++)
		node.children[i] = (from_base(tree, n, node.children[i]) + first) % n;
	return node;
}

/* Fold the children's values and one's own towards the root. */
static void write_up(
	struct writer *w, uint32_t chunk, const struct node *node, bool at_root)
{
	struct prog *lane = &w->sched->lanes[LANE_UP];
	struct sched_line line = {
		.op = IN_SRC, .src = chunk, .to = SPACE_OUT, .dst = chunk};

	if (node->child_count) {
		line.op |= IN_RECV | FAN_IN;
		line.reps = node->child_count;
		line.rx = prog_rx(lane, node->children[0]);
		for (uint32_t i = 1; i < node->child_count; i++)
			prog_rx(lane, node->children[i]);
	}
	if (at_root) {
		line.op |= OUT_DST | OP_POST;
	} else {
		line.op |= OUT_SEND;
		line.tx = prog_tx(lane, node->parent);
	}
	write_line(w, LANE_UP, &line);
}

static void connect_down(
	struct prog *lane, const struct node *node, struct sched_line *line)
{
	if (!node->child_count)
		return;
	line->op |= OUT_SEND | FAN_OUT;
	line->reps = node->child_count;
	line->tx = prog_tx(lane, node->children[0]);
	for (uint32_t i = 1; i < node->child_count; i++)
		prog_tx(lane, node->children[i]);
}

/* Hand the result to the children; the root takes it from the upward lane. */
static void write_down(
	struct writer *w, uint32_t chunk, const struct node *node, bool at_root)
{
	struct prog *lane = &w->sched->lanes[LANE_DOWN];
	struct sched_line line = {
		.from = SPACE_OUT, .to = SPACE_OUT, .src = chunk, .dst = chunk};

	connect_down(lane, node, &line);
	if (at_root) {
		line.op |= IN_SRC;
		line.wait_lane = LANE_UP;
		line.wait_pc = chunk + 1; /* the upward lane retires one a chunk */
	} else {
		line.op |= IN_RECV | OUT_DST;
		line.rx = prog_rx(lane, node->parent);
	}
	write_line(w, LANE_DOWN, &line);
}

/* Two trees, half the vector through each; up and down are lanes so that they overlap. */
enum err tree_all_reduce(struct sched *sched)
{
	struct writer w = write_begin(sched, 2, 2);

	for (uint32_t tree = 0; tree < 2; tree++) {
		struct node node = node_find(tree, sched->rank_count, 0, sched->rank);
		bool at_root = node.parent == sched->rank;

		write_up(&w, tree, &node, at_root);
		write_down(&w, tree, &node, at_root);
	}
	return w.error;
}

enum err tree_broadcast(struct sched *sched)
{
	struct writer w = write_begin(sched, 1, 1);
	struct node node = node_find(0, sched->rank_count, sched->root, sched->rank);
	struct sched_line line = {.op = OUT_DST, .to = SPACE_OUT};

	connect_down(&sched->lanes[0], &node, &line);
	if (sched->rank == sched->root) {
		line.op |= IN_SRC;
	} else {
		line.op |= IN_RECV;
		line.rx = prog_rx(&sched->lanes[0], node.parent);
	}
	write_line(&w, 0, &line);
	return w.error;
}

enum err tree_reduce(struct sched *sched)
{
	struct writer w = write_begin(sched, 1, 1);
	struct node node = node_find(0, sched->rank_count, sched->root, sched->rank);

	write_up(&w, 0, &node, sched->rank == sched->root);
	return w.error;
}
