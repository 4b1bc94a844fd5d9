#include "exec/cuda/meet/ledger.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/dtype.h"
#include "exec/cuda/lists/moves_abi.h"
#include "link/region.h"
#include "sched/sched.h"

/* No rank is so many calls ahead of another, or so many messages: a GPU's queues hold
 * fewer launches. */
enum { CALLS_KEPT = 4096, LOOK_EVERY = 1024, PAIRS_KEPT = 1024 };
enum { PAIRS_LOOKED = 16 }; /* of the last that both have made, at every look */

/* A call in words that each arrive whole. The first has its number in the lower half, is
 * written last and read first and last. */
struct line {
	_Atomic uint64_t head, place, count;
};

/* A send or a receive, and how many collectives its rank had begun before. */
struct pair_line {
	_Atomic uint64_t number, bytes, after;
};

/* Sends to, or receives from, one peer. */
struct traffic {
	_Atomic uint32_t begun, made;
	struct pair_line lines[PAIRS_KEPT];
};

/* Written by its rank, but for words.abort. */
struct page {
	struct words words;
	_Alignas(64) _Atomic uint32_t begun;
	_Atomic uint32_t made;
	struct line lines[CALLS_KEPT];
	struct traffic sends[MOVES_RANKS_MAX], receives[MOVES_RANKS_MAX];
	_Atomic uint32_t given[MOVES_RANKS_MAX], awaited[MOVES_RANKS_MAX];
	_Atomic uintptr_t thread; /* of the process, that gave or awaited one last */
};
_Static_assert(sizeof(struct words) == LEDGER_PAGE_BYTES, "whole pages of memory");

struct ledger {
	uint32_t rank, rank_count;
	struct page *own;		     /* owned */
	struct page *pages[MOVES_RANKS_MAX]; /* own's among them, the others mapped */
	/* the lock guards how far we have compared */
	pthread_mutex_t lock;
	uint32_t compared[MOVES_RANKS_MAX];
};

/* Two ranks and one call of each. */
struct compared {
	uint32_t ranks[2];
	uint32_t number;
};

/* Something that only this thread has. */
static uintptr_t thread_here(void)
{
	static _Thread_local char here;

	return (uintptr_t)&here;
}

enum err ledger_open(uint32_t rank, uint32_t rank_count, struct ledger **ledger,
	struct ledger_address *address)
{
	struct ledger *made = calloc(1, sizeof(*made));
	struct region region;
	void *page = NULL;
	enum err e;

	if (!made)
		return err_set(ERR_SYSTEM, "no memory for a list of calls");
	e = region_alloc(sizeof(struct page), &page);
	if (e) {
		free(made);
		return e;
	}
	pthread_mutex_init(&made->lock, NULL);
	made->rank = rank;
	made->rank_count = rank_count;
	made->own = made->pages[rank] = page;
	atomic_store(&made->own->thread, thread_here());
	region_find(page, 1, &region);
	*address = (struct ledger_address){(uint32_t)getpid(), (uint32_t)region.fd};
	*ledger = made;
	return OK;
}

enum err ledger_connect(struct ledger *ledger, const struct ledger_address *addresses)
{
	enum err e = OK;

	for (uint32_t r = 0; r < ledger->rank_count && !e; r++) {
		void *map = NULL;

		if (r == ledger->rank)
			continue;
		e = region_map_peer((int)addresses[r].pid, (int)addresses[r].fd,
			sizeof(struct page), &map);
		ledger->pages[r] = map;
	}
	return e;
}

void ledger_close(struct ledger *ledger)
{
	if (!ledger)
		return;
	for (uint32_t r = 0; r < ledger->rank_count; r++)
		if (ledger->pages[r] && r != ledger->rank)
			region_unmap(ledger->pages[r], sizeof(struct page));
	region_free(ledger->own);
	pthread_mutex_destroy(&ledger->lock);
	free(ledger);
}

struct words *ledger_words(struct ledger *ledger)
{
	return &ledger->own->words;
}

void ledger_stop_all(struct ledger *ledger)
{
	for (uint32_t r = 0; r < ledger->rank_count; r++)
		if (ledger->pages[r])
			__atomic_store_n(
				&ledger->pages[r]->words.abort, 1, __ATOMIC_RELEASE);
}

