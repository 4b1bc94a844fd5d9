/*
 * child.c - communicators made from communicators: split, shrink, grow.
 *
 * The members of a child meet by an ordinary id. Its first member makes the id and leaves
 * it as a letter on the parent's board; nothing but reading that letter is asked of the
 * parent, so a parent with dead ranks can still shrink. What the parent knows of its
 * ranks' end counts in the child's meeting: a member that has died is not waited for.
 */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/param.h"
#include "comm/comm.h"
#include "comm/state.h"
#include "comm/touch.h"
#include "exec/host/doing.h"

enum birth_kind { BIRTH_SPLIT = 1, BIRTH_SHRINK, BIRTH_GROW };
enum { MAIL_SLEEP_US = 50, CAUSE_MS = 30, STUCK_MS = 50, NO_COLOR = -1 };

_Static_assert(sizeof(struct boot_id) <= BOARD_MAIL_BYTES, "an id fits in a letter");

/* A number all members compute alike: what is made, of whom, for which time. */
static enum err birth_number(struct comm *parent, enum birth_kind kind,
	const uint32_t *members, uint32_t count, uint64_t *number)
{
	uint64_t key = hash_add(HASH_START, kind);
	struct birth *birth;

	for (uint32_t i = 0; i < count; i++)
		key = hash_add(key, members[i]);
	for (uint32_t i = 0; i < parent->children.birth_count; i++) {
		birth = &parent->children.births[i];
		if (birth->key == key) {
			*number = key + ++birth->count;
			return OK;
		}
	}
	if (parent->children.birth_count == BIRTHS_MAX)
		return err_set(ERR_USAGE,
			"children of more than %d different groups of ranks were made of "
			"this communicator",
			BIRTHS_MAX);
	parent->children.births[parent->children.birth_count++] = (struct birth){
		.key = key};
	*number = key;
	return OK;
}

/* The id, or the sentence that says why there is none. */
static void mail_post(
	struct comm *parent, uint64_t number, const struct boot_id *id, enum err code)
{
	struct rank_status *status = peer_status(parent->peers, parent->rank);

	status->mail_code = (uint32_t)code;
	if (code)
		snprintf((char *)status->mail, sizeof(status->mail), "%s", err_last());
	else
		memcpy(status->mail, id, sizeof(*id));
	atomic_store_explicit(&status->mail_number, number, memory_order_release);
	touch_mail(parent);
}

/* Who makes a child, and with whom. */
struct birth_place {
	struct comm *parent;
	const struct comm *child;
	const uint32_t *members; /* NULL: all of the parent */
	uint32_t count;
	uint64_t start_ns;
	uint64_t call; /* of the parent, by which members know of each other; 0: none */
	bool has_warned;
	bool is_strict; /* who waits for us in a call of the parent will not come .. */
	bool is_stuck;	/* .. and one does */
};

/* Who has given up and ended then is not the cause of anything. */
static enum err dead_check(const struct comm *parent, uint32_t rank)
{
	const struct rank_status *status = peer_status(parent->peers, rank);

	if (rank == parent->rank || atomic_load(&status->gone_ns) ||
		!health_is_dead(parent->health, rank))
		return OK;
	return health_dead(parent->health, rank);
}

static bool is_member(const struct birth_place *place, uint32_t rank)
{
	for (uint32_t i = 0; place->members && i < place->count; i++)
		if (place->members[i] == rank)
			return true;
	return !place->members;
}

/* The member that was the first to give up. */
static enum err gone_check(const struct birth_place *place)
{
	const struct peers *peers = place->parent->peers;
	uint64_t earliest = UINT64_MAX;
	char why[BOARD_SENTENCE_BYTES];
	uint32_t first = 0;

	for (uint32_t i = 0; i < place->count; i++) {
		uint32_t rank = place->members ? place->members[i] : i;
		uint64_t gone = atomic_load(&peer_status(peers, rank)->gone_ns);

		if (gone && gone < earliest) {
			earliest = gone;
			first = rank;
		}
	}
	if (earliest == UINT64_MAX)
		return OK;
	snprintf(why, sizeof(why), "%.*s", BOARD_SENTENCE_BYTES - 1,
		peer_status(peers, first)->sentence);
	if (atomic_load(&peer_status(peers, first)->state) == RANK_LEFT)
		return err_set(ERR_REMOTE, "rank %u has destroyed its communicator%s%s",
			first, why[0] ? ": " : "", why);
	if (!strncmp(why, "rank", 4)) /* it names whom it means */
		return err_set(ERR_REMOTE, "%s", why);
	return err_set(ERR_REMOTE, "rank %u failed: %s", first, why);
}

/* In the call by which this rank learned of the members one of them may have failed, and
 * does not know of this child. */
