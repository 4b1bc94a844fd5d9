/*
 * trees.c - two trees over the same nodes, so that who works hard in one rests in the
 * other.
 *
 * The first tree is read off the binary digits: a node's height is its lowest set bit,
 * its parent has the next bit up. With an even number of nodes the second is the mirror
 * image, with an odd number it is turned by one; either way leaves become inner nodes.
 */
#include "graph/cluster.h"

static int lowest_bit(int node)
{
	return node & -node;
}

/* Node 0 sits above the whole tree; its one child is the tallest that exists. */
static struct binary_tree top_node(int count)
{
	struct binary_tree tree = {.up = -1, .down = {-1, -1}};
	int tallest = 1;

	while (2 * tallest < count)
		tallest *= 2;
	if (count > 1)
		tree.down[1] = tallest;
	return tree;
}

static struct binary_tree digits_tree(int node, int count)
{
	struct binary_tree tree = {.up = -1, .down = {-1, -1}};
	int bit = lowest_bit(node);

	if (node == 0)
		return top_node(count);
	tree.up = (node ^ bit) | (bit << 1);
	if (tree.up >= count)
		tree.up = node ^ bit;
	tree.child_type = node < tree.up ? 0 : 1;
	if (bit == 1)
		return tree;
	tree.down[0] = node - bit / 2;
	for (int below = bit / 2; below > 0; below /= 2) {
		if (node + below < count) {
			tree.down[1] = node + below;
			break;
		}
	}
	return tree;
}

static int turned(int node, int count, bool is_mirror)
{
	if (node < 0)
		return -1;
	return is_mirror ? count - 1 - node : (node + 1) % count;
}

void binary_tree(int node, int count, struct binary_tree tree[2])
{
	bool is_mirror = count % 2 == 0;
	int twin = is_mirror ? count - 1 - node : (node - 1 + count) % count;
	struct binary_tree second = digits_tree(twin, count);

	tree[0] = digits_tree(node, count);
	tree[1] = (struct binary_tree){
		.up = turned(second.up, count, is_mirror),
		.down = {turned(second.down[0], count, is_mirror),
			turned(second.down[1], count, is_mirror)},
		.child_type = second.child_type,
	};
}