/* ---- writing ---- */

bool ledger_call_begin(struct ledger *ledger, const struct ledger_call *call)
{
	uint32_t number =
		atomic_load_explicit(&ledger->own->begun, memory_order_relaxed) + 1;
	struct line *line = &ledger->own->lines[number % CALLS_KEPT];

	atomic_store_explicit(&line->head, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_release); /* pairs with line_read()'s */
	atomic_store_explicit(&line->place, (uint64_t)call->schedule << 32 | call->root,
		memory_order_relaxed);
	atomic_store_explicit(&line->count, call->count, memory_order_relaxed);
	atomic_store_explicit(&line->head,
		number | (uint64_t)call->coll << 32 | (uint64_t)call->type << 40 |
			(uint64_t)call->op << 48 | (uint64_t)call->slots << 56,
		memory_order_release);
	atomic_store_explicit(&ledger->own->begun, number, memory_order_release);
	return number % LOOK_EVERY == 0;
}

void ledger_call_end(struct ledger *ledger)
{
	atomic_store_explicit(&ledger->own->made,
		atomic_load_explicit(&ledger->own->begun, memory_order_relaxed),
		memory_order_release);
}

static struct traffic *traffic_of(struct page *page, bool is_send, uint32_t peer)
{
	return is_send ? &page->sends[peer] : &page->receives[peer];
}