static enum err unaware_check(const struct birth_place *place)
{
	uint32_t culprit;
	enum err e = OK;

	for (uint32_t i = 0; place->call && i < place->count && !e; i++)
		e = health_missed(
			place->parent->health, place->members[i], place->call, &culprit);
	return e;
}

/* Has any rank of it died, or given up? Then others come out of its calls, and the note
 * of one that gave up may be old. */
static bool is_harmed(const struct comm *parent)
{
	for (uint32_t rank = 0; rank < parent->rank_count; rank++)
		if (atomic_load(&peer_status(parent->peers, rank)->state) ==
				RANK_FAILED ||
			(rank != parent->rank && health_is_dead(parent->health, rank)))
			return true;
	return false;
}

/* A member that waits for this rank in a call of the parent will not come, unless the
 * call has failed and it does not know yet. Only where all calls of this rank are over is
 * it sure that none of them is meant, and only of this host is the note as new as it
 * looks.
 */
static enum err stuck_check(struct birth_place *place)
{
	struct comm *parent = place->parent;
	char text[DOING_TEXT_BYTES];
	struct doing note;

	if (!place->is_strict || parent->gpu.engine || atomic_load(&parent->turns.busy) ||
		clock_ns() - place->start_ns < STUCK_MS * CLOCK_MS)
		return OK;
	for (uint32_t i = 0; i < place->count; i++) {
		uint32_t rank = place->members ? place->members[i] : i;

		if (rank == parent->rank || !peer_is_local(parent->peers, rank) ||
			!doing_read(parent->peers, rank, &note) ||
			note.kind != DOING_COLL || note.rank != parent->rank ||
			clock_ns() - note.since_ns < STUCK_MS * CLOCK_MS ||
			!doing_holds(parent->peers, rank, &note) || is_harmed(parent))
			continue;
		place->is_stuck = true;
		doing_print(&note, text);
		return err_set(ERR_USAGE,
			"rank %u is in %s and waits for rank %u, which makes a new "
			"communicator and waits for rank %u: these calls do not match",
			rank, text, parent->rank, rank);
	}
	return OK;
}

/* Can every member still take part? Asked again and again while waiting. Causes first:
 * the rank that the parent's failure is blamed on, then the dead, then those that have
 * given up, perhaps because of them. */
static enum err members_check(void *arg, bool has_met)
{
	struct birth_place *place = arg;
	const struct comm *parent = place->parent;
	uint32_t culprit = health_blamed(parent->health);
	enum err e = OK;

	if (is_member(place, culprit))
		e = dead_check(parent, culprit);
	for (uint32_t i = 0; i < place->count && !e; i++)
		e = dead_check(parent, place->members ? place->members[i] : i);
	if (!e && !has_met)
		e = unaware_check(place);
	if (!e && !has_met)
		e = stuck_check(place);
	return e || has_met ? e : gone_check(place);
}

/* Say once for whom this rank waits. */
static void birth_warn(struct birth_place *place, uint32_t from)
{
	const struct comm *parent = place->parent;
	char where[PEER_PLACE_BYTES];
	const char *process = where;
	uint32_t pid;

	if (place->has_warned || from == parent->rank_count ||
		!clock_is_over(place->start_ns, param_int(PARAM_STALL)))
		return;
	place->has_warned = true;
	pid = peer_status(parent->peers, from)->pid;
	if (peer_is_local(parent->peers, from))
		process = doing_process(pid);
	else
		peer_place(parent->peers, from, where);
	log_warn("rank %u has waited %.1f s for rank %u (process %u%s%s) to begin a new "
		 "communicator",
		parent->rank, (double)(clock_ns() - place->start_ns) * 1e-9, from, pid,
		process[0] ? ", " : "", process);
}

/* Is there still hope that `from`, or anyone when `from` is rank_count, will do it? */
static enum err hope_check(struct birth_place *place, uint32_t from)
{
	int64_t limit_s = param_int(PARAM_BOOT_TIMEOUT);
	enum err e;

	if (atomic_load(&place->parent->life.abort) ||
		atomic_load(&place->child->life.abort))
		return err_set(ERR_REMOTE, "the communicator was aborted");
	if (clock_is_over(place->start_ns, limit_s))
		return err_set(ERR_TIMEOUT,
			"waited %ld s for rank %u to begin the new communicator",
			(long)limit_s, from < place->parent->rank_count ? from : 0);
	birth_warn(place, from);
	e = members_check(place, false);
	if (e && !place->is_stuck && from < place->parent->rank_count)
		err_set(e, "%s, while rank %u had not answered yet", err_last(), from);
	return e;
}

