#include "comm/rma.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/param.h"
#include "comm/rma_mover.h"
#include "comm/state.h"

enum { LOOK_US = 100, TRIAL_SEC = 60, SETTLE_MS = 20, WORDS_ALIGNMENT = 4096 };
/* What a rank puts in the trial, with its number. */
#define TRIAL_WORD 0x7765667452414d00ull

/* Signals from each rank, then a word that each rank puts in the trial, then this rank's
 * own for the others. */
struct rma_words {
	uint64_t *words; /* owned: mapped, so that no other memory is in its pages */
	size_t bytes, signals;
	void *known;
};

struct comm_rma {
	struct net_rma *net; /* owned; NULL: not used any more */
	bool is_hurried, has_met;
	struct rma_words words;
	struct rma_mover *mover;	  /* owned; NULL: not yet */
	_Atomic(struct rma_mover *) used; /* .. by puts */
};

/* ---- which ---- */

void rma_open(struct comm *comm, const struct net_plugin *network, char *name)
{
	const struct net_rma_args args = {.comm = comm->id_hash,
		.local = comm->hosts.local,
		.network_file = network ? net_plugin_asked(network) : NULL};
	struct net_rma *net = net_rma_open(&args);

	name[0] = '\0';
	if (!net)
		return;
	comm->hosts.rma = calloc(1, sizeof(*comm->hosts.rma));
	if (!comm->hosts.rma) {
		(void)net_rma_close(net);
		return;
	}
	comm->hosts.rma->net = net;
	snprintf(name, PLUGIN_NAME_BYTES, "%s", net_rma_name(net));
}

static void words_free(struct rma_words *words)
{
	if (words->words)
		munmap(words->words, words->bytes);
	*words = (struct rma_words){0};
}

/* What a thread is stuck with stays, and so does all that it may still touch. */
static void rma_close(struct comm *comm)
{
	struct comm_rma *rma = comm->hosts.rma;

	atomic_store(&rma->used, NULL);
	if (rma->mover && !rma_mover_end(rma->mover))
		rma->words = (struct rma_words){0};
	rma->mover = NULL;
	if (rma->words.known)
		net_rma_deregister(rma->net, rma->words.known);
	if (!net_rma_close(rma->net))
		rma->words = (struct rma_words){0};
	rma->net = NULL;
	words_free(&rma->words);
}

void rma_disagree(struct comm *comm, uint32_t rank, const char *name)
{
	struct comm_rma *rma = comm->hosts.rma;

	if (!rma)
		return;
	log_info(LOG_INIT | LOG_NET,
		"RMA/Plugin: %s is not used, as rank %u has %s%s: puts to other hosts go "
		"by the control channel",
		net_rma_name(rma->net), rank, name[0] ? "" : "no one-sided plugin", name);
	rma_end(comm);
}

void rma_end(struct comm *comm)
{
	struct comm_rma *rma = comm->hosts.rma;

	if (!rma)
		return;
	if (rma->net)
		rma_close(comm);
	free(rma);
	comm->hosts.rma = NULL;
}

/* ---- together ---- */

/* Everybody tells everybody. While the communicator is made nobody else can be inside. */
static enum err all_tell(struct comm *comm, const void *mine, size_t bytes, void *all)
{
	const struct host_spec spec = {
		.key = {.coll = COLL_ALL_GATHER, .type = DTYPE_UINT8, .count = bytes},
		.in = mine,
		.out = all};

	return atomic_load(&comm->life.ready) ? comm_exchange(comm, &spec)
					      : host_run_one(comm->engine, &spec);
}

/* How it went with everybody; *culprit is the first with whom it did not. */
static enum err all_well(struct comm *comm, bool is_well, uint32_t *culprit)
{
	unsigned char mine = !is_well, *all = calloc(comm->rank_count, 1);
	enum err e;

