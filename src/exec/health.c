#include "exec/health.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/futex.h"
#include "link/peer.h"
#include "link/watch.h"

static const uint32_t nobody = UINT32_MAX;

struct health {
	const struct peers *peers; /* borrowed */
	uint32_t rank, rank_count;
	const _Atomic uint64_t *completed; /* borrowed; NULL */
	atomic_bool is_told;		   /* this rank's failure is on the board */
	char *_Atomic *given_up; /* owned: per rank, why other hosts have; NULL: not */
	_Atomic uint32_t *died;	 /* owned: one that was seen to be dead, or nobody */
	struct watch *watches[]; /* owned: per rank; NULL but for other processes of this
				    host */
};

enum err health_create(const struct peers *peers, struct health **health)
{
	size_t n = peers->rank_count;
	struct health *h = calloc(1, sizeof(*h) + n * sizeof(h->watches[0]));
	enum err e = OK;

	if (!h)
		return err_set(ERR_SYSTEM, "no memory for a communicator of %zu", n);
	h->peers = peers;
	h->rank = peers->rank;
	h->rank_count = peers->rank_count;
	h->given_up = calloc(n, sizeof(*h->given_up));
	h->died = malloc(sizeof(*h->died));
	if (h->died)
		atomic_init(h->died, nobody);
	if (!h->given_up || !h->died)
		e = err_set(ERR_SYSTEM, "no memory for a communicator of %zu", n);
	for (uint32_t i = 0; i < peers->local_count && !e; i++)
		e = watch_get(peer_status(peers, peers->locals[i])->pid,
			&h->watches[peers->locals[i]]);
	if (e) {
		health_destroy(h);
		return e;
	}
	*health = h;
	return OK;
}

void health_destroy(struct health *health)
{
	if (!health)
		return;
	for (uint32_t i = 0; i < health->rank_count; i++) {
		watch_put(health->watches[i]);
		if (health->given_up)
			free(health->given_up[i]);
	}
	free(health->given_up);
	free(health->died);
	free(health);
}

void health_count(struct health *health, const _Atomic uint64_t *completed)
{
	health->completed = completed;
}

/* ---- asking ---- */

static const struct rank_status *status_of(const struct health *health, uint32_t rank)
{
	return peer_status(health->peers, rank);
}

bool health_has_ended(const struct health *health, uint32_t rank)
{
	return watch_has_ended(health->watches[rank]);
}

bool health_is_dead(const struct health *health, uint32_t rank)
{
	return pulse_has_stopped(&status_of(health, rank)->pulse) ||
	       health_has_ended(health, rank) || atomic_load(&health->given_up[rank]);
}

uint32_t health_process(const struct health *health, uint32_t rank)
{
	return status_of(health, rank)->pid;
}

bool health_has_left(const struct health *health, uint32_t rank)
{
	return atomic_load(&status_of(health, rank)->state) == RANK_LEFT;
}

enum err health_left(uint32_t rank)
{
	return err_set(ERR_REMOTE,
		"rank %u destroyed its communicator before this call was complete", rank);
}

/* Misuse and a patience that ended are everybody's; the rest happened elsewhere. A rank
 * that blames another has said all there is to say. */
static enum err rank_failed(const struct health *health, uint32_t rank, uint32_t *culprit)
{
	const struct rank_status *status = status_of(health, rank);
	uint32_t blamed = atomic_load(&status->culprit);
	enum err code = (enum err)atomic_load(&status->code);
	char why[BOARD_SENTENCE_BYTES];

	*culprit = blamed < health->rank_count ? blamed : rank;
	memcpy(why, status->sentence, sizeof(why));
	why[sizeof(why) - 1] = '\0';
	if (code != ERR_USAGE && code != ERR_TIMEOUT)
		code = ERR_REMOTE;
	if (!strncmp(why, "rank", 4)) /* it names whom it means */
		return err_set(code, "%s", why);
	return err_set(code, "rank %u failed: %s", rank,
		why[0] ? why : err_name((enum err)atomic_load(&status->code)));
}

static enum err rank_gone(
	const struct health *health, uint32_t rank, uint32_t state, uint32_t *culprit)
{
	if (state == RANK_FAILED)
		return rank_failed(health, rank, culprit);
	*culprit = rank;
	return health_left(rank);
}

static bool has_failed(const struct health *health, uint32_t rank, uint64_t number)
{
	const struct rank_status *status = status_of(health, rank);

	/* pairs with the last store of health_tell() */
	return rank != health->rank &&
	       atomic_load_explicit(&status->state, memory_order_acquire) ==
		       RANK_FAILED &&
	       atomic_load(&status->failed_at) <= number;
}

enum err health_missed(
	const struct health *health, uint32_t rank, uint64_t number, uint32_t *culprit)
{
	return has_failed(health, rank, number) ? rank_failed(health, rank, culprit) : OK;
}

enum err health_failed(const struct health *health, uint64_t number, uint32_t *culprit)
{
	enum err e = OK;

	/* what was read of others before is not younger than what is read now */
	atomic_thread_fence(memory_order_acquire);
	for (uint32_t rank = 0; rank < health->rank_count && !e; rank++)
		e = health_missed(health, rank, number, culprit);
	return e;
}

uint64_t health_completed(const struct health *health)
{
	return health->completed ? atomic_load(health->completed) : 0;
}

