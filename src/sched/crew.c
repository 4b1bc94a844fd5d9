#include "sched/crew.h"

#include <assert.h>
#include <stdlib.h>

uint32_t crew_rank(const struct crew *crew, uint32_t host, uint32_t member)
{
	const struct sched_hosts *hosts = crew->hosts;
	uint32_t root = crew->sched->root, seat = member;

	if (coll_has_root(crew->sched->coll) && hosts->host[root] == host) {
		if (!member)
			return root;
		if (member == hosts->local[root])
			seat = 0;
	}
	return sched_hosts_rank(hosts, host, seat);
}

bool crew_has_root(const struct crew *crew)
{
	return coll_has_root(crew->sched->coll) &&
	       crew->hosts->host[crew->sched->root] == crew->host;
}

static uint32_t member_of(const struct crew *crew)
{
	const struct sched *sched = crew->sched;
	uint32_t local = crew->hosts->local[sched->rank];

	if (!crew_has_root(crew))
		return local;
	if (sched->rank == sched->root)
		return 0;
	return local ? local : crew->hosts->local[sched->root];
}

/* The schedule between the hosts has the chunks and the lanes of all. */
static enum err between_write(struct crew *crew, enum err (*write)(struct sched *between))
{
	const struct sched *sched = crew->sched;

	crew->between = (struct sched){.coll = sched->coll,
		.rank_count = crew->hosts->host_count,
		.rank = crew->host};
	if (coll_has_root(sched->coll))
		crew->between.root = crew->hosts->host[sched->root];
	return write(&crew->between);
}

void crew_begin(struct crew *crew, struct sched *sched, enum drivers drivers,
	enum err (*write)(struct sched *between))
{
	const struct sched_hosts *hosts = sched->hosts;

	*crew = (struct crew){.sched = sched,
		.hosts = hosts,
		.host = hosts->host[sched->rank],
		.driver_count = drivers == DRIVERS_ONE ? 1 : hosts->local_min};
	crew->member = member_of(crew);
	crew->member_count = sched_hosts_size(hosts, crew->host);
	crew->drives = crew->member < crew->driver_count;
	crew->writer.error = between_write(crew, write);
	if (crew->writer.error)
		return;
	crew->writer = write_begin(sched,
		coll_is_vector(sched->coll)
			? crew->driver_count * crew->between.chunk_count
			: sched->rank_count,
		crew->between.lane_count);
	crew->drivers = calloc(hosts->host_count, sizeof(*crew->drivers));
	if (!crew->drivers)
		crew->writer.error = err_set(ERR_SYSTEM, "no memory for a schedule");
	for (uint32_t g = 0; g < hosts->host_count && crew->drives && crew->drivers; g++)
		crew->drivers[g] = (uint16_t)crew_rank(crew, g, crew->member);
	crew->compose = (struct compose){.writer = &crew->writer,
		.between = &crew->between,
		.drivers = crew->drivers};
	if (sched->chunk_count > UINT16_MAX)
		crew->writer.error = err_set(ERR_ARGUMENT,
			"%u drivers a host and %u hosts make %u chunks; 65535 can be "
			"numbered",
			crew->driver_count, hosts->host_count, sched->chunk_count);
	if (crew->member_count > PROG_PEERS_MAX)
		crew->writer.error = err_set(ERR_ARGUMENT,
			"a host of %u ranks; %d can be connected with each other",
			crew->member_count, PROG_PEERS_MAX);
}

enum err crew_end(struct crew *crew)
{
	sched_fini(&crew->between);
	compose_fini(&crew->compose);
	free(crew->drivers);
	return crew->writer.error;
}

void crew_connect(struct crew *crew, uint32_t lane, uint32_t count)
{
	struct prog *prog = &crew->sched->lanes[lane];

	assert(!prog->rx_count && !prog->tx_count);
	for (uint32_t i = 0; i < count; i++)
		if (i != crew->member) {
			prog_rx_new(prog, crew_rank(crew, crew->host, i));
			prog_tx_new(prog, crew_rank(crew, crew->host, i));
		}
}

void crew_connect_drivers(struct crew *crew)
{
	uint32_t count = crew->drives ? crew->member_count : crew->driver_count;

	for (uint32_t lane = 0; lane < crew->sched->lane_count; lane++)
		crew_connect(crew, lane, count);
}

uint32_t crew_conn(const struct crew *crew, uint32_t member)
{
	return member < crew->member ? member : member - 1;
}

uint32_t crew_share_size(const struct crew *crew, uint32_t host, uint32_t d)
{
	uint32_t size = sched_hosts_size(crew->hosts, host);

	return (size - d + crew->driver_count - 1) / crew->driver_count;
}

void crew_share(const struct crew *crew, struct map *map, uint32_t host, uint32_t d)
{
	uint32_t size = sched_hosts_size(crew->hosts, host);

	for (uint32_t i = d; i < size; i += crew->driver_count)
		map_add(map, sched_hosts_rank(crew->hosts, host, i));
}

uint32_t crew_block(const struct crew *crew, enum space space, uint32_t rank)
{
	return space == SPACE_TMP ? crew->hosts->local[rank] : rank;
}

void crew_each_member(struct crew *crew, enum space space, const struct sched_line *line)
{
	struct line_run run = {.writer = &crew->writer};

	for (uint32_t m = 0; m < crew->member_count; m++) {
		struct sched_line next = *line;

		if (m == crew->member)
			continue;
		next.src = next.dst = crew_block(
			crew, space, crew_rank(crew, crew->host, m));
		next.rx = next.tx = crew_conn(crew, m);
		run_add(&run, &next);
	}
	run_end(&run);
}

void crew_copy(struct crew *crew, const struct map *map, bool to_tmp)
{
	struct line_run run = {.writer = &crew->writer};

	for (uint32_t at = 0, count; (count = map_run(map, at)); at += count)
		run_add(&run, &(struct sched_line){.op = IN_SRC | OUT_DST,
				      .from = to_tmp ? map->space : SPACE_TMP,
				      .to = to_tmp ? SPACE_TMP : map->space,
				      .src = to_tmp ? map->chunks[at] : at,
				      .dst = to_tmp ? at : map->chunks[at],
				      .count = count});
	run_end(&run);
	if (map->failed)
		crew->writer.error = err_set(ERR_SYSTEM, "no memory for a schedule");
}