	*culprit = UINT32_MAX;
	if (!all)
		return err_set(ERR_SYSTEM, "no memory to ask %u ranks", comm->rank_count);
	e = all_tell(comm, &mine, sizeof(mine), all);
	for (uint32_t i = comm->rank_count; i-- > 0 && !e;)
		if (all[i])
			*culprit = i;
	free(all);
	return e;
}

/* What each rank says of its plugin when all are to connect. */
struct rma_record {
	uint32_t is_wrong, unused;
	unsigned char handle[RMA_HANDLE_BYTES];
};

static enum err handles_take(
	struct comm *comm, const struct rma_record *records, unsigned char *handles)
{
	for (uint32_t i = 0; i < comm->rank_count; i++)
		memcpy(handles + (size_t)i * RMA_HANDLE_BYTES, records[i].handle,
			RMA_HANDLE_BYTES);
	return net_rma_connect(
		comm->hosts.rma->net, handles, comm->rank_count, comm->rank);
}

static enum err words_make(const struct comm *comm, struct rma_words *words)
{
	size_t n = comm->rank_count;

	words->signals = n * comm->hosts.board->signal_count;
	words->bytes = (words->signals + n + 1) * sizeof(*words->words);
	words->bytes = (words->bytes + WORDS_ALIGNMENT - 1) / WORDS_ALIGNMENT *
		       WORDS_ALIGNMENT;
	words->words = mmap(NULL, words->bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (words->words != MAP_FAILED)
		return OK;
	words->words = NULL;
	return err_set(ERR_SYSTEM, "no memory for signals of %zu ranks", n);
}

static enum err mover_make(struct comm *comm)
{
	struct comm_rma *rma = comm->hosts.rma;
	struct rma_memory memory = {.is_signals = true};
	enum err e = words_make(comm, &rma->words);

	memory.data = rma->words.words;
	memory.bytes = rma->words.bytes;
	if (!e)
		e = net_rma_register(rma->net, &memory, &rma->words.known);
	return e ? e
		 : rma_mover_start(
			   &(struct rma_mover_args){.comm = comm,
				   .net = rma->net,
				   .signals = rma->words.words,
				   .signal_count = comm->hosts.board->signal_count},
			   &rma->mover);
}

/* *is_wrong: some rank cannot. It, and it alone, has said why. */
static enum err rma_connect(struct comm *comm, uint32_t *culprit)
{
	struct rma_record mine = {0};
	struct rma_record *records = calloc(comm->rank_count, sizeof(*records));
	unsigned char *handles = calloc(comm->rank_count, RMA_HANDLE_BYTES);
	enum err e, wrong;

	if (!records || !handles) {
		free(records);
		free(handles);
		return err_set(
			ERR_SYSTEM, "no memory to meet %u ranks", comm->rank_count);
	}
	mine.is_wrong = net_rma_listen(comm->hosts.rma->net, mine.handle) != OK;
	e = all_tell(comm, &mine, sizeof(mine), records);
	*culprit = UINT32_MAX;
	for (uint32_t i = comm->rank_count; i-- > 0 && !e;)
		if (records[i].is_wrong)
			*culprit = i;
	if (!e && *culprit == UINT32_MAX) {
		wrong = handles_take(comm, records, handles);
		if (!wrong)
			wrong = mover_make(comm);
		e = all_well(comm, !wrong, culprit);
	}
	free(records);
	free(handles);
	return e;
}

/* ---- the trial ---- */

static enum err trial_put(struct comm *comm, uint32_t to)
{
	struct comm_rma *rma = comm->hosts.rma;
	const struct rma_words *words = &rma->words;
	const size_t word = sizeof(*words->words);
	const struct rma_put put = {.rank = to,
		.from = (words->signals + comm->rank_count) * word,
		.to = (words->signals + comm->rank) * word,
		.from_known = words->known,
		.to_known = words->known,
		.bytes = word,
		.signal = (uint64_t)comm->rank * comm->hosts.board->signal_count * word,
		.signal_known = words->known};