enum err health_dead(const struct health *health, uint32_t rank)
{
	const struct rank_status *status = status_of(health, rank);
	const char *given_up = atomic_load(&health->given_up[rank]);
	char place[PEER_PLACE_BYTES];

	if (given_up && !pulse_has_stopped(&status->pulse))
		return err_set(ERR_REMOTE,
			"rank %u (process %u) was given up by other hosts: %s", rank,
			status->pid, given_up);
	if (peer_is_local(health->peers, rank) || !status->sentence[0])
		return err_set(
			ERR_REMOTE, "rank %u (process %u) died", rank, status->pid);
	peer_place(health->peers, rank, place);
	return err_set(ERR_REMOTE, "rank %u (process %u %s) is lost: %.*s", rank,
		status->pid, place, BOARD_SENTENCE_BYTES - 1, status->sentence);
}

/* Who left or failed before its process ended is not dead but gone. */
static bool has_died(const struct health *health, uint32_t rank)
{
	return rank != health->rank &&
	       atomic_load(&status_of(health, rank)->state) == RANK_LIVE &&
	       health_is_dead(health, rank);
}

/* The system is asked of each process of this host, so once a check is enough. */
static enum err dead_find(const struct health *health,
	bool (*needed)(const void *what, uint32_t rank), const void *what,
	uint32_t *culprit)
{
	for (uint32_t rank = 0; rank < health->rank_count; rank++) {
		if (!has_died(health, rank))
			continue;
		atomic_store(health->died, rank);
		if (!needed(what, rank))
			continue;
		*culprit = rank;
		return health_dead(health, rank);
	}
	return OK;
}

/* Deaths first: they are the cause of whatever the others report. */
enum err health_check(const struct health *health,
	bool (*needed)(const void *what, uint32_t rank), const void *what,
	uint32_t *culprit)
{
	enum err e = dead_find(health, needed, what, culprit);

	for (uint32_t rank = 0; rank < health->rank_count && !e; rank++) {
		uint32_t state = atomic_load(&status_of(health, rank)->state);

		if (rank == health->rank ||
			(state != RANK_FAILED && state != RANK_LEFT) ||
			!needed(what, rank))
			continue;
		/* it may have failed for a death that came after our look */
		e = dead_find(health, needed, what, culprit);
		if (!e)
			e = rank_gone(health, rank, state, culprit);
	}
	return e;
}

bool health_any_lost(const struct health *health, uint64_t number, uint32_t *lost)
{
	uint32_t died = atomic_load(health->died);

	if (died != nobody && has_died(health, died)) {
		*lost = died;
		return true;
	}
	for (uint32_t rank = 0; rank < health->rank_count; rank++)
		if (has_failed(health, rank, number)) {
			*lost = rank;
			return true;
		}
	return false;
}

enum err health_lost(const struct health *health, uint32_t lost, uint32_t *culprit)
{
	if (has_failed(health, lost, UINT64_MAX))
		return rank_failed(health, lost, culprit);
	*culprit = lost;
	return health_dead(health, lost);
}

static bool any(const void *what, uint32_t rank)
{
	(void)what;
	(void)rank;
	return true;
}

enum err health_look(const struct health *health, uint32_t *culprit)
{
	enum err e = dead_find(health, any, NULL, culprit), later;

	if (e)
		return e;
	e = health_failed(health, UINT64_MAX, culprit);
	later = e ? dead_find(health, any, NULL, culprit) : OK;
	return later ? later : e;
}

/* ---- telling ---- */

void health_give_up(struct health *health, uint32_t rank, const char *why)
{
	char *none = NULL, *copy = strdup(why);

	if (copy && !atomic_compare_exchange_strong(&health->given_up[rank], &none, copy))
		free(copy);
}

/* Everyone who may be asleep waiting for this rank. */
static void sleepers_wake(const struct health *health)
{
	const struct board *board = health->peers->board;

	for (uint32_t i = 0; i < BOARD_CARDS * board->layer_count; i++) {
		uint32_t layer = i / BOARD_CARDS;
		struct card *card = board_card(
			board, health->peers->local + layer * board->rank_count, i);

		for (uint32_t lane = 0; lane < BOARD_LANES; lane++)
			futex_wake(&card->position[lane]);
	}
	for (uint32_t i = 0; i < health->peers->local_count; i++) {
		uint32_t rank = health->peers->locals[i];
		struct pair_room *to = peer_pair_find(health->peers, health->rank, rank);
		struct pair_room *from = peer_pair_find(
			health->peers, rank, health->rank);

		if (to)
			futex_wake(&to->box.posted);
		if (from)
			futex_wake(&from->box.taken);
	}
}

void health_tell(
	struct health *health, enum err code, uint32_t culprit, const char *sentence)
{
	struct rank_status *status = peer_status(health->peers, health->rank);

	if (!atomic_exchange(&health->is_told, true)) {
		snprintf(status->sentence, sizeof(status->sentence), "%s", sentence);
		atomic_store(&status->culprit, culprit);
		atomic_store(&status->code, (uint32_t)code);
		atomic_store(&status->failed_at,
			health->completed ? atomic_load(health->completed) + 1 : 0);
		atomic_store(&status->state, RANK_FAILED);
	}
	sleepers_wake(health);
}

uint32_t health_blamed(const struct health *health)
{
	const struct rank_status *status = status_of(health, health->rank);

	/* pairs with the last store of health_tell() */
	return atomic_load(&status->state) == RANK_FAILED ? atomic_load(&status->culprit)
							  : health->rank;
}
