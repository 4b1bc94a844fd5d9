#include "boot/roster.h"

#include <stdlib.h>
#include <string.h>

static int rank_compare(const void *one, const void *other, void *context)
{
	const struct control_peer *peers = context;
	uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
	int order = memcmp(&peers[a].addr, &peers[b].addr, sizeof(peers[a].addr));

	if (order)
		return order;
	return a < b ? -1 : a > b;
}

void roster_fini(struct roster *roster)
{
	free(roster->node_of);
	free(roster->first_rank);
	*roster = (struct roster){0};
}

/* For now each rank's is the first rank of its process. */
static enum err first_find(const struct control_peer *peers, uint32_t count,
	const uint32_t *sorted, uint32_t *first_of)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t rank = sorted[i], before = i ? sorted[i - 1] : rank;
		bool is_new = !i || memcmp(&peers[rank].addr, &peers[before].addr,
					    sizeof(peers[rank].addr));

		first_of[rank] = is_new ? rank : first_of[before];
		if (peers[rank].host != peers[first_of[rank]].host)
			return err_set(ERR_ARGUMENT,
				"ranks %u and %u have one address and are on two hosts",
				first_of[rank], rank);
	}
	return OK;
}

enum err roster_make(
	const struct control_peer *peers, uint32_t rank_count, struct roster *roster)
{
	struct roster made = {.rank_count = rank_count};
	uint32_t *sorted = malloc(rank_count * sizeof(*sorted));
	enum err e = OK;

	made.node_of = malloc(rank_count * sizeof(*made.node_of));
	made.first_rank = malloc(rank_count * sizeof(*made.first_rank));
	if (!sorted || !made.node_of || !made.first_rank)
		e = err_set(ERR_SYSTEM, "no memory to list %u ranks", rank_count);
	if (!e) {
		for (uint32_t rank = 0; rank < rank_count; rank++)
			sorted[rank] = rank;
		qsort_r(sorted, rank_count, sizeof(*sorted), rank_compare,
			(void *)(uintptr_t)peers);
		e = first_find(peers, rank_count, sorted, made.node_of);
	}
	for (uint32_t rank = 0; rank < rank_count && !e; rank++) {
		uint32_t first = made.node_of[rank];

		if (first == rank) {
			made.first_rank[made.node_count] = rank;
			made.node_of[rank] = made.node_count++;
		} else {
			made.node_of[rank] = made.node_of[first];
		}
	}
	free(sorted);
	if (e)
		roster_fini(&made);
	else
		*roster = made;
	return e;
}