	return rma_mover_put(rma->mover, &put, NULL);
}

/* The signal of a rank is here; then its word must be. */
static enum err trial_look(const struct comm *comm, uint32_t from)
{
	const struct comm_rma *rma = comm->hosts.rma;
	const uint64_t *words = rma->words.words;
	uint64_t signals = __atomic_load_n(
		&words[(size_t)from * comm->hosts.board->signal_count], __ATOMIC_ACQUIRE);

	if (!signals)
		return ERR_AGAIN;
	if (signals == 1 && words[rma->words.signals + from] == (TRIAL_WORD ^ from))
		return OK;
	return err_set(ERR_SYSTEM,
		"the one-sided plugin %s (v%d) shows a signal of rank %u without the "
		"data that "
		"was put before it",
		net_rma_name(rma->net), net_rma_version(rma->net), from);
}

static enum err trial_late(const struct comm *comm, uint32_t from, int64_t limit_s)
{
	const struct net_rma *net = comm->hosts.rma->net;

	return err_set(ERR_SYSTEM,
		"the one-sided plugin %s (v%d) has not carried a put of rank %u for "
		"%lld s (WEFT_PLUGIN_SEC)",
		net_rma_name(net), net_rma_version(net), from, (long long)limit_s);
}

static uint64_t plugin_limit_s(void)
{
	int64_t asked_s = param_int(PARAM_PLUGIN_SEC);

	return asked_s ? (uint64_t)asked_s : TRIAL_SEC;
}

/* What each rank of another host puts here comes, before it is too late. */
static enum err trial_wait(struct comm *comm)
{
	int64_t limit_s = (int64_t)plugin_limit_s();
	uint64_t start_ns = clock_ns();
	enum err e = OK;

	for (uint32_t i = 0; i < comm->rank_count && !e; i++) {
		uint32_t culprit;

		while (!peer_is_local(comm->peers, i) &&
			(e = trial_look(comm, i)) == ERR_AGAIN) {
			e = rma_mover_check(comm->hosts.rma->mover);
			if (!e && clock_is_over(start_ns, limit_s))
				e = trial_late(comm, i, limit_s);
			if (!e)
				e = health_failed(comm->health, UINT64_MAX, &culprit);
			if (!e && atomic_load(&comm->life.abort))
				e = err_set(ERR_REMOTE, "the communicator was aborted");
			if (e)
				break;
			rma_mover_attend(comm->hosts.rma->mover);
			usleep(LOOK_US);
		}
	}
	return e;
}

/* Whoever cannot put says so before the others wait for it. */
static enum err rma_try(struct comm *comm, uint32_t *culprit)
{
	struct comm_rma *rma = comm->hosts.rma;
	enum err wrong = OK, e;

	rma->words.words[rma->words.signals + comm->rank_count] = TRIAL_WORD ^ comm->rank;
	for (uint32_t i = 0; i < comm->rank_count && !wrong; i++)
		if (!peer_is_local(comm->peers, i))
			wrong = trial_put(comm, i);
	rma_mover_settle(rma->mover, plugin_limit_s() * CLOCK_SEC);
	if (!wrong)
		wrong = rma_mover_check(rma->mover);
	e = all_well(comm, !wrong, culprit);
	if (e || *culprit != UINT32_MAX)
		return e;
	wrong = trial_wait(comm);
	if (!wrong)
		wrong = rma_mover_check(rma->mover);
	return all_well(comm, !wrong, culprit);
}

enum err rma_meet(struct comm *comm)
{
	struct comm_rma *rma = comm->hosts.rma;
	uint32_t culprit;
	enum err e;

