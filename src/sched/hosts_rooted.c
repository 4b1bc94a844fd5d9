/*
 * hosts_rooted.c - gather and scatter between hosts: one message for each host.
 *
 * One rank of each host collects, or deals out, the blocks of all its ranks; on the
 * root's host that is the root itself. A host's blocks lie in the order of their ranks,
 * in scratch or in the root's buffer; where the root's do not lie side by side, it has
 * them in scratch, too.
 */
#include "sched/writers.h"

/* The blocks of all hosts but this one, an inner chunk each. */
static void map_others(struct crew *crew, struct map *map, enum space space)
{
	map->space = space;
	for (uint32_t g = 0; g < crew->hosts->host_count; g++) {
		if (g != crew->host)
			crew_share(crew, map, g, 0);
		map_end(map);
	}
}

/* The root's own host has nothing to do with the schedule between the hosts. Its blocks
 * of the others stand in `space`, or in TMP: then `blocks` tells where they belong. */
static void root_maps(struct crew *crew, enum space space, struct map *blocks)
{
	struct map *many = &crew->compose.maps[space];
	struct map *one = &crew->compose.maps[space == SPACE_IN ? SPACE_OUT : SPACE_IN];

	map_others(crew, many, space);
	map_end(one);
	if (compose_is_whole(&crew->compose))
		return;
	map_others(crew, blocks, space);
	map_to_scratch(many, 0);
	crew->sched->tmp_count = many->count;
}

/* A host that is not the root's: its blocks stand in TMP, or a lone rank's in `space`. */
static enum space leaf_maps(struct crew *crew, enum space space)
{
	struct map *map = &crew->compose.maps[space];

	if (crew->member_count == 1) {
		map_slice(map, space, 0, 1);
		return space;
	}
	crew_share(crew, map, crew->host, 0);
	map_end(map);
	map_to_scratch(map, 0);
	crew->sched->tmp_count = crew->member_count;
	return SPACE_TMP;
}

static void root_gather(struct crew *crew)
{
	struct map blocks = {.space = SPACE_OUT};

	root_maps(crew, SPACE_OUT, &blocks);
	write_line(&crew->writer, 0,
		&(struct sched_line){.op = IN_SRC | OUT_DST,
			.to = SPACE_OUT,
			.dst = crew->sched->rank});
	crew_each_member(crew, SPACE_OUT,
		&(struct sched_line){.op = IN_RECV | OUT_DST, .to = SPACE_OUT});
	compose_between(&crew->compose);
	crew_copy(crew, &blocks, false);
	map_fini(&blocks);
}

static void leaf_gather(struct crew *crew)
{
	if (leaf_maps(crew, SPACE_IN) == SPACE_TMP) {
		write_line(&crew->writer, 0,
			&(struct sched_line){.op = IN_SRC | OUT_DST,
				.to = SPACE_TMP,
				.dst = crew_block(crew, SPACE_TMP, crew->sched->rank)});
		crew_each_member(crew, SPACE_TMP,
			&(struct sched_line){.op = IN_RECV | OUT_DST, .to = SPACE_TMP});
	}
	compose_between(&crew->compose);
}

void hosts_gather(struct crew *crew)
{
	crew_connect_drivers(crew);
	if (crew->sched->rank == crew->sched->root)
		root_gather(crew);
	else if (crew->drives)
		leaf_gather(crew);
	else
		write_line(&crew->writer, 0,
			&(struct sched_line){.op = IN_SRC | OUT_SEND,
				.tx = crew_conn(crew, 0),
				.push = true});
}

/* A host's blocks are dealt out: they stand in `space`. */
static void deal(struct crew *crew, enum space space)
{
	crew_each_member(crew, space,
		&(struct sched_line){.op = IN_SRC | OUT_SEND, .from = space});
	write_line(&crew->writer, 0,
		&(struct sched_line){.op = IN_SRC | OUT_DST,
			.from = space,
			.to = SPACE_OUT,
			.src = crew_block(crew, space, crew->sched->rank)});
}

void hosts_scatter(struct crew *crew)
{
	struct map blocks = {.space = SPACE_IN};

	crew_connect_drivers(crew);
	if (crew->sched->rank == crew->sched->root) {
		root_maps(crew, SPACE_IN, &blocks);
		crew_copy(crew, &blocks, true);
		map_fini(&blocks);
		compose_between(&crew->compose);
		deal(crew, SPACE_IN);
	} else if (crew->drives) {
		enum space space = leaf_maps(crew, SPACE_OUT);

		compose_between(&crew->compose);
		if (space == SPACE_TMP)
			deal(crew, SPACE_TMP);
	} else {
		write_line(&crew->writer, 0,
			&(struct sched_line){.op = IN_RECV | OUT_DST,
				.to = SPACE_OUT,
				.rx = crew_conn(crew, 0)});
	}
}
