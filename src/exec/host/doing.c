#include "exec/host/doing.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "exec/host/remote.h"
#include "exec/host/sign.h"
#include "exec/host/state.h"
#include "link/wires.h"

enum { FAR_TELL_MS = 30 };

static bool is_same(const struct doing *a, const struct doing *b)
{
	return a->kind == b->kind && a->rank == b->rank && a->number == b->number &&
	       a->want == b->want && a->lane == b->lane && a->jobs == b->jobs &&
	       a->colls == b->colls;
}

/* All but the serial. Word by word, because another thread may be at it: what a reader
 * gets is then of two notes, which the serial tells. */
static void note_copy(struct doing *to, const struct doing *from)
{
	typedef uint32_t __attribute__((may_alias)) word;
	const word *source = (const word *)from;
	word *target = (word *)to;

	for (size_t i = sizeof(from->serial) / sizeof(word);
		i < sizeof(*from) / sizeof(word); i++)
		__atomic_store_n(&target[i],
			__atomic_load_n(&source[i], __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

/* Pairs with doing_read(): the serial is odd while the rest changes. */
void doing_write(struct doing *note, const struct doing *doing)
{
	uint32_t serial = atomic_load_explicit(&note->serial, memory_order_relaxed) + 1;

	atomic_store_explicit(&note->serial, serial, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	note_copy(note, doing);
	atomic_store_explicit(&note->serial, serial + 1, memory_order_release);
}

static struct doing *own_note(const struct host_engine *engine)
{
	return &peer_status(engine->peers, engine->rank)->doing;
}

void doing_tell(struct host_engine *engine, const struct doing *doing)
{
	struct doing *note = own_note(engine), fresh = *doing;

	if (engine->notes.has_told && is_same(note, doing))
		return;
	engine->notes.has_told = true;
	if (!++engine->notes.wait_count)
		engine->notes.wait_count++;
	fresh.wait_id = engine->notes.wait_count;
	doing_write(note, &fresh);
}

static uint32_t note_serial(const struct host_engine *engine)
{
	return atomic_load_explicit(&own_note(engine)->serial, memory_order_relaxed);
}

/* The more there are, the later: that keeps what is told in bounds. */
void doing_tell_far(struct host_engine *engine, const struct doing *doing)
{
	uint64_t patience = (FAR_TELL_MS + engine->rank_count) * CLOCK_MS;

	if (!engine->far.note || !engine->notes.has_told ||
		engine->notes.told == note_serial(engine) ||
		clock_ns() - doing->since_ns < patience)
		return;
	engine->notes.told = note_serial(engine);
	engine->far.note(engine->far.arg);
}

void doing_end(struct host_engine *engine)
{
	static const struct doing nothing;

	if (!engine->notes.has_told)
		return;
	engine->notes.has_told = false;
	doing_write(own_note(engine), &nothing);
	if (engine->notes.told)
		engine->far.note(engine->far.arg);
	engine->notes.told = 0;
}

bool doing_is_sound(const struct peers *peers, const struct doing *doing)
{
	uint32_t lanes = doing->kind == DOING_COLL     ? BOARD_LANES
			 : doing->kind == DOING_SIGNAL ? peers->board->signal_count
						       : UINT32_MAX;

	return doing->kind < DOING_KINDS && doing->rank < peers->rank_count &&
	       doing->lane < lanes;
}

bool doing_read(const struct peers *peers, uint32_t rank, struct doing *doing)
{
	const struct doing *note = &peer_status(peers, rank)->doing;
	uint32_t serial = atomic_load_explicit(&note->serial, memory_order_acquire);

	note_copy(doing, note);
	atomic_init(&doing->serial, serial);
	atomic_thread_fence(memory_order_acquire);
	return !(serial & 1) && doing->kind != DOING_NOTHING &&
	       doing_is_sound(peers, doing) &&
	       atomic_load_explicit(&note->serial, memory_order_relaxed) == serial;
}

void doing_print(const struct doing *doing, char text[DOING_TEXT_BYTES])
{
	unsigned long amount = (unsigned long)doing->sign.count;
	char sign[SIGN_TEXT_BYTES];

	switch (doing->kind) {
	case DOING_COLL:
		sign_print(&doing->sign, sign);
		snprintf(text, DOING_TEXT_BYTES, "%s (call %lu)", sign,
			(unsigned long)doing->number);
		break;
	case DOING_SEND:
		snprintf(text, DOING_TEXT_BYTES, "send of %lu bytes to rank %u", amount,
			doing->rank);
		break;
	case DOING_RECV:
		snprintf(text, DOING_TEXT_BYTES, "receive of %lu bytes from rank %u",
			amount, doing->rank);
		break;
	case DOING_PUT:
		snprintf(text, DOING_TEXT_BYTES, "put of %lu bytes to rank %u", amount,
			doing->rank);
		break;
	default:
		snprintf(text, DOING_TEXT_BYTES, "wait for %lu signals of rank %u",
			amount, doing->rank);
	}
}

/* ---- circles ---- */

static bool is_p2p(const struct doing *doing)
{
	return doing->kind != DOING_COLL;
}

/* Who waits has made the pair before: where it cannot be looked at, nothing is said. */
bool doing_holds(const struct peers *peers, uint32_t rank, const struct doing *doing)
{
	const struct pair_room *pair;

	/* of what passes between two hosts there is nothing to be seen from outside */
	if (!peer_is_local(peers, rank) || !peer_is_local(peers, doing->rank))
		return true;
	switch (doing->kind) {
	case DOING_COLL:
		return !position_reached(atomic_load(&peer_card(peers, doing->rank,
						 doing->want >> BOARD_CALL_SHIFT)
							      ->position[doing->lane]),
			doing->want);
	case DOING_SEND:
		pair = peer_pair_find(peers, rank, doing->rank);
		return pair && atomic_load(&pair->box.taken) == doing->number &&
		       !atomic_load(&pair->box.refused);
	case DOING_RECV:
		pair = peer_pair_find(peers, doing->rank, rank);
		return pair && atomic_load(&pair->box.posted) == doing->number;
	default:
		pair = peer_pair_find(peers, doing->rank, rank);
		return pair &&
		       !position_reached(atomic_load(&pair->signals[doing->lane].given),
			       doing->want);
	}
}

/* Rank `x` waits for rank `y`, which is blocked itself: could y still do it before its
 * own wait is over? Only what runs side by side with that can. */
static bool is_held_up(uint32_t x, const struct doing *of_x, const struct doing *of_y)
{
	uint32_t p2ps = of_y->jobs - of_y->colls;

	if (of_x->kind == DOING_PUT)
		return false;
	if (!is_p2p(of_x))
		return !of_y->colls || !is_p2p(of_y);
	if (!p2ps)
		return true;
	if (of_y->jobs > 1)
		return false; /* the one we wait for may be among them */
	return of_y->rank != x ||
	       !((of_x->kind == DOING_SEND && of_y->kind == DOING_RECV) ||
		       (of_x->kind == DOING_RECV && of_y->kind == DOING_SEND));
}

enum { CIRCLE_MAX = 16 };

struct circle {
	uint32_t count;
	uint32_t ranks[CIRCLE_MAX];
	struct doing doings[CIRCLE_MAX];
};

/* From this rank on, who waits for whom until it comes back here. */
static bool circle_find(const struct peers *peers, uint32_t start, struct circle *circle)
{
	uint32_t rank = start;

	for (circle->count = 0; circle->count < CIRCLE_MAX; circle->count++) {
		struct doing *doing = &circle->doings[circle->count];

		if (circle->count && rank == start)
			return true;
		if (!doing_read(peers, rank, doing))
			return false;
		if (circle->count &&
			!is_held_up(circle->ranks[circle->count - 1], doing - 1, doing))
			return false;
		circle->ranks[circle->count] = rank;
		rank = doing->rank;
	}
	return false;
}

/* What a rank of another host waits for in `theirs` has not been done by this one, which
 * is blocked in `mine`. */
static bool is_owed(const struct host_engine *engine, const struct doing *mine,
	uint32_t rank, const struct doing *theirs)
{
	switch (theirs->kind) {
	case DOING_COLL:
		if (engine->calls.number < theirs->number)
			return true;
		return !theirs->is_leaving && mine->kind == DOING_COLL &&
		       mine->number == theirs->number &&
		       mine->moves_done[theirs->lane] < theirs->moves_want;
	case DOING_SEND: /* what it has sent before may not have been taken, either */
		return engine->letters.taken[rank] <= theirs->number;
	case DOING_RECV:
		return engine->letters.posted[rank] == theirs->number;
	default:
		return !position_reached(
			engine->signals.given[rank * engine->peers->board->signal_count +
					      theirs->lane],
			theirs->want);
	}
}

/*
 * Does member i of the circle wait for what the next one has not done? On this host the
 * board shows it. Of others, and for the sake of others, each rank says it of the one
 * before it, in its own note: it vouches.
 *
 * Notes of other hosts are old when they are read, and yet this is enough. Each note says
 * of one moment: I was blocked until the next does something, and had not done what the
 * one before waits for. Suppose somebody went on after the moment of its note, and take
 * the first who did. Then the next had done what it waited for, and had to go on before
 * that. So nobody did.
 */
static bool link_holds(struct host_engine *engine, const struct doing *mine,
	const struct circle *circle, uint32_t i)
{
	const struct peers *peers = engine->peers;
	uint32_t next = i + 1 < circle->count ? i + 1 : 0;
	const struct doing *waiter = &circle->doings[i], *owes = &circle->doings[next];

	if (peer_is_local(peers, circle->ranks[i]) &&
		peer_is_local(peers, circle->ranks[next]))
		return doing_holds(peers, circle->ranks[i], waiter);
	if (!next)
		return is_owed(engine, mine, circle->ranks[i], waiter);
	return owes->vouched_wait == waiter->wait_id &&
	       owes->vouched_rank == circle->ranks[i];
}

static bool is_circle_far(const struct peers *peers, const struct circle *circle)
{
	for (uint32_t i = 0; i < circle->count; i++)
		if (!peer_is_local(peers, circle->ranks[i]))
			return true;
	return false;
}

/* The last of the circle waits for this rank, which has not done it: say so. */
static void vouch(struct host_engine *engine, const struct circle *circle)
{
	struct doing note = circle->doings[0];

	note.vouched_rank = circle->ranks[circle->count - 1];
	note.vouched_wait = circle->doings[circle->count - 1].wait_id;
	if (note.vouched_rank != circle->doings[0].vouched_rank ||
		note.vouched_wait != circle->doings[0].vouched_wait)
		doing_write(own_note(engine), &note);
}

static bool has_p2p(const struct circle *circle)
{
	for (uint32_t i = 0; i < circle->count; i++)
		if (is_p2p(&circle->doings[i]))
			return true;
	return false;
}

/* Is this rank in a circle at all, as far as it knows itself? */
static bool is_in_circle(
	struct host_engine *engine, const struct doing *mine, const struct circle *circle)
{
	uint32_t last = circle->count - 1;

	return has_p2p(circle) &&
	       is_held_up(
		       circle->ranks[last], &circle->doings[last], &circle->doings[0]) &&
	       link_holds(engine, mine, circle, last);
}

/* All of it at one moment: each note is the one that was read, and what it waits for is
 * missing. Then nobody in the circle can have moved in between. */
static bool circle_holds(
	struct host_engine *engine, const struct doing *mine, const struct circle *circle)
{
	for (uint32_t i = 0; i + 1 < circle->count; i++)
		if (!link_holds(engine, mine, circle, i))
			return false;
	for (uint32_t i = 0; i < circle->count; i++)
		if (atomic_load(&peer_status(engine->peers, circle->ranks[i])
					 ->doing.serial) != circle->doings[i].serial)
			return false;
	return true;
}

enum err doing_circle_check(struct host_engine *engine, const struct doing *mine)
{
	struct circle circle;
	char text[DOING_TEXT_BYTES], sentence[ERR_TEXT_BYTES] = "";
	size_t used = 0;

	if (!engine->notes.has_told ||
		!circle_find(engine->peers, engine->rank, &circle) ||
		!is_in_circle(engine, mine, &circle))
		return OK;
	if (is_circle_far(engine->peers, &circle))
		vouch(engine, &circle);
	if (!circle_holds(engine, mine, &circle))
		return OK;
	for (uint32_t i = 0; i < circle.count && used < sizeof(sentence); i++) {
		doing_print(&circle.doings[i], text);
		used += (size_t)snprintf(sentence + used, sizeof(sentence) - used,
			"%srank %u is in %s and waits for rank %u", i ? ", " : "",
			circle.ranks[i], text, circle.doings[i].rank);
	}
	engine->culprit = circle.doings[0].rank;
	return err_set(ERR_USAGE, "%s: these calls do not match", sentence);
}

/* ---- who is missing ---- */

uint32_t doing_cause(const struct peers *peers, const struct doing *doing)
{
	const struct rank_status *status;
	struct doing next = *doing;
	uint32_t rank = doing->rank;

	/* as long as they wait themselves; a circle ends it, too */
	for (uint32_t i = 0; i < peers->rank_count; i++) {
		if (!doing_read(peers, rank, &next) || !doing_holds(peers, rank, &next) ||
			next.rank == rank)
			break;
		rank = next.rank;
	}
	/* one that has given up already says whom it had waited for */
	status = peer_status(peers, rank);
	if (atomic_load(&status->state) == RANK_FAILED &&
		atomic_load(&status->culprit) < peers->rank_count)
		rank = atomic_load(&status->culprit);
	return rank;
}

uint64_t doing_last(const struct peers *peers, uint32_t rank, struct call_sign *sign)
{
	uint64_t last = 0;

	for (uint32_t i = 0; i < BOARD_CARDS; i++) {
		const struct card *card = peer_card(peers, rank, i);

		for (uint32_t lane = 0; lane < BOARD_LANES; lane++) {
			uint64_t number = atomic_load(&card->position[lane]) >>
					  BOARD_CALL_SHIFT;

			if (number > last) {
				last = number;
				*sign = card->sign;
			}
		}
	}
	return last;
}

const char *doing_process(uint32_t pid)
{
	char path[64], line[512], state = 0;
	const char *end;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return "not to be seen in /proc";
	if (fgets(line, sizeof(line), file) && (end = strrchr(line, ')')))
		state = end[1] ? end[2] : 0;
	fclose(file);
	switch (state) {
	case 'T':
		return "stopped by a signal";
	case 't':
		return "stopped by a debugger";
	case 'D':
		return "waiting in the kernel for a device or for memory";
	case 'Z':
	case 'X':
		return "ended";
	default:
		return "";
	}
}

/* Puts and signals do not go by the wires. */
static void doing_way_onesided(
	const struct host_engine *engine, char text[DOING_WAY_BYTES])
{
	const struct host_port *port = engine->far.port;
	const char *name = port ? port->name(engine->far.arg) : NULL;

	if (name)
		snprintf(text, DOING_WAY_BYTES, " by the one-sided plugin %.64s", name);
}

void doing_way(const struct host_engine *engine, const struct doing *doing,
	char text[DOING_WAY_BYTES])
{
	const struct wires *wires = engine->remote ? remote_wires(engine->remote) : NULL;
	uint32_t rank = doing->rank;

	text[0] = '\0';
	if (doing->kind == DOING_PUT || doing->kind == DOING_SIGNAL) {
		if (!peer_is_local(engine->peers, rank))
			doing_way_onesided(engine, text);
		return;
	}
	if (wires && wires_plugin(wires) && !peer_is_local(engine->peers, rank))
		snprintf(text, DOING_WAY_BYTES, " by the network plugin %.64s",
			wires_name(wires));
}

void doing_warn(const struct host_engine *engine, const struct doing *doing)
{
	const struct rank_status *status = peer_status(engine->peers, doing->rank);
	char place[PEER_PLACE_BYTES];
	const char *process = place;
	char mine[DOING_TEXT_BYTES], what[DOING_TEXT_BYTES] = "", call[32] = "";
	char way[DOING_WAY_BYTES];
	const char *theirs = "it has made no call yet";
	struct call_sign sign;
	struct doing note;
	uint64_t last;

	if (peer_is_local(engine->peers, doing->rank))
		process = doing_process(status->pid);
	else
		peer_place(engine->peers, doing->rank, place);
	doing_print(doing, mine);
	doing_way(engine, doing, way);
	if (doing_read(engine->peers, doing->rank, &note)) {
		theirs = "it waits itself in ";
		doing_print(&note, what);
	} else if ((last = doing_last(engine->peers, doing->rank, &sign))) {
		theirs = "it was last in ";
		sign_print(&sign, what);
		snprintf(call, sizeof(call), " (call %lu)", (unsigned long)last);
	}
	log_warn("rank %u has waited %.1f s for rank %u (process %u%s%s%s) in %s; %s%s%s",
		engine->rank, (double)(clock_ns() - doing->since_ns) * 1e-9, doing->rank,
		status->pid, process[0] ? ", " : "", process, way, mine, theirs, what,
		call);
}