	if (!rma || rma->has_met)
		return OK;
	rma->has_met = true;
	e = rma_connect(comm, &culprit);
	if (!e && culprit == UINT32_MAX)
		e = rma_try(comm, &culprit);
	if (e)
		return e;
	if (culprit != UINT32_MAX) {
		log_info(LOG_INIT | LOG_NET,
			"RMA/Plugin: %s is not used, as it failed on rank %u, whose log "
			"says why: puts to other hosts go by the control channel",
			net_rma_name(rma->net), culprit);
		rma_close(comm);
		return OK;
	}
	log_info(LOG_INIT | LOG_NET, "RMA/Plugin: Assigned plugin %s to comm",
		net_rma_name(rma->net));
	rma_mover_trust(rma->mover);
	atomic_store(&rma->used, rma->mover);
	return OK;
}

void rma_hurry(struct comm *comm)
{
	if (comm->hosts.rma)
		comm->hosts.rma->is_hurried = true;
}

enum err rma_meet_early(struct comm *comm)
{
	return comm->hosts.rma && comm->hosts.rma->is_hurried ? rma_meet(comm) : OK;
}

/* ---- windows ---- */

static struct rma_mover *mover_of(const struct comm *comm)
{
	struct comm_rma *rma = comm->hosts.rma;

	return rma ? atomic_load(&rma->used) : NULL;
}

enum err rma_window_add(
	struct comm *comm, void *base, size_t bytes, bool is_ordered, void **known)
{
	const struct rma_memory memory = {
		.data = base, .bytes = bytes, .is_ordered = is_ordered};
	struct comm_rma *rma = comm->hosts.rma;
	void *mine = NULL;
	uint32_t culprit;
	enum err e;

	if (!mover_of(comm))
		return OK;
	e = all_well(comm, !net_rma_register(rma->net, &memory, &mine), &culprit);
	if (!e && culprit == UINT32_MAX) {
		*known = mine;
		return OK;
	}
	if (mine)
		net_rma_deregister(rma->net, mine);
	if (!e)
		log_info(LOG_REG,
			"RMA/Plugin: %s does not know %zu bytes at %p, as it refused "
			"rank %u's part of the window: puts there go by the control "
			"channel",
			net_rma_name(rma->net), bytes, base, culprit);
	return e;
}

void rma_window_remove(struct comm *comm, void *known)
{
	struct rma_mover *mover = mover_of(comm);

	if (!known || !comm->hosts.rma || !comm->hosts.rma->net)
		return;
	if (mover)
		rma_mover_settle(mover, plugin_limit_s() * CLOCK_SEC);
	net_rma_deregister(comm->hosts.rma->net, known);
}

void rma_withdraw(struct comm *comm)
{
	struct rma_mover *mover = mover_of(comm);
	void *known;

	if (!mover)
		return;
	rma_mover_stop(mover);
	rma_mover_settle(mover, SETTLE_MS * CLOCK_MS);
	while ((known = window_unknow(comm)))
		net_rma_deregister(comm->hosts.rma->net, known);
}

/* ---- the port ---- */

static const char *port_name(void *arg)
{
	const struct comm *comm = arg;

	return mover_of(comm) ? net_rma_name(comm->hosts.rma->net) : NULL;
}

static bool port_takes(void *arg, const struct port_put *put)
{
	struct rma_put found = {0};

	return mover_of(arg) && (!put->bytes || window_port(arg, put, &found));
}

static enum err port_put_do(
	void *arg, const struct port_put *put, struct far_order **order)
{
	const struct comm *comm = arg;
	const struct rma_words *words = &comm->hosts.rma->words;
	struct rma_put found = {.rank = put->peer, .bytes = put->bytes};

	if (put->bytes && !window_port(arg, put, &found))
		return OK;
	found.signal_known = words->known;
	found.signal =
		((uint64_t)comm->rank * comm->hosts.board->signal_count + put->signal) *
		sizeof(*words->words);
	return rma_mover_put(mover_of(comm), &found, order);
}

static enum err port_end(void *arg, struct far_order *order)
{
	return rma_mover_over(mover_of(arg), order);
}

static enum err port_check(void *arg)
{
	struct rma_mover *mover = mover_of(arg);

	return mover ? rma_mover_check(mover) : OK;
}

static void port_attend(void *arg)
{
	struct rma_mover *mover = mover_of(arg);

	if (mover)
		rma_mover_attend(mover);
}

const struct host_port rma_port = {
	port_name, port_takes, port_put_do, port_end, port_check, port_attend};
