/*
 * oracle.h - runs lowered programs on real numbers, in many orders, and looks.
 *
 * It shares nothing with the checker: no clocks, no symbols. A move is atomic, the order
 * of lanes is random, and a rank that returns scribbles over its buffers at once, as a
 * caller may. A message between hosts is read when it is sent in some runs, and in the
 * others when it is taken. What is seen to go wrong here is wrong; what goes right here
 * may have been lucky.
 */
#ifndef TESTS_SCHED_ORACLE_H
#define TESTS_SCHED_ORACLE_H

#include "sched/check.h"
#include "test.h"

enum { ORACLE_TILES = 4 };

/* A message between hosts, and all of them from one rank to another over one lane. */
struct oracle_letter {
	const struct place *place;
	uint32_t position, tile, count;
	uint64_t *early; /* what it was when it was sent, or NULL: it is read late */
};

struct oracle_flow {
	struct oracle_letter *letters;
	uint32_t count, taken;
	uint64_t *inbox; /* the receiver's */
};

struct oracle {
	const struct sched *scheds;
	struct program *const *programs;
	const struct check_args *args;
	uint64_t seed;
	bool by_priority; /* always the first lane that can, in a random order of lanes */
	uint64_t **in, **out, **tmp, **stage,
		**result;			/* [rank][tile * chunks + chunk] */
	uint32_t *position, *announced, *order; /* [rank * SCHED_LANES_MAX + lane] */
	uint32_t *passed; /* waits of the current move, of the same lanes */
	bool *left;
	bool late; /* messages are read late */
	struct oracle_flow
		*flows; /* [(from * n + to) * SCHED_LANES_MAX + lane], or NULL */
	/* With a reference, sums round: the order of folding shows. What is found first
	 * is kept there, [tile * symbol_count + symbol], 0 for not yet, and must come
	 * again. */
	uint64_t *reference;
	uint32_t symbol_count;
};