void ledger_pair_begin(struct ledger *ledger, bool is_send, uint32_t peer, uint64_t bytes)
{
	struct traffic *traffic = traffic_of(ledger->own, is_send, peer);
	uint32_t number = atomic_load_explicit(&traffic->begun, memory_order_relaxed) + 1;
	struct pair_line *line = &traffic->lines[number % PAIRS_KEPT];

	atomic_store_explicit(&line->number, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	atomic_store_explicit(&line->bytes, bytes, memory_order_relaxed);
	atomic_store_explicit(&line->after,
		atomic_load_explicit(&ledger->own->begun, memory_order_relaxed),
		memory_order_relaxed);
	atomic_store_explicit(&line->number, number, memory_order_release);
	atomic_store_explicit(&traffic->begun, number, memory_order_release);
}

void ledger_pair_end(struct ledger *ledger, bool is_send, uint32_t peer)
{
	struct traffic *traffic = traffic_of(ledger->own, is_send, peer);

	atomic_fetch_add_explicit(&traffic->made, 1, memory_order_release);
}

void ledger_give(struct ledger *ledger, uint32_t peer)
{
	atomic_store(&ledger->own->thread, thread_here());
	atomic_fetch_add(&ledger->own->given[peer], 1);
}

void ledger_await(struct ledger *ledger, uint32_t peer, uint32_t count)
{
	atomic_store(&ledger->own->thread, thread_here());
	atomic_fetch_add(&ledger->own->awaited[peer], count);
}

/* ---- comparing ---- */

/* False: the line has another call by now, or none yet. */
static bool line_read(const struct page *page, uint32_t number, struct ledger_call *call)
{
	const struct line *line = &page->lines[number % CALLS_KEPT];
	uint64_t head = atomic_load_explicit(&line->head, memory_order_acquire);
	uint64_t place = atomic_load_explicit(&line->place, memory_order_relaxed);
	uint64_t count = atomic_load_explicit(&line->count, memory_order_relaxed);

	atomic_thread_fence(memory_order_acquire);
	if ((uint32_t)head != number ||
		atomic_load_explicit(&line->head, memory_order_relaxed) != head)
		return false;
	*call = (struct ledger_call){.coll = (uint8_t)(head >> 32),
		.type = (uint8_t)(head >> 40),
		.op = (uint8_t)(head >> 48),
		.slots = (uint8_t)(head >> 56),
		.root = (uint32_t)place,
		.schedule = (uint32_t)(place >> 32),
		.count = count};
	return true;
}

static bool is_same(const struct ledger_call *a, const struct ledger_call *b)
{
	return a->coll == b->coll && a->type == b->type && a->op == b->op &&
	       a->slots == b->slots && a->root == b->root && a->schedule == b->schedule &&
	       a->count == b->count;
}

/* "all_reduce of 5000 float, sum" or "broadcast of 7 int8, root 2". */
static const char *call_text(
	const struct ledger_call *call, char *text, size_t text_bytes)
{
	enum coll coll = (enum coll)(call->coll % COLL_COUNT);
	char root[32] = "", slots[48] = "";

	if (coll_has_root(coll))
		snprintf(root, sizeof(root), ", root %u", call->root);
	if (call->slots)
		snprintf(slots, sizeof(slots), ", through slots (codec %d, schedule %x)",
			call->slots - 1, call->schedule);
	snprintf(text, text_bytes, "%s of %llu %s%s%s%s%s", coll_name(coll),
		(unsigned long long)call->count,
		dtype_name((enum dtype)(call->type % DTYPE_COUNT)),
		coll_reduces(coll) ? ", " : "",
		coll_reduces(coll) ? redop_name((enum redop)call->op) : "", root, slots);
	return text;
}

static enum err calls_compare(struct ledger *ledger, const struct compared *what)
{
	char texts[2][LEDGER_TEXT_BYTES];
	struct ledger_call calls[2];

	for (int i = 0; i < 2; i++)
		if (!line_read(ledger->pages[what->ranks[i]], what->number, &calls[i]))
			return OK;
	if (is_same(&calls[0], &calls[1]))
		return OK;
	return err_set(ERR_USAGE,
		"collective %u differs between ranks: rank %u calls %s, rank %u calls %s",
		what->number, what->ranks[0],
		call_text(&calls[0], texts[0], sizeof(texts[0])), what->ranks[1],
		call_text(&calls[1], texts[1], sizeof(texts[1])));
}

/* A send or a receive as a line has it. */
struct pair_read {
	uint64_t bytes;
	uint32_t after;
};

/* False: the line has another one by now, or none yet. */
static bool pair_read(struct traffic *traffic, uint32_t number, struct pair_read *pair)
{
	const struct pair_line *line = &traffic->lines[number % PAIRS_KEPT];
	bool is_it = atomic_load_explicit(&line->number, memory_order_acquire) == number;

	pair->bytes = atomic_load_explicit(&line->bytes, memory_order_relaxed);
	pair->after = (uint32_t)atomic_load_explicit(&line->after, memory_order_relaxed);
	atomic_thread_fence(memory_order_acquire);
	return is_it &&
	       atomic_load_explicit(&line->number, memory_order_relaxed) == number;
}

/* Messages from one rank to another: the two lists, and one message. */
struct messages {
	uint32_t from, to, number;
	struct traffic *sends, *receives;
};

static enum err bytes_differ(
	const struct messages *messages, uint64_t sent, uint64_t received)
{
	return err_set(ERR_USAGE,
		"message %u from rank %u to rank %u: rank %u sends %llu bytes and rank "
		"%u receives %llu",
		messages->number, messages->from, messages->to, messages->from,
		(unsigned long long)sent, messages->to, (unsigned long long)received);
}

/* One of the two has made the message, after so many collectives; the other has begun
 * the next collective first. */
static enum err order_differs(struct ledger *ledger, const struct messages *messages,
	bool is_sent, uint32_t after)
{
	uint32_t rank = is_sent ? messages->from : messages->to;
	uint32_t other = is_sent ? messages->to : messages->from;
	char text[LEDGER_TEXT_BYTES] = "another";
	struct ledger_call call;

	if (line_read(ledger->pages[other], after + 1, &call))
		call_text(&call, text, sizeof(text));
	return err_set(ERR_USAGE,
		"rank %u calls collective %u (%s) where rank %u %s message %u %s rank "
		"%u: "
		"all ranks must make the calls of a communicator in one order",
		other, after + 1, text, rank, is_sent ? "sends" : "receives",
		messages->number, is_sent ? "to" : "from", other);
}

/* A message that both have made. */
static enum err message_compare(struct ledger *ledger, const struct messages *messages)
{
	struct pair_read send, receive;

	if (!pair_read(messages->sends, messages->number, &send) ||
		!pair_read(messages->receives, messages->number, &receive))
		return OK;
	if (send.after != receive.after) {
		bool is_sent = (int32_t)(send.after - receive.after) < 0;

		return order_differs(
			ledger, messages, is_sent, is_sent ? send.after : receive.after);
	}
	return send.bytes == receive.bytes
		       ? OK
		       : bytes_differ(messages, send.bytes, receive.bytes);
}

/* The first message that only one of the two has made: the other cannot make it any more
 * before a collective that it has begun. Its collectives are counted before its messages
 * are, so that what is not among them comes later. */
static enum err pending_check(
	struct ledger *ledger, struct messages *messages, bool is_sent)
{
	struct page *other = ledger->pages[is_sent ? messages->to : messages->from];
	struct traffic *made = is_sent ? messages->sends : messages->receives;
	struct traffic *owed = is_sent ? messages->receives : messages->sends;
	uint32_t begun = atomic_load(&other->begun);
	struct pair_read pair;

	messages->number = atomic_load(&owed->begun) + 1;
	if ((int32_t)(atomic_load(&made->begun) - messages->number) < 0 ||
		!pair_read(made, messages->number, &pair) ||
		(int32_t)(begun - pair.after) <= 0)
		return OK;
	return order_differs(ledger, messages, is_sent, pair.after);
}

static struct messages messages_of(struct ledger *ledger, uint32_t from, uint32_t to)
{
	return (struct messages){.from = from,
		.to = to,
		.sends = &ledger->pages[from]->sends[to],
		.receives = &ledger->pages[to]->receives[from]};
}

enum err ledger_pair_check(struct ledger *ledger, bool is_send, uint32_t peer)
{
	uint32_t me = ledger->rank;
	struct messages messages = is_send ? messages_of(ledger, me, peer)
					   : messages_of(ledger, peer, me);
	struct traffic *own = is_send ? messages.sends : messages.receives;
	struct traffic *theirs = is_send ? messages.receives : messages.sends;

	messages.number = atomic_load_explicit(&own->begun, memory_order_relaxed);
	/* of two that begin at once, one at least sees the other */
	atomic_thread_fence(memory_order_seq_cst);
	if ((int32_t)(atomic_load(&theirs->begun) - messages.number) < 0)
		return OK;
	return message_compare(ledger, &messages);
}

/* What one rank sends another, as far as both lists go. */
static enum err pairs_compare(struct ledger *ledger, uint32_t from, uint32_t to)
{
	struct messages messages = messages_of(ledger, from, to);
	uint32_t sent = atomic_load_explicit(
		&messages.sends->begun, memory_order_acquire);
	uint32_t received = atomic_load_explicit(
		&messages.receives->begun, memory_order_acquire);
	uint32_t last = (int32_t)(sent - received) < 0 ? sent : received;
	enum err e = OK;

	for (uint32_t i = 0; i < PAIRS_LOOKED && i < last && !e; i++) {
		messages.number = last - i;
		e = message_compare(ledger, &messages);
	}
	if (!e)
		e = pending_check(ledger, &messages, true);
	return e ? e : pending_check(ledger, &messages, false);
}

/* How far both have come. */
static uint32_t both_begun(const struct ledger *ledger, uint32_t a, uint32_t b)
{
	uint32_t begun_a = atomic_load(&ledger->pages[a]->begun);
	uint32_t begun_b = atomic_load(&ledger->pages[b]->begun);

	return (int32_t)(begun_a - begun_b) < 0 ? begun_a : begun_b;
}

/* With the lock held. */
static enum err peer_check(struct ledger *ledger, uint32_t peer)
{
	struct compared what = {.ranks = {peer, ledger->rank}};
	uint32_t last = both_begun(ledger, peer, ledger->rank);
	enum err e = OK;

	if (peer > ledger->rank)
		what = (struct compared){.ranks = {ledger->rank, peer}};
	if (last - ledger->compared[peer] > CALLS_KEPT)
		ledger->compared[peer] = last - CALLS_KEPT;
	for (what.number = ledger->compared[peer] + 1;
		(int32_t)(last - what.number) >= 0 && !e; what.number++)
		e = calls_compare(ledger, &what);
	ledger->compared[peer] = last;
	return e;
}

enum err ledger_check(struct ledger *ledger, uint32_t *culprit)
{
	enum err e = OK;

	pthread_mutex_lock(&ledger->lock);
	for (uint32_t r = 0; r < ledger->rank_count && !e; r++) {
		if (r == ledger->rank)
			continue;
		*culprit = r;
		/* rank 0 with everybody and everybody with rank 0 is enough */
		if (!r || !ledger->rank)
			e = peer_check(ledger, r);
		if (!e)
			e = pairs_compare(ledger, r, ledger->rank);
		if (!e)
			e = pairs_compare(ledger, ledger->rank, r);
	}
	pthread_mutex_unlock(&ledger->lock);
	return e;
}

enum err ledger_search(struct ledger *ledger, uint32_t *culprit)
{
	enum err e = OK;

	for (uint32_t r = 1; r < ledger->rank_count && !e; r++) {
		uint32_t last = both_begun(ledger, 0, r);
		struct compared what = {.ranks = {0, r}};

		*culprit = r;
		for (uint32_t i = CALLS_KEPT; i-- > 0 && !e;) {
			what.number = last - i;
			if (what.number && i < last)
				e = calls_compare(ledger, &what);
		}
	}
	for (uint32_t from = 0; from < ledger->rank_count && !e; from++)
		for (uint32_t to = 0; to < ledger->rank_count && !e; to++) {
			*culprit = from;
			if (from != to)
				e = pairs_compare(ledger, from, to);
		}
	return e;
}

/* ---- who is late ---- */

static bool is_ahead(_Atomic uint32_t *ours, _Atomic uint32_t *theirs)
{
	return (int32_t)(atomic_load(ours) - atomic_load(theirs)) > 0;
}

bool ledger_is_behind(struct ledger *ledger, uint32_t peer, char text[LEDGER_TEXT_BYTES])
{
	struct page *own = ledger->own, *other = ledger->pages[peer];
	uint32_t me = ledger->rank, number = atomic_load(&other->made) + 1;
	struct ledger_call call;
	char what[LEDGER_TEXT_BYTES / 2] = "";

	if (is_ahead(&own->made, &other->made)) {
		if (line_read(own, number, &call))
			call_text(&call, what, sizeof(what));
		snprintf(text, LEDGER_TEXT_BYTES, "collective %u (%s)", number, what);
		return true;
	}
	if (is_ahead(&own->sends[peer].made, &other->receives[me].made)) {
		snprintf(text, LEDGER_TEXT_BYTES, "receive %u from rank %u",
			atomic_load(&other->receives[me].made) + 1, me);
		return true;
	}
	if (is_ahead(&own->receives[peer].made, &other->sends[me].made)) {
		snprintf(text, LEDGER_TEXT_BYTES, "send %u to rank %u",
			atomic_load(&other->sends[me].made) + 1, me);
		return true;
	}
	snprintf(text, LEDGER_TEXT_BYTES, "signal %u to rank %u",
		atomic_load(&other->given[me]) + 1, me);
	return is_ahead(&own->awaited[peer], &other->given[me]);
}

bool ledger_lacks_signals(const struct ledger *ledger, uint32_t peer)
{
	struct page *own = ledger->own, *other = ledger->pages[peer];

	return atomic_load(&other->thread) != thread_here() &&
	       is_ahead(&own->awaited[peer], &other->given[ledger->rank]);
}

/* Messages and signals between the page's owner and this rank. */
static uint64_t messages_made(struct page *page, uint32_t rank)
{
	return (uint64_t)atomic_load(&page->given[rank]) +
	       atomic_load(&page->sends[rank].made) +
	       atomic_load(&page->receives[rank].made);
}

uint64_t ledger_progress(const struct ledger *ledger, uint32_t peer)
{
	struct page *other = ledger->pages[peer];

	return atomic_load(&other->made) + messages_made(other, ledger->rank);
}

uint64_t ledger_made(const struct ledger *ledger)
{
	struct page *own = ledger->pages[ledger->rank];
	uint64_t made = atomic_load(&own->made);

	for (uint32_t r = 0; r < ledger->rank_count; r++)
		made += messages_made(own, r);
	return made;
}
