/*
 * hosts_alltoall.c - all_to_all between hosts: few messages for each pair of them.
 *
 * Every pair of ranks has a block to exchange; one message for each is as many as the
 * product of the ranks of two hosts. Here a driver sends another host, in one message,
 * the blocks of all ranks of its host for the ranks of its share there:
 *
 *   1  every rank gives each driver its blocks for the driver's share of each other host;
 *      the driver puts them side by side in TMP, rank after rank
 *   2  between the hosts
 *   3  the ranks of a host exchange their blocks for each other
 *   4  a driver puts what it received in its place, and gives the ranks that do not drive
 *      what it received for them
 *
 * A rank alone on its host needs no 1, and a driver that receives for itself alone needs
 * no 4: where the ranks of a host are neighbours, blocks are sent from IN, and received
 * into OUT.
 */
#include "sched/rounds.h"
#include "sched/writers.h"

struct exchange {
	struct crew *crew;
	bool from_in, to_out; /* of a driver: no part 1, no part 4 */
	uint32_t share;	      /* ranks of this host it receives for */
	uint32_t outgoing; /* first chunk of TMP for the host looked at: to be sent .. */
	uint32_t incoming; /* .. and received */
};

static uint32_t blocks_to(const struct crew *crew, uint32_t host)
{
	return crew->member_count * crew_share_size(crew, host, crew->member);
}

static uint32_t blocks_from(const struct exchange *x, uint32_t host)
{
	return sched_hosts_size(x->crew->hosts, host) * x->share;
}

static bool is_in_runs(const struct map *map)
{
	for (uint32_t inner = 0, first; inner < map->inner_count; inner++) {
		uint32_t count = map_count(map, inner, &first);

		if (count && map_run(map, first) < count)
			return false;
	}
	return true;
}

/* What a driver sends to each other host and receives from it, as if from IN and into
 * OUT; several ranks' blocks can only be in TMP. */
static void map_exchange(struct exchange *x)
{
	struct crew *crew = x->crew;
	struct map *in = &crew->compose.maps[SPACE_IN];
	struct map *out = &crew->compose.maps[SPACE_OUT];

	for (uint32_t g = 0; g < crew->hosts->host_count; g++) {
		bool other = g != crew->host;

		for (uint32_t m = 0; other && m < crew->member_count; m++)
			crew_share(crew, in, g, crew->member);
		for (uint32_t i = 0; other && i < blocks_from(x, g); i++)
			map_add(out, sched_hosts_rank(crew->hosts, g, i / x->share));
		map_end(in);
		map_end(out);
	}
}

/* Settle where the blocks of a driver stand. */
static void exchange_begin(struct exchange *x)
{
	struct crew *crew = x->crew;
	struct map *in = &crew->compose.maps[SPACE_IN];
	struct map *out = &crew->compose.maps[SPACE_OUT];

	x->share = crew_share_size(crew, crew->host, crew->member);
	map_exchange(x);
	in->space = SPACE_IN;
	out->space = SPACE_OUT;
	if (in->failed || out->failed)
		return;
	x->from_in = crew->member_count == 1 && is_in_runs(in);
	x->to_out = x->share == 1 && is_in_runs(out);
	if (!x->from_in) {
		map_to_scratch(in, 0);
		x->incoming = in->count;
	}
	crew->sched->tmp_count = x->incoming;
	if (!x->to_out) {
		map_to_scratch(out, x->incoming);
		crew->sched->tmp_count += out->count;
	}
}

/* One round of part 1 at a driver: the run `own` of its share, from every member. */
static void collect_run(struct exchange *x, const struct sched_line *own, uint32_t size)
{
	struct crew *crew = x->crew;
	struct line_run run = {.writer = &crew->writer};

	for (uint32_t m = 0; m < crew->member_count; m++) {
		struct sched_line line = {.op = IN_RECV | OUT_DST,
			.to = SPACE_TMP,
			.dst = x->outgoing + m * size,
			.count = own->count};

		if (m == crew->member) {
			line.op = IN_SRC | OUT_DST;
			line.src = own->src;
		} else {
			line.rx = crew_conn(crew, m);
		}
		run_add(&run, &line);
	}
	run_end(&run);
	x->outgoing += own->count;
}

/* Part 1 for one other host. */
static void collect(struct exchange *x, uint32_t host)
{
	struct crew *crew = x->crew;
	uint32_t first = x->outgoing;
	struct sched_line own;
	struct rounds rounds;

	rounds_begin(&rounds, crew, host, host + 1);
	for (; rounds_left(&rounds); rounds_next(&rounds)) {
		rounds_each_driver(
			&rounds, &(struct sched_line){.op = IN_SRC | OUT_SEND});
		if (crew->drives && rounds_run(&rounds, crew->member, &own))
			collect_run(x, &own, crew_share_size(crew, host, crew->member));
	}
	rounds_end(&rounds);
	x->outgoing = first + (crew->drives ? blocks_to(crew, host) : 0);
}

/* `line` once for each rank of a host: its block of OUT is written, or what is in TMP for
 * it is read, `step` after the one before. */
static void each_sender(
	struct crew *crew, uint32_t host, const struct sched_line *line, uint32_t step)
{
	struct line_run run = {.writer = &crew->writer};

	for (uint32_t s = 0; s < sched_hosts_size(crew->hosts, host); s++) {
		struct sched_line next = *line;

		next.src = line->src + s * step;
		next.dst = sched_hosts_rank(crew->hosts, host, s);
		run_add(&run, &next);
	}
	run_end(&run);
}

/* Part 4 for what came from one other host. */
static void deliver(struct exchange *x, uint32_t host)
{
	struct crew *crew = x->crew;

	if (!crew->drives) {
		each_sender(crew, host,
			&(struct sched_line){.op = IN_RECV | OUT_DST,
				.to = SPACE_OUT,
				.rx = crew_conn(crew, crew->member % crew->driver_count)},
			0);
		return;
	}
	if (x->to_out)
		return;
	for (uint32_t place = 1; place < x->share; place++)
		each_sender(crew, host,
			&(struct sched_line){.op = IN_SRC | OUT_SEND,
				.from = SPACE_TMP,
				.src = x->incoming + place,
				.tx = crew_conn(
					crew, crew->member + place * crew->driver_count)},
			x->share);
	each_sender(crew, host,
		&(struct sched_line){.op = IN_SRC | OUT_DST,
			.from = SPACE_TMP,
			.to = SPACE_OUT,
			.src = x->incoming},
		x->share);
	x->incoming += blocks_from(x, host);
}

void hosts_all_to_all(struct crew *crew)
{
	uint32_t host_count = crew->hosts->host_count, rank = crew->sched->rank;
	struct exchange x = {.crew = crew};

	crew_connect(crew, 0, crew->member_count);
	if (crew->drives)
		exchange_begin(&x);
	for (uint32_t g = 0; g < host_count && !x.from_in; g++)
		if (g != crew->host)
			collect(&x, g);
	crew_each_member(crew, SPACE_IN, &(struct sched_line){.op = IN_SRC | OUT_SEND});
	if (crew->drives)
		compose_between(&crew->compose);
	write_line(&crew->writer, 0,
		&(struct sched_line){.op = IN_SRC | OUT_DST,
			.to = SPACE_OUT,
			.src = rank,
			.dst = rank});
	crew_each_member(crew, SPACE_OUT,
		&(struct sched_line){.op = IN_RECV | OUT_DST, .to = SPACE_OUT});
	for (uint32_t g = 0; g < host_count; g++)
		if (g != crew->host)
			deliver(&x, g);
}
