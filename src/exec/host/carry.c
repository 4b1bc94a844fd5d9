#include "exec/host/carry.h"

#include <stdlib.h>
#include <string.h>

#include "base/param.h"
#include "exec/host/peers.h"
#include "exec/host/remote.h"

enum { UNDER_WAY = 8 /* as many as plugins take */ };

/* A line in one call. Messages are counted over all tiles; those of all channels go one
 * after the other, as one message of a wider channel would. */
struct carry_line {
	struct net_end *end; /* borrowed; NULL: not in this call yet */
	uint64_t asked, over;
	struct net_request requests[UNDER_WAY];
	bool has_bytes[UNDER_WAY];
};

struct carrier {
	uint64_t call;		  /* whose lines these are */
	uint32_t room;		  /* lines there is memory for */
	struct carry_line *lines; /* owned */
};

/* One message of a line. */
struct step_of {
	const struct haul_message *message;
	uint32_t channel, tile;
};

void carrier_free(struct carrier *carrier)
{
	if (carrier)
		free(carrier->lines);
	free(carrier);
}

static const struct host_carry *carry_of(const struct host_call *call)
{
	return call->spec->carry;
}

/* Channels that are this thread's: the one of its own number, and every so many-th after
 * it. */
static uint32_t channel_count(const struct host_call *call)
{
	uint32_t threads = call->plan->squad, first = call->engine->calls.share;

	return (carry_of(call)->shape.channels - first + threads - 1) / threads;
}

static uint32_t channel_at(const struct host_call *call, uint32_t index)
{
	return call->engine->calls.share + index * call->plan->squad;
}

static uint64_t line_total(const struct host_call *call, const struct haul_line *line)
{
	return (uint64_t)line->count * carry_of(call)->shape.tile_count *
	       channel_count(call);
}

static struct step_of step_at(
	const struct host_call *call, const struct haul_line *line, uint64_t number)
{
	uint32_t channels = channel_count(call);
	uint64_t message = number / channels;

	return (struct step_of){
		&carry_of(call)->list->messages[line->first + message % line->count],
		channel_at(call, (uint32_t)(number % channels)),
		(uint32_t)(message / line->count)};
}

static uint64_t *word_at(struct dev_word *words, uint32_t channel, uint32_t lane)
{
	return &words[channel * STEPS_LANES + lane].position;
}