static enum err mail_read(
	const struct rank_status *status, uint32_t from, struct boot_id *id)
{
	enum err code = (enum err)status->mail_code;

	if (!code) {
		memcpy(id, status->mail, sizeof(*id));
		return OK;
	}
	return err_set(code == ERR_USAGE ? code : ERR_REMOTE,
		"rank %u cannot begin the new communicator: %.*s", from,
		BOARD_MAIL_BYTES - 1, (const char *)status->mail);
}

/* Wait for the letter of `from`, or of anyone when `from` is rank_count. */
static enum err mail_wait(
	struct birth_place *place, uint32_t from, uint64_t number, struct boot_id *id)
{
	struct comm *parent = place->parent;
	uint32_t first = from < parent->rank_count ? from : 0;
	uint32_t last = from < parent->rank_count ? from + 1 : parent->rank_count;

	for (;;) {
		enum err e;

		for (uint32_t rank = first; rank < last; rank++) {
			struct rank_status *status = peer_status(parent->peers, rank);

			if (atomic_load_explicit(
				    &status->mail_number, memory_order_acquire) == number)
				return mail_read(status, rank, id);
		}
		e = hope_check(place, from);
		if (e)
			return e;
		usleep(MAIL_SLEEP_US);
	}
}

/* What kind of child is wished for; the rest is of a split, for the log. */
struct wish {
	enum birth_kind kind;
	int color, key;
	uint64_t call; /* by which members are known; 0: by votes */
	bool abort;    /* what is in flight on the parent */
};

/* Members know each other: meet and connect. */
static enum err child_meet(struct comm *parent, const struct wish *wish,
	const uint32_t *members, uint32_t count, struct comm *child)
{
	bool is_split = wish->kind == BIRTH_SPLIT;
	struct birth_place place = {.parent = parent,
		.child = child,
		.members = members,
		.count = count,
		.start_ns = clock_ns(),
		.call = wish->call,
		.is_strict = !wish->abort && !comm_is_revoked(parent) &&
			     !comm_async_get(parent)};
	struct comm_init_args args = {.id_count = 1,
		.rank_count = count,
		.device = parent->gpu.device,
		.caller = is_split ? "ncclCommSplit" : "ncclCommShrink",
		.parent = is_split ? parent : NULL,
		.split_count = parent->children.split_count,
		.color = wish->color,
		.key = wish->key,
		.hope = members_check,
		.hope_arg = &place};
	char root[32];
	struct boot_id id;
	uint64_t number = 0;
	bool is_made = false, is_root_lost = false;
	enum err e = birth_number(parent, wish->kind, members, count, &number);

	if (e)
		return e;
	while (members[args.rank] != parent->rank)
		args.rank++;
	args.ids = &id;
	snprintf(root, sizeof(root), "rank %u of the parent", members[0]);
	args.root = root;
	args.is_root_lost = &is_root_lost;
	if (args.rank == 0) {
		e = boot_id_create_here(&id);
		is_made = !e;
		mail_post(parent, number, &id, e);
	} else {
		e = mail_wait(&place, members[0], number, &id);
	}
	if (!e)
		e = comm_init(child, &args);
	/* where the root was lost the parent knows why, a moment later perhaps */
	for (int i = 0;
		e && is_root_lost && i < CAUSE_MS && !members_check(&place, false); i++)
		usleep(1000);
	if (e && is_made)
		boot_id_drop(&id);
	if (e && place.is_stuck)
		comm_fail(parent, e, parent->rank);
	sodium_memzero(&id, sizeof(id));
	/* whoever ends the parent now does so for this, and says it */
	pthread_mutex_lock(&parent->lock);
	snprintf(parent->children.reason, sizeof(parent->children.reason), "%s",
		e ? err_last() : "");
	pthread_mutex_unlock(&parent->lock);
	return e;
}

struct color_key {
	int32_t color, key;
};

/* My color's ranks, by key and then by rank; insertion keeps equal keys in rank order. */
static uint32_t color_members(const struct color_key *all, uint32_t rank_count,
	int32_t color, uint32_t *members)
{
	uint32_t count = 0;

	for (uint32_t rank = 0; rank < rank_count; rank++) {
		uint32_t at = count;

		if (all[rank].color != color)
			continue;
		for (; at > 0 && all[members[at - 1]].key > all[rank].key; at--)
			members[at] = members[at - 1];
		members[at] = rank;
		count++;
	}
	return count;
}

static enum err colors_gather(
	struct comm *parent, struct color_key mine, struct color_key *all)
{
	struct host_spec spec = {.key = {.coll = COLL_ALL_GATHER,
					 .type = DTYPE_UINT8,
					 .count = sizeof(mine)},
		.in = &mine,
		.out = all};

	return comm_exchange(parent, &spec);
}