static inline uint64_t oracle_random(struct oracle *o)
{
	o->seed += 0x9e3779b97f4a7c15u;
	uint64_t z = o->seed;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* Operators that show when they are left out or applied twice. */
static inline uint64_t oracle_pre(uint64_t x)
{
	return 5 * x + 7;
}

static inline uint64_t oracle_post(uint64_t x)
{
	return 3 * x + 1;
}

/* Commutative but, like floating-point addition, not associative. */
static inline uint64_t oracle_round(uint64_t x)
{
	x = (x ^ x >> 29) * 0xff51afd7ed558ccdu;
	return x ^ x >> 32;
}

static inline uint64_t oracle_input(uint32_t rank, uint32_t chunk, uint32_t tile)
{
	uint64_t x = (uint64_t)rank << 40 | (uint64_t)chunk << 20 | (tile + 1);
	x = (x ^ x >> 31) * 0x7fb5d329728ea185u;
	x = (x ^ x >> 27) * 0x81dadef4bc2dd44du;
	return x ^ x >> 33;
}

static inline uint64_t oracle_want(const struct sched *s, uint32_t chunk, uint32_t tile)
{
	uint64_t sum = 0;
	uint32_t at = s->coll == COLL_REDUCE_SCATTER ? s->rank : chunk;

	switch (s->coll) {
	case COLL_BROADCAST:
		return oracle_pre(oracle_input(s->root, chunk, tile));
	case COLL_ALL_GATHER:
	case COLL_GATHER:
		return oracle_pre(oracle_input(chunk, 0, tile));
	case COLL_ALL_TO_ALL:
		return oracle_pre(oracle_input(chunk, s->rank, tile));
	case COLL_SCATTER:
		return oracle_pre(oracle_input(s->root, s->rank, tile));
	default:
		break;
	}
	for (uint32_t r = 0; r < s->rank_count; r++)
		sum += oracle_pre(oracle_input(r, at, tile));
	return oracle_post(sum);
}

static inline uint64_t *oracle_room(struct oracle *o, size_t count)
{
	uint64_t *room = malloc((count + 1) * sizeof(*room));

	for (size_t i = 0; i < count; i++)
		room[i] = oracle_random(o);
	return room;
}

/* In place, IN and OUT of a rank are one array of the larger one's size. */
static inline bool oracle_shares(const struct oracle *o, uint32_t rank)
{
	return o->args->in_place && sched_chunks(&o->scheds[rank], SPACE_IN) &&
	       sched_chunks(&o->scheds[rank], SPACE_OUT);
}

static inline uint64_t *oracle_user(
	const struct oracle *o, uint32_t rank, bool in, uint32_t chunk, uint32_t tile)
{
	uint32_t ins = sched_chunks(&o->scheds[rank], SPACE_IN);
	uint32_t outs = sched_chunks(&o->scheds[rank], SPACE_OUT);
	uint32_t mine = in ? ins : outs, other = in ? outs : ins;

	if (!oracle_shares(o, rank))
		return &(in ? o->in : o->out)[rank][tile * mine + chunk];
	if (mine < other)
		return &o->out[rank][tile * other + chunk + rank];
	return &o->out[rank][tile * mine + chunk];
}

static inline struct oracle_flow *oracle_flow(
	const struct oracle *o, uint32_t from, uint32_t to, uint32_t lane)
{
	return &o->flows[(from * o->args->rank_count + to) * SCHED_LANES_MAX + lane];
}

/* As rank `me` sees it. */
static inline uint64_t *oracle_at(const struct oracle *o, const struct place *p,
	uint32_t me, uint32_t tile, uint32_t chunk)
{
	uint32_t slot;

	if (p->space == PLACE_IN || p->space == PLACE_OUT)
		return oracle_user(
			o, p->rank, p->space == PLACE_IN, p->chunk + chunk, tile);
	if (p->space == PLACE_TMP)
		return &o->tmp[p->rank][p->chunk + chunk];
	if (p->space == PLACE_INBOX || p->space == PLACE_INBOX_IN)
		return &oracle_flow(o, p->rank, me, p->lane)->inbox[chunk];
	slot = p->slot + (tile * p->period + p->chunk) % o->args->depth;
	return &o->stage[p->rank][slot * o->programs[0]->slot_chunks + chunk];
}

static inline void oracle_open(struct oracle *o)
{
	uint32_t n = o->args->rank_count;

	if (!o->args->hosts)
		return;
	o->flows = calloc((size_t)n * n * SCHED_LANES_MAX, sizeof(*o->flows));
	for (uint32_t i = 0; i < n * n * SCHED_LANES_MAX; i++)
		o->flows[i].inbox = oracle_room(o, o->programs[0]->inbox_chunks);
}

static inline void oracle_close(struct oracle *o)
{
	uint32_t n = o->args->rank_count;

	for (uint32_t i = 0; o->flows && i < n * n * SCHED_LANES_MAX; i++) {
		for (uint32_t k = 0; k < o->flows[i].count; k++)
			free(o->flows[i].letters[k].early);
		free(o->flows[i].letters);
		free(o->flows[i].inbox);
	}
	free(o->flows);
}

static inline void oracle_start(struct oracle *o)
{
	uint32_t n = o->args->rank_count;

	o->in = calloc(n, sizeof(*o->in));
	o->out = calloc(n, sizeof(*o->out));
	o->tmp = calloc(n, sizeof(*o->tmp));
	o->stage = calloc(n, sizeof(*o->stage));
	o->result = calloc(n, sizeof(*o->result));
	o->position = calloc((size_t)n * SCHED_LANES_MAX, sizeof(*o->position));
	o->announced = calloc((size_t)n * SCHED_LANES_MAX, sizeof(*o->announced));
	o->order = calloc((size_t)n * SCHED_LANES_MAX, sizeof(*o->order));
	o->left = calloc(n, sizeof(*o->left));
	o->passed = calloc((size_t)n * SCHED_LANES_MAX, sizeof(*o->passed));
	oracle_open(o);
	for (uint32_t r = 0; r < n; r++) {
		uint32_t ins = sched_chunks(&o->scheds[r], SPACE_IN);
		uint32_t outs = sched_chunks(&o->scheds[r], SPACE_OUT);
		uint32_t most = ins > outs ? ins : outs;

		o->in[r] = oracle_room(o, (size_t)most * ORACLE_TILES);
		o->out[r] = oracle_room(o, (size_t)most * ORACLE_TILES);
		o->result[r] = oracle_room(o, (size_t)most * ORACLE_TILES);
		o->tmp[r] = oracle_room(o, o->scheds[r].tmp_count);
		o->stage[r] = oracle_room(o,
			(size_t)o->programs[r]->slot_count * o->programs[r]->slot_chunks);
		for (uint32_t t = 0; t < ORACLE_TILES; t++)
			for (uint32_t c = 0; c < ins; c++)
				*oracle_user(o, r, true, c, t) = oracle_input(r, c, t);
	}
	for (uint32_t i = 0; i < n * SCHED_LANES_MAX; i++)
		o->order[i] = i;
	for (uint32_t i = n * SCHED_LANES_MAX - 1; i > 0; i--) {
		uint32_t j = (uint32_t)(oracle_random(o) % (i + 1)), was = o->order[i];

		o->order[i] = o->order[j];
		o->order[j] = was;
	}
}

static inline void oracle_end(struct oracle *o)
{
	for (uint32_t r = 0; r < o->args->rank_count; r++) {
		free(o->in[r]);
		free(o->out[r]);
		free(o->tmp[r]);
		free(o->stage[r]);
		free(o->result[r]);
	}
	free(o->in);
	free(o->out);
	free(o->tmp);
	free(o->stage);
	free(o->result);
	free(o->position);
	free(o->announced);
	free(o->order);
	free(o->left);
	free(o->passed);
	oracle_close(o);
}

static inline void oracle_send(
	struct oracle *o, const struct program *p, const struct move *m, uint32_t lane)
{
	uint32_t position = o->position[p->rank * SCHED_LANES_MAX + lane];
	uint32_t tile = position / p->lanes[lane].count;

	for (uint32_t i = 0; i < m->sent_count; i++) {
		const struct sent *sent = &p->sents[m->sent_first + i];
		struct oracle_flow *flow = oracle_flow(o, p->rank, sent->rank, lane);
		struct oracle_letter letter = {.place = &p->places[sent->place],
			.position = position + 1,
			.tile = tile,
			.count = m->count};

		if (!o->late)
			letter.early = malloc(m->count * sizeof(*letter.early));
		for (uint32_t c = 0; c < m->count && !o->late; c++)
			letter.early[c] = *oracle_at(o, letter.place, p->rank, tile, c);
		flow->letters = realloc(
			flow->letters, (flow->count + 1) * sizeof(*flow->letters));
		flow->letters[flow->count++] = letter;
	}
}

/* Take the next message, if it is there; a wrong one leaves the inbox as it was. */
static inline bool oracle_take(
	struct oracle *o, const struct program *p, const struct wait *w, uint32_t count)
{
	struct oracle_flow *flow = oracle_flow(o, w->rank, p->rank, w->lane);
	const struct oracle_letter *letter = &flow->letters[flow->taken];

	if (flow->taken == flow->count)
		return false;
	flow->taken++;
	if (letter->count != count || count > p->inbox_chunks)
		return true;
	for (uint32_t c = 0; c < count; c++)
		flow->inbox[c] = letter->early ? letter->early[c]
					       : *oracle_at(o, letter->place, w->rank,
							 letter->tile, c);
	return true;
}

static inline bool oracle_has_left(
	const struct oracle *o, uint32_t rank, const struct wait *w, uint32_t position)
{
	const struct oracle_flow *flow = oracle_flow(o, rank, w->rank, w->lane);

	return o->position[rank * SCHED_LANES_MAX + w->lane] >= position &&
	       (flow->taken == flow->count ||
		       flow->letters[flow->taken].position > position);
}

/* Must rank p->rank wait here? `count` chunks are what the move takes. */
static inline bool oracle_must_wait(struct oracle *o, const struct program *p,
	const struct wait *w, uint32_t tile, uint32_t count)
{
	const uint16_t *hosts = o->args->hosts;
	uint32_t rank = w->kind == WAIT_SENT ? p->rank : w->rank, position;

	if (w->back > tile)
		return false;
	position = (tile - w->back) * p->lengths[rank * SCHED_LANES_MAX + w->lane] +
		   w->position;
	if (w->kind == WAIT_SENT)
		return !oracle_has_left(o, p->rank, w, position);
	if (w->kind == WAIT_DATA && hosts && hosts[w->rank] != hosts[p->rank])
		return !oracle_take(o, p, w, count);
	return o->announced[w->rank * SCHED_LANES_MAX + w->lane] < position;
}

static inline bool oracle_move(struct oracle *o, uint32_t rank, uint32_t lane)
{
	const struct program *p = o->programs[rank];
	uint32_t *position = &o->position[rank * SCHED_LANES_MAX + lane];
	uint32_t *passed = &o->passed[rank * SCHED_LANES_MAX + lane], before = *passed;
	uint32_t length = lane < p->lane_count ? p->lanes[lane].count : 0;
	uint32_t tile = length ? *position / length : ORACLE_TILES;
	const struct move *m;

	if (tile == ORACLE_TILES)
		return false;
	m = &p->lanes[lane].moves[*position % length];
	for (; *passed < m->wait_count; ++*passed)
		if (oracle_must_wait(
			    o, p, &p->waits[m->wait_first + *passed], tile, m->count))
			return *passed != before; /* a message taken is progress */
	*passed = 0;
	for (uint32_t c = 0; m->output_count && c < m->count; c++) {
		uint64_t sum = 0;

		for (uint32_t i = 0; i < m->input_count; i++) {
			const struct place *place = &p->places[m->input_first + i];
			uint64_t x = *oracle_at(o, place, rank, tile, c);

			sum += place->space == PLACE_IN || place->space == PLACE_INBOX_IN
				       ? oracle_pre(x)
				       : x;
			if (o->reference && i)
				sum = oracle_round(sum);
		}
		if (m->op & OP_POST)
			sum = oracle_post(sum);
		for (uint32_t i = 0; i < m->output_count; i++)
			*oracle_at(
				o, &p->places[m->output_first + i], rank, tile, c) = sum;
	}
	oracle_send(o, p, m, lane);
	++*position;
	if (m->publish)
		o->announced[rank * SCHED_LANES_MAX + lane] = *position;
	return true;
}

static inline bool oracle_accepts(
	struct oracle *o, const struct sched *s, uint32_t chunk, uint32_t tile)
{
	uint64_t got = *oracle_user(o, s->rank, false, chunk, tile);
	uint32_t symbol = s->coll == COLL_REDUCE_SCATTER ? s->rank : chunk;
	uint64_t *first;

	if (!o->reference)
		return got == oracle_want(s, chunk, tile);
	first = &o->reference[tile * o->symbol_count + symbol];
	if (!*first)
		*first = got;
	return *first == got;
}

/* Return from the call on one rank, if it can: keep the result, scribble. */
static inline bool oracle_leave(struct oracle *o, uint32_t rank, bool *wrong)
{
	const struct program *p = o->programs[rank];
	const struct sched *s = &o->scheds[rank];
	uint32_t ins = sched_chunks(s, SPACE_IN), outs = sched_chunks(s, SPACE_OUT);

	if (o->left[rank])
		return false;
	for (uint32_t lane = 0; lane < p->lane_count; lane++)
		if (o->position[rank * SCHED_LANES_MAX + lane] <
			p->lanes[lane].count * ORACLE_TILES)
			return false;
	for (uint32_t i = 0; i < p->drain_count; i++)
		if (oracle_must_wait(
			    o, p, &p->waits[p->drain_first + i], ORACLE_TILES - 1, 0))
			return false;
	o->left[rank] = true;
	for (uint32_t t = 0; t < ORACLE_TILES; t++)
		for (uint32_t c = 0; c < outs; c++)
			if (!oracle_accepts(o, s, c, t))
				*wrong = true;
	for (uint32_t t = 0; t < ORACLE_TILES; t++)
		for (uint32_t c = 0; c < ins; c++) {
			if (!oracle_shares(o, rank) &&
				*oracle_user(o, rank, true, c, t) !=
					oracle_input(rank, c, t))
				*wrong = true;
			*oracle_user(o, rank, true, c, t) = oracle_random(o);
		}
	/* remember the scribble: nobody may write here after the return */
	for (uint32_t t = 0; t < ORACLE_TILES; t++)
		for (uint32_t c = 0; c < outs; c++)
			o->result[rank][t * outs + c] = *oracle_user(
				o, rank, false, c, t) = oracle_random(o);
	return true;
}

static inline bool oracle_was_disturbed(const struct oracle *o)
{
	for (uint32_t r = 0; r < o->args->rank_count; r++) {
		uint32_t outs = sched_chunks(&o->scheds[r], SPACE_OUT);

		for (uint32_t t = 0; t < ORACLE_TILES; t++)
			for (uint32_t c = 0; c < outs; c++)
				if (*oracle_user(o, r, false, c, t) !=
					o->result[r][t * outs + c])
					return true;
	}
	return false;
}

/* One run; true when the result is right on every rank. */
static inline bool oracle_run(struct oracle *o)
{
	uint32_t n = o->args->rank_count, lanes = n * SCHED_LANES_MAX, left = 0;
	bool wrong = false, moved = true;

	oracle_start(o);
	while (moved && !wrong && left < n) {
		uint32_t from = o->by_priority ? 0 : (uint32_t)(oracle_random(o) % lanes);

		moved = false;
		for (uint32_t i = 0; i < lanes && !moved; i++) {
			uint32_t at = o->order[(from + i) % lanes];
			uint32_t rank = at / SCHED_LANES_MAX;

			moved = oracle_move(o, rank, at % SCHED_LANES_MAX);
			if (!moved && oracle_leave(o, rank, &wrong)) {
				moved = true;
				left++;
			}
		}
	}
	wrong = wrong || left < n || oracle_was_disturbed(o);
	oracle_end(o);
	return !wrong;
}

/* Several orders; true when all went right. */
static inline bool oracle_is_right(const struct sched *scheds,
	struct program *const *programs, const struct check_args *args,
	uint32_t run_count)
{
	for (uint32_t i = 0; i < run_count; i++) {
		struct oracle o = {.scheds = scheds,
			.programs = programs,
			.args = args,
			.seed = i * 7919u,
			.by_priority = i % 2,
			.late = i % 3};

		if (!oracle_run(&o))
			return false;
	}
	return true;
}

#endif