/* Pairs with the release of a kernel, and the kernel's acquire with this. */
static uint64_t word_look(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static void word_raise(uint64_t *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static bool has_come_to(const struct carry_room *room, uint32_t rank, uint32_t channel,
	uint32_t lane, uint64_t moves)
{
	uint64_t now = word_look(word_at(room->ends[rank].words, channel, lane));

	return (int64_t)(now - (room->bases[channel] + moves)) >= 0;
}

/* Has this rank's lane retired so many moves? */
static bool is_reached(const struct host_call *call, const struct haul_line *line,
	uint32_t channel, uint64_t moves)
{
	return has_come_to(
		carry_of(call)->room, call->engine->rank, channel, line->lane, moves);
}

/* May the next message be asked for: is it there, or its slot free? */
static bool is_ready(const struct host_call *call, const struct haul_line *line,
	const struct step_of *step)
{
	const struct haul_message *message = step->message;
	uint64_t tile = step->tile;

	if (line->is_out)
		return is_reached(call, line, step->channel,
			tile * line->near_length + message->sent);
	return tile < message->back ||
	       is_reached(call, line, step->channel,
		       (tile - message->back) * line->near_length + message->free);
}

static enum err line_open(
	struct host_call *call, const struct haul_line *line, struct carry_line *run)
{
	if (run->end)
		return OK;
	return line->is_out ? remote_open_out(call, line->rank, line->lane, &run->end)
			    : remote_open_in(call, line->rank, line->lane, &run->end);
}

/* Chunk `part` of a message. */
static enum err part_ask(struct host_call *call, const struct haul_line *line,
	struct carry_line *run, const struct step_of *step, uint32_t part)
{
	const struct host_carry *carry = carry_of(call);
	const struct net_ops *net = wires_net(remote_wires(call->engine->remote));
	struct net_request *request = &run->requests[run->asked % UNDER_WAY];
	uint32_t rank = line->is_out ? call->engine->rank : line->rank;
	size_t bytes = haul_bytes(
		&carry->shape, step->message, step->channel, step->tile, part);
	char *at = carry->room->ends[rank].stage +
		   haul_at(&carry->shape, step->message, step->channel, step->tile, part);

	if (!bytes)
		return OK;
	if (carry->room->gpu)
		wires_in_gpu(run->end, carry->room->gpu);
	return line->is_out ? net->send(run->end, at, bytes, request)
			    : net->recv(run->end, at, bytes, request);
}

static bool is_empty(const struct host_carry *carry, const struct step_of *step)
{
	for (uint32_t part = 0; part < step->message->count; part++)
		if (haul_bytes(&carry->shape, step->message, step->channel, step->tile,
			    part))
			return false;
	return true;
}

/* What is empty does not travel, nor does what the call is before it: that would be left
 * under way when the call is over. */
static enum err step_ask(struct host_call *call, const struct haul_line *line,
	struct carry_line *run, const struct step_of *step)
{
	bool has_bytes = !is_empty(carry_of(call), step);
	enum err e = has_bytes ? line_open(call, line, run) : OK;

	for (uint32_t part = 0; has_bytes && part < step->message->count && !e; part++)
		e = part_ask(call, line, run, step, part);
	run->has_bytes[run->asked % UNDER_WAY] = has_bytes;
	run->asked += !e;
	return e;
}

static enum err line_ask(
	struct host_call *call, const struct haul_line *line, struct carry_line *run)
{
	uint64_t total = line_total(call, line);
	enum err e = OK;

	while (!e && run->asked < total && run->asked - run->over < UNDER_WAY) {
		struct step_of step = step_at(call, line, run->asked);

		if (!is_ready(call, line, &step))
			return OK;
		e = step_ask(call, line, run, &step);
	}
	return e == ERR_AGAIN ? OK : e;
}

/* The receiver's kernel may read it, or the sender's fill its slot again. */
static void step_tell(const struct host_call *call, const struct haul_line *line,
	const struct step_of *step)
{
	const struct carry_room *room = carry_of(call)->room;
	const struct carry_end *end = &room->ends[line->rank];
	uint64_t moves = line->is_out ? step->message->taken : step->message->sent;

	word_raise(
		word_at(line->is_out ? end->acks : end->words, step->channel, line->lane),
		room->bases[step->channel] + (uint64_t)step->tile * line->far_length +
			moves);
}

static enum err line_look(
	struct host_call *call, const struct haul_line *line, struct carry_line *run)
{
	const struct net_ops *net = wires_net(remote_wires(call->engine->remote));

	while (run->over < run->asked) {
		struct step_of step = step_at(call, line, run->over);
		uint32_t at = (uint32_t)(run->over % UNDER_WAY);
		enum err e = run->has_bytes[at] ? net->test(&run->requests[at], 0) : OK;

		if (e)
			return e == ERR_AGAIN ? OK : e;
		step_tell(call, line, &step);
		run->over++;
		call->lanes[0].move++; /* progress, see host_call_stamp() */
		if (!line->is_out)
			remote_note_come(call->engine->remote, line->rank, line->lane);
	}
	return OK;
}

/* ---- the call ---- */

static enum err lines_make(struct host_call *call)
{
	struct carrier **carrier = remote_carrier(call->engine->remote);
	uint32_t count = carry_of(call)->list->line_count;
	struct carry_line *lines;

	if (!*carrier)
		*carrier = calloc(1, sizeof(**carrier));
	if (!*carrier)
		return err_set(ERR_SYSTEM, "no memory to carry messages");
	if ((*carrier)->room < count) {
		lines = realloc((*carrier)->lines, count * sizeof(*lines));
		if (!lines)
			return err_set(ERR_SYSTEM, "no memory to carry messages");
		(*carrier)->lines = lines;
		(*carrier)->room = count;
	}
	if (count)
		memset((*carrier)->lines, 0, count * sizeof(*lines));
	(*carrier)->call = call->number;
	return OK;
}

/* A kernel of this host's says so when it begins. */
static bool has_begun(const struct host_call *call, uint32_t rank)
{
	const struct carry_room *room = carry_of(call)->room;
	const struct dev_word *word = room->ends[rank].words;

	return (int64_t)(word_look(&word->cleaned) - (room->bases[0] + 1)) >= 0;
}

/* A rank of this host whose stream has not come to its kernel; this rank's own when there
 * is none. */
static uint32_t late_near(const struct host_call *call)
{
	const struct host_engine *engine = call->engine;

	for (uint32_t i = 0; i < engine->peers->local_count; i++)
		if (!has_begun(call, engine->peers->locals[i]))
			return engine->peers->locals[i];
	return engine->rank;
}

static bool has_ended(const struct host_call *call)
{
	const struct host_carry *carry = carry_of(call);

	for (uint32_t i = 0; i < channel_count(call); i++)
		for (uint32_t lane = 0; lane < STEPS_LANES; lane++)
			if (!has_come_to(carry->room, call->engine->rank,
				    channel_at(call, i), lane, carry->shape.span))
				return false;
	return true;
}

/* All ranks are as far as this one: the next call's kernel may begin on this channel. */
static void channel_end(const struct host_call *call, uint32_t channel)
{
	const struct host_carry *carry = carry_of(call);
	const struct carry_room *room = carry->room;
	uint64_t base = room->bases[channel] + carry->shape.span;

	for (uint32_t r = 0; r < call->engine->rank_count; r++)
		for (uint32_t lane = 0; lane < STEPS_LANES && room->ends[r].acks;
			lane++) {
			word_raise(word_at(room->ends[r].words, channel, lane), base);
			word_raise(word_at(room->ends[r].acks, channel, lane), base);
		}
}

/* Who has not sent, or does not take. False: nobody. The positions of a rank that is in
 * the call are not waited for, since no note may say that it has not done what may be on
 * its way. */
static bool lines_wait(struct host_call *call)
{
	const struct haul_list *list = carry_of(call)->list;
	const struct carry_line *runs = (*remote_carrier(call->engine->remote))->lines;
	bool is_found = false;

	for (uint32_t i = 0; i < list->line_count; i++) {
		const struct haul_line *line = &list->lines[i];

		if (runs[i].asked == runs[i].over &&
			(line->is_out || runs[i].end || !line->count))
			continue;
		if (line->is_out && is_found)
			continue;
		if (!line->is_out && runs[i].over == line_total(call, line))
			continue;
		host_call_block(call, line->rank, line->lane, call->base);
		call->blocked.is_leaving = line->is_out;
		is_found = true;
	}
	return is_found;
}

/* What this rank waits for: its own streams until they come to its kernel; then a rank of
 * this host whose streams hold ours up; then others; else its own GPU. */
static void call_waits(struct host_call *call)
{
	const struct host_engine *engine = call->engine;
	bool has_come = has_begun(call, engine->rank);
	uint32_t late = has_come ? late_near(call) : engine->rank;

	if (late != engine->rank)
		host_call_block(call, late, 0, call->base);
	call->blocked.awaits_tide = late == engine->rank &&
				    (!has_come || !lines_wait(call));
}

static enum err lines_step(struct host_call *call, bool *are_over)
{
	const struct haul_list *list = carry_of(call)->list;
	struct carrier *carrier = *remote_carrier(call->engine->remote);

	*are_over = true;
	for (uint32_t i = 0; i < list->line_count; i++) {
		const struct haul_line *line = &list->lines[i];
		struct carry_line *run = &carrier->lines[i];
		enum err e = line_look(call, line, run);

		if (!e)
			e = line_ask(call, line, run);
		if (e && !call->error)
			call->error = host_blame_wire(call->engine, line->rank, e);
		if (call->error)
			return call->error;
		*are_over = *are_over && run->over == line_total(call, line);
	}
	return OK;
}

static enum err call_carry(struct host_call *call)
{
	struct carrier *carrier = *remote_carrier(call->engine->remote);
	bool are_over = false;
	enum err e = carrier && carrier->call == call->number ? OK : lines_make(call);

	if (!e)
		e = lines_step(call, &are_over);
	if (!e && are_over && has_ended(call)) {
		for (uint32_t i = 0; i < channel_count(call); i++)
			channel_end(call, channel_at(call, i));
		call->blocked.awaits_tide = false;
		return OK;
	}
	if (!e)
		call_waits(call);
	return e ? e : ERR_AGAIN;
}

void carry_arrive(struct host_call *call)
{
	struct card *card = peer_card(
		call->engine->peers, call->engine->rank, call->number);

	call->origin = call->base;
	for (uint32_t lane = 0; lane < BOARD_LANES; lane++)
		word_publish(&card->position[lane], &card->sleepers, call->base);
	call->phase = PHASE_ARRIVE;
}

/* The others of this host need nothing more of this thread when it says that it is over.
 */
enum err carry_step(struct host_call *call)
{
	struct card *card = peer_card(
		call->engine->peers, call->engine->rank, call->number);
	enum err e = call_carry(call);

	if (!e && !call->error)
		word_publish(&card->position[0], &card->sleepers, call->base + 1);
	return e;
}

void carry_end(const struct host_call *call)
{
	const struct host_carry *carry = carry_of(call);

	for (uint32_t i = 0; !call->engine->calls.share && i < carry->shape.channels; i++)
		carry->room->bases[i] += carry->shape.span;
}

static bool is_heard(
	const struct host_call *call, const struct haul_line *line, uint32_t rank)
{
	const struct host_engine *engine = call->engine;

	if (!health_has_left(engine->health, rank))
		return false;
	return line->is_out ? remote_is_patient(engine, rank)
			    : remote_is_heard(engine, rank, line->lane);
}

bool carry_needs(const struct host_call *call, uint32_t rank)
{
	const struct haul_list *list = carry_of(call)->list;
	const struct carrier *carrier = *remote_carrier(call->engine->remote);
	bool are_made = carrier && carrier->call == call->number;

	if (peer_is_local(call->engine->peers, rank)) {
		const struct card *card = peer_card(
			call->engine->peers, rank, call->number);

		return !position_reached(atomic_load(&card->position[0]), call->base + 1);
	}
	for (uint32_t i = 0; i < list->line_count; i++) {
		const struct haul_line *line = &list->lines[i];

		if (line->rank == rank &&
			!(are_made && carrier->lines[i].over == line_total(call, line)) &&
			!is_heard(call, line, rank))
			return true;
	}
	return false;
}