/* The same without the engine, which a revoked parent has no more. */
static enum err colors_vote(struct comm *parent, const struct comm *child,
	struct color_key mine, struct color_key *all)
{
	struct birth_place place = {.parent = parent,
		.child = child,
		.count = parent->rank_count,
		.start_ns = clock_ns()};
	uint64_t number = ++parent->children.vote_count;
	struct vote *vote = &peer_status(parent->peers, parent->rank)->votes[number % 2];

	vote->color = mine.color;
	vote->key = mine.key;
	atomic_store_explicit(&vote->number, number, memory_order_release);
	touch_vote(parent, number);
	for (uint32_t rank = 0; rank < parent->rank_count; rank++) {
		vote = &peer_status(parent->peers, rank)->votes[number % 2];
		while (atomic_load_explicit(&vote->number, memory_order_acquire) !=
			number) {
			enum err e = hope_check(&place, rank);

			if (e)
				return e;
			usleep(MAIL_SLEEP_US);
		}
		all[rank] = (struct color_key){vote->color, vote->key};
	}
	return OK;
}

enum err comm_split(
	struct comm *parent, int color, int key, struct comm *child, bool *no_color)
{
	struct color_key *all = calloc(parent->rank_count, sizeof(*all));
	uint32_t *members = calloc(parent->rank_count, sizeof(*members));
	struct wish wish = {.kind = BIRTH_SPLIT, .color = color, .key = key};
	enum err e = OK;

	parent->children.split_count++;
	if (!all || !members)
		e = err_set(
			ERR_SYSTEM, "no memory to split %u ranks", parent->rank_count);
	if (e) /* the others are waiting for this rank's colour */
		comm_fail(parent, e, parent->rank);
	if (!e && comm_is_revoked(parent)) {
		e = colors_vote(parent, child, (struct color_key){color, key}, all);
	} else if (!e) {
		e = colors_gather(parent, (struct color_key){color, key}, all);
		wish.call = health_completed(parent->health);
	}
	*no_color = !e && color == NO_COLOR;
	if (!e && !*no_color) {
		uint32_t count = color_members(all, parent->rank_count, color, members);

		e = child_meet(parent, &wish, members, count, child);
	}
	free(all);
	free(members);
	return e;
}

static bool is_excluded(const int *exclude, uint32_t count, uint32_t rank)
{
	for (uint32_t i = 0; i < count; i++)
		if (exclude[i] == (int)rank)
			return true;
	return false;
}

/* Stop what is in flight on the parent, then let it live on. */
static void parent_stop(struct comm *parent)
{
	atomic_store(&parent->life.abort, 1);
	comm_finish_work(parent);
	atomic_store(&parent->life.abort, 0);
}

enum err comm_shrink(struct comm *parent, const int *exclude, uint32_t exclude_count,
	bool abort, struct comm *child)
{
	uint32_t *members = calloc(parent->rank_count, sizeof(*members));
	const struct wish wish = {.kind = BIRTH_SHRINK, .abort = abort};
	uint32_t count = 0;
	enum err e;

	if (!members)
		return err_set(
			ERR_SYSTEM, "no memory to shrink %u ranks", parent->rank_count);
	for (uint32_t rank = 0; rank < parent->rank_count; rank++)
		if (!is_excluded(exclude, exclude_count, rank))
			members[count++] = rank;
	if (abort)
		parent_stop(parent);
	e = child_meet(parent, &wish, members, count, child);
	free(members);
	return e;
}

enum err comm_get_unique_id(struct comm *comm, struct boot_id *id)
{
	uint64_t number;
	enum err e = birth_number(comm, BIRTH_GROW, &comm->rank_count, 1, &number);

	if (!e)
		e = boot_id_create_here(id);
	if (!e) {
		comm->children.grow_number = number;
		mail_post(comm, number, id, OK);
	}
	return e;
}

enum err comm_grow(struct comm *parent, uint32_t rank_count, const struct boot_id *id,
	int rank, struct comm *child)
{
	struct comm_init_args args = {.ids = id,
		.id_count = 1,
		.rank_count = rank_count,
		.rank = parent ? parent->rank : (uint32_t)rank,
		.device = parent ? parent->gpu.device : rank,
		.caller = "ncclCommGrow"};
	struct birth_place place = {.parent = parent,
		.child = child,
		.count = parent ? parent->rank_count : 0,
		.start_ns = clock_ns()};
	struct boot_id found;
	uint64_t number;
	enum err e = OK;

	if (parent) {
		args.hope = members_check;
		args.hope_arg = &place;
	}
	if (parent && !id) {
		number = parent->children.grow_number;
		if (!number)
			e = birth_number(
				parent, BIRTH_GROW, &parent->rank_count, 1, &number);
		if (!e)
			e = mail_wait(&place, parent->rank_count, number, &found);
		args.ids = &found;
	}
	if (parent)
		parent->children.grow_number = 0;
	if (!e)
		e = comm_init(child, &args);
	return e;
}
