#include "boot/root.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "boot/absent.h"
#include "boot/guest.h"
#include "boot/porch.h"
#include "boot/state.h"

enum { STRANGERS_MAX = 256 };
enum {
	STRANGER_MS = 2000, /* to prove itself */
	CROWDED_MS = 100, /* the same while the door is full: an honest rank needs 1 ms */
	TICK_MS = 20,	  /* how often we look at the clock while somebody is on it */
	FLUSH_MS = 10000, /* for the slowest rank to take the verdict */
	LINGER_MS = 2000, /* a failed TCP root or porch tells late ranks, then ends */
	ACCEPT_PAUSE_MS = 10,
	STARVED_MS = 1000 /* without a descriptor for who knocks */
};

enum { COMPLAINTS_MAX = 10, EVENTS = 64 };

/* Shut down first: a forked child may hold a copy, at which ranks would queue for ever.
 */
void root_doors_close(struct root *root)
{
	for (int i = 0; i < DOORS; i++) {
		if (root->doors[i] >= 0) {
			shutdown(root->doors[i], SHUT_RDWR);
			close(root->doors[i]);
		}
		root->doors[i] = -1;
	}
}

static bool is_listening(const struct root *root)
{
	return root->doors[DOOR_HERE] >= 0;
}

/* Ask for what the guest waits for now. One that cannot be asked for is lost. */
static void guest_watch(struct root *root, struct guest *guest)
{
	int events = (guest->phase < GUEST_TOLD ? EPOLLIN : 0) |
		     (guest_has_output(guest) ? EPOLLOUT : 0);
	struct epoll_event event = {.events = (uint32_t)events, .data.ptr = guest};

	if (guest->phase == GUEST_GONE || guest->watched == events)
		return;
	if (epoll_ctl(root->epoll_fd, guest->watched < 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD,
		    guest->fd, &event))
		guest->phase = GUEST_GONE;
	guest->watched = events;
}

/* How many of those that are to hear the last word hear it with this guest? One that was
 * lost has been counted, and may be here again. */
static uint32_t hearers(const struct root *root, const struct guest *guest)
{
	if (guest->kind == WIRE_PORCH)
		return guest->rank_total;
	return !root->has_lost || guest->rank != root->lost_rank;
}

/* Tell a guest that is here, once what it was told before is on its way. */
static void guest_told(struct root *root, struct guest *guest)
{
	if (guest->phase != GUEST_HERE || guest_has_output(guest))
		return;
	root->told += hearers(root, guest);
	guest_tell(guest, &root->news);
	guest_watch(root, guest);
}

static void news_set(struct root *root, enum err code, const void *payload, size_t bytes)
{
	root->news.code = code;
	root->news.payload = payload;
	root->news.bytes = bytes;
	auth_digest(payload, bytes, root->news.digest);
}

/* `news` is of a round that went well. */
static void round_tell(struct root *root, bool is_last)
{
	root->news.is_last = root->is_decided = is_last;
	root->round++;
	for (struct guest *guest = root->guests; guest; guest = guest->next)
		guest_told(root, guest);
	root_doors_close(root);
	if (is_last)
		root->end_ns = clock_ns() + FLUSH_MS * CLOCK_MS;
	else if (root->args.timeout_ns)
		root->end_ns = clock_ns() + root->args.timeout_ns;
}

/* All are here, or have said that it went well: everybody is told, and may come with the
 * next round. */
static void round_pass(struct root *root, bool is_last)
{
	uint32_t each = root->round ? root->gather_bytes : root->record_bytes;
	const void *records = root->round ? root->gathers[root->round % 2].records
					  : root->records;

	news_set(root, OK, records, (size_t)root->rank_count * each);
	root->is_gathering = false;
	root->arrived = 0;
	memset(root->came, 0, root->rank_count);
	round_tell(root, is_last);
}

/* The one failure of a meeting: everybody here is told now, or when it has taken what it
 * was told before; later arrivals on arrival. */
static void root_decide(struct root *root, enum err code)
{
	root->is_decided = root->news.is_last = true;
	news_set(root, code, root->sentence, strlen(root->sentence));
	log_info(LOG_BOOTSTRAP, "boot: %s", root->sentence);
	for (struct guest *guest = root->guests; guest; guest = guest->next)
		guest_told(root, guest);
	if (code == ERR_TIMEOUT)
		root_doors_close(root);
	if (!is_listening(root))
		root->end_ns = clock_ns() + FLUSH_MS * CLOCK_MS;
	else if (root->args.addr.family != ADDR_UNIX || root->args.up || !root->expected)
		root->end_ns = clock_ns() + LINGER_MS * CLOCK_MS;
	else if (root->end_ns == UINT64_MAX)
		root->end_ns = clock_ns() + ROOT_IDLE_NS;
}

__attribute__((format(printf, 3, 4))) static void decide_failure(
	struct root *root, enum err code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(root->sentence, sizeof(root->sentence), format, args);
	va_end(args);
	root_decide(root, code);
}

/* A porch knows only that the root of all has said nothing. */
static void decide_timeout(struct root *root)
{
	char list[WIRE_SENTENCE_MAX - 128];
	unsigned long long limit_s = root->args.timeout_ns / CLOCK_SEC;
	uint32_t missing;

	if (root->args.up) {
		decide_failure(root, ERR_TIMEOUT,
			"the process in which the ranks meet did not answer within %llu "
			"s",
			limit_s);
		return;
	}
	missing = absent_print(root->came, root->rank_count, list, sizeof(list));
	decide_failure(root, ERR_TIMEOUT, "%s %s of %u did not %s within %llu s",
		missing == 1 ? "rank" : "ranks", list, root->rank_count,
		root->round ? "connect" : "come", limit_s);
}

/* Every rank keeps a connection open until the last has come; NCCL raises the limit, too.
 */
static void fd_limit_raise(uint32_t rank_count)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= 2ull * rank_count + 512)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* The others have so long from the first arrival on. */
static void time_begin(struct root *root)
{
	root->end_ns = root->args.timeout_ns ? clock_ns() + root->args.timeout_ns
					     : UINT64_MAX;
}

/* The first arrival says what meeting this is. */
static void meeting_open(
	struct root *root, uint32_t rank, uint32_t rank_count, uint32_t record_bytes)
{
	size_t bytes = (size_t)rank_count * record_bytes;

	root->rank_count = root->expected = rank_count;
	root->record_bytes = record_bytes;
	root->first_rank = rank;
	time_begin(root);
	if (rank_count > WIRE_RANKS_MAX) {
		decide_failure(root, ERR_USAGE,
			"rank %u says there are %u ranks; %d can meet", rank, rank_count,
			WIRE_RANKS_MAX);
		return;
	}
	root->came = calloc(rank_count ? rank_count : 1, 1);
	root->records = malloc(bytes ? bytes : 1);
	if (!root->came || !root->records)
		decide_failure(root, ERR_SYSTEM,
			"process %d, where the ranks meet, has no memory for %u ranks",
			getpid(), rank_count);
	fd_limit_raise(rank_count);
}

/* Does the claim fit the meeting? If not, that is the decision. */
static void claim_check(
	struct root *root, uint32_t rank, uint32_t rank_count, uint32_t record_bytes)
{
	if (rank_count != root->rank_count)
		decide_failure(root, ERR_USAGE,
			"rank %u says there are %u ranks, rank %u says %u", rank,
			rank_count, root->first_rank, root->rank_count);
	else if (record_bytes != root->record_bytes)
		decide_failure(root, ERR_USAGE,
			"rank %u sends a record of %u bytes, rank %u one of %u: they run "
			"different versions of this library",
			rank, record_bytes, root->first_rank, root->record_bytes);
	else if (rank >= root->rank_count)
		decide_failure(root, ERR_USAGE, "there is no rank %u among %u ranks",
			rank, root->rank_count);
	else if (root->came[rank])
		decide_failure(root, ERR_USAGE,
			"two ranks say that they are rank %u of %u", rank,
			root->rank_count);
}

/* A rank has come: is it one of this meeting, which is still to be decided? */
static bool arrival_check(
	struct root *root, uint32_t rank, uint32_t rank_count, uint32_t record_bytes)
{
	if (!root->rank_count && !root->is_decided)
		meeting_open(root, rank, rank_count, record_bytes);
	if (rank_count > root->expected)
		root->expected = rank_count;
	if (!root->is_decided)
		claim_check(root, rank, rank_count, record_bytes);
	return !root->is_decided;
}

/* Its record is here, too. */
static void rank_come(struct root *root, uint32_t rank)
{
	root->came[rank] = 1;
	if (++root->arrived == root->rank_count)
		round_pass(root, false);
}

static void rank_lost(struct root *root, uint32_t rank)
{
	if (root->round)
		decide_failure(root, ERR_REMOTE,
			"rank %u died while the communicator was made", rank);
	else
		decide_failure(root, ERR_REMOTE,
			"rank %u left before all %u ranks had come", rank,
			root->expected);
}

/* What is said for a rank that there is not has no meaning. */
static bool rank_is_known(const struct root *root, const struct guest *guest)
{
	return guest->round.said.rank < root->rank_count;
}

/* What others are to make of one rank's failure: misuse is everybody's, the rest is
 * something that happened elsewhere. */
static enum err code_elsewhere(enum err code)
{
	return code == ERR_USAGE || code == ERR_ARGUMENT || code == ERR_TIMEOUT
		       ? code
		       : ERR_REMOTE;
}

/* Is what this rank brings of the size that the others bring? The first says so. */
static bool gather_fits(struct root *root, const struct guest *guest)
{
	if (!root->is_gathering) {
		root->is_gathering = true;
		root->gather_bytes = guest->round.said.brings;
		root->gather_rank = guest->round.said.rank;
	}
	if (root->gather_bytes == guest->round.said.brings)
		return true;
	decide_failure(root, ERR_USAGE,
		"rank %u brings %u bytes and rank %u %u: they run different versions of "
		"this library",
		guest->round.said.rank, guest->round.said.brings, root->gather_rank,
		root->gather_bytes);
	return false;
}

/* Where is the record of this word to go, when all ranks' are kept? */
static void gather_place(struct root *root, struct guest *guest)
{
	size_t bytes = (size_t)root->rank_count * guest->bring_bytes;
	struct gather *gather = &root->gathers[root->round % 2];

	if (root->is_decided || !rank_is_known(root, guest) || !gather_fits(root, guest))
		return;
	if (gather->room < bytes) {
		/* nobody has a place in the old one: all bring as much as the first */
		free(gather->records);
		gather->records = malloc(bytes);
		gather->room = gather->records ? bytes : 0;
	}
	if (gather->records)
		guest->bring_to = gather->records +
				  (size_t)guest->round.said.rank * guest->bring_bytes;
	else
		decide_failure(root, ERR_SYSTEM,
			"process %d, where the ranks meet, has no memory for %zu bytes",
			getpid(), bytes);
}

/* Of one that comes by a porch: among those of the others, if it fits. */
static void arrival_place(struct root *root, struct guest *guest)
{
	if (arrival_check(root, guest->round.said.rank, guest->round.said.rank_count,
		    guest->round.said.brings))
		guest->bring_to = root->records +
				  (size_t)guest->round.said.rank * root->record_bytes;
}

/* Its word has come and a record follows. A porch of ours keeps it until it is passed on.
 */
static void record_place(struct root *root, struct guest *guest)
{
	if (root->args.up) {
		free(guest->bag);
		guest->bag = guest->bring_to = malloc(guest->bring_bytes);
		if (!guest->bag)
			decide_failure(root, ERR_SYSTEM,
				"rank %u (process %d), where the ranks of this host "
				"meet, has no memory for %u bytes",
				root->args.rank, getpid(), guest->bring_bytes);
	} else if (guest->round.said.what == WIRE_COMES) {
		arrival_place(root, guest);
	} else {
		gather_place(root, guest);
	}
}

/* Pass it on to the root of all. */
static void word_forward(struct root *root, const struct guest *guest, uint32_t what)
{
	const struct guest_word *said = &guest->round.said;
	bool is_coming = what == WIRE_COMES;
	struct porch_word word = {.what = what,
		.rank = guest->rank,
		.rank_count = guest->rank_count,
		.code = is_coming ? OK : said->code,
		.is_last = !is_coming && said->is_last,
		.sentence = !is_coming && said->code ? said->sentence : NULL,
		.record = is_coming ? guest->io.in : guest->bag,
		.record_bytes = is_coming ? guest->record_bytes : said->brings};

	if (what == WIRE_IS_LOST)
		word.record_bytes = 0;
	if (what == WIRE_SAYS && guest->kind == WIRE_CANNOT && !said->code)
		word.code = ERR_REMOTE;
	root->is_last_round = word.is_last;
	porch_say(root->args.up, &word);
}

/* One of us has said how it went. */
static void guest_speak(struct root *root, struct guest *guest)
{
	uint32_t rank = guest->round.said.rank;

	if (root->is_decided)
		return;
	if (root->args.up) {
		word_forward(root, guest, WIRE_SAYS);
		return;
	}
	if (guest->round.said.code || guest->kind == WIRE_CANNOT) {
		decide_failure(root, code_elsewhere(guest->round.said.code),
			"rank %u: %s", rank, guest->round.said.sentence);
		return;
	}
	if (!rank_is_known(root, guest) || !gather_fits(root, guest))
		return;
	root->arrived += !root->came[rank];
	root->came[rank] = 1;
	if (root->arrived == root->rank_count)
		round_pass(root, guest->round.said.is_last);
}

/* Somebody who speaks for others has said something of one of them. */
static void porch_speak(struct root *root, struct guest *guest)
{
	const struct guest_word *said = &guest->round.said;

	if (said->what == WIRE_NO_PORCH) {
		guest->is_member = false; /* its rank comes by itself */
		guest->phase = GUEST_GONE;
	} else if (said->what == WIRE_SAYS) {
		guest_speak(root, guest);
	} else if (root->is_decided) {
		return;
	} else if (said->what == WIRE_IS_LOST) {
		rank_lost(root, said->rank);
	} else if (said->brings || arrival_check(root, said->rank, said->rank_count, 0)) {
		guest->rank_total++;
		rank_come(root, said->rank);
	}
	guest->round.has_said = false; /* there may be more of this round */
}

/* A guest has proved itself and its record is whole. */
static void guest_arrive(struct root *root, struct guest *guest)
{
	if (guest->kind == WIRE_CANNOT || guest->kind == WIRE_PORCH) { /* more follows */
		if (guest->rank_count > root->expected)
			root->expected = guest->rank_count;
		guest->is_member = true;
		if (root->is_decided)
			guest_told(root, guest);
		return;
	}
	if (root->args.up && !root->is_decided) {
		guest->is_member = true;
		if (!root->arrived++)
			time_begin(root);
		word_forward(root, guest, WIRE_COMES);
		return;
	}
	if (!arrival_check(root, guest->rank, guest->rank_count, guest->record_bytes)) {
		/* If it was decided just now, this guest is told already. */
		guest_told(root, guest);
		return;
	}
	guest->is_member = true;
	memcpy(root->records + (size_t)guest->rank * root->record_bytes, guest->io.in,
		root->record_bytes);
	rank_come(root, guest->rank);
}

/* One of us is lost without a word: nobody should wait for the deadline. */
static void guest_leave(struct root *root, const struct guest *guest)
{
	if (root->is_decided)
		return;
	if (root->args.up) {
		word_forward(root, guest, WIRE_IS_LOST);
	} else {
		/* a porch is the process of a rank, which came or was about to */
		root->told++;
		root->has_lost = true;
		root->lost_rank = guest->rank;
		rank_lost(root, guest->rank);
	}
}

static void guest_hear(struct root *root, struct guest *guest)
{
	bool was_stranger = guest_is_stranger(guest), had_said = guest->round.has_said;
	bool had_recanted = guest->round.has_recanted;

	guest_move(guest, root->args.secret);
	if (guest->phase == GUEST_HERE && guest_is_bringing(guest)) {
		record_place(root, guest);
		guest_move(guest, root->args.secret); /* most often it is there */
	}
	/* A spare id's root is sent home; ranks that are here are not to be robbed of it.
	 */
	if (was_stranger && guest->kind == WIRE_DISMISS &&
		(guest->phase == GUEST_RECORD || guest->phase == GUEST_HERE)) {
		guest->phase = GUEST_GONE;
		if (!root->rank_count)
			root->end_ns = 0;
		return;
	}
	if (was_stranger && guest->phase == GUEST_HERE)
		guest_arrive(root, guest);
	else if (guest->phase == GUEST_HERE && guest->round.has_said &&
		 (!had_said || guest->round.has_recanted != had_recanted))
		guest->kind == WIRE_PORCH ? porch_speak(root, guest)
					  : guest_speak(root, guest);
	/* it was in the middle of an earlier verdict when all was decided */
	if (root->is_decided)
		guest_told(root, guest);
}

/* All that has come; of what is sealed, epoll does not know the rest. Every message moves
 * the guest on, which bounds it. */
static void guest_serve(struct root *root, struct guest *guest)
{
	do
		guest_hear(root, guest);
	while (guest_has_input(guest));
	guest_watch(root, guest);
}

/* The listener goes on; who has read ten such lines has read enough. */
static void guest_complain(struct root *root, const struct guest *guest)
{
	if (!guest->fault || root->complaints++ >= COMPLAINTS_MAX)
		return;
	if (guest->fault == SEAL_NO_KEY_THERE)
		log_attn(
			"boot: dropped a process that wants encryption, for which this "
			"one has no pre-shared key: call ncclSetEncryption with the same "
			"key in all processes");
	else
		log_attn("boot: dropped a connection: %s", seal_fault_text(guest->fault));
}

/* A forked child's copy of the socket would keep it in the set. */
static void guest_drop(struct root *root, struct guest *guest)
{
	epoll_ctl(root->epoll_fd, EPOLL_CTL_DEL, guest->fd, NULL);
	guest_destroy(guest);
	root->guest_count--;
}

/* Put out those that are done, and strangers that take too long. */
static void guests_sweep(struct root *root)
{
	uint64_t now = clock_ns();
	uint64_t patience = root->stranger_count < STRANGERS_MAX ? STRANGER_MS
								 : CROWDED_MS;

	root->stranger_count = 0;
	for (struct guest **at = &root->guests; *at;) {
		struct guest *guest = *at;
		bool is_stranger = guest_is_stranger(guest);
		bool is_late = now > guest->since_ns &&
			       now - guest->since_ns > patience * CLOCK_MS;

		if (guest->phase == GUEST_GONE ||
			(is_stranger && (is_late || !is_listening(root)))) {
			guest_complain(root, guest);
			if (guest->is_member)
				guest_leave(root, guest);
			*at = guest->next;
			guest_drop(root, guest);
			continue;
		}
		root->stranger_count += is_stranger;
		at = &guest->next;
	}
}

static bool door_is_open(const struct root *root)
{
	return is_listening(root) && root->stranger_count < STRANGERS_MAX &&
	       clock_ns() >= root->accept_ns;
}

/* Out of descriptors, most likely: they come back. When they do not, the spare one lets
 * the ranks in one after the other to hear why. */
static void door_starve(struct root *root, int cause)
{
	uint64_t now = clock_ns();

	root->accept_ns = now + ACCEPT_PAUSE_MS * CLOCK_MS;
	if (!root->starved_ns)
		root->starved_ns = now;
	if (now - root->starved_ns < STARVED_MS * CLOCK_MS || root->spare_fd < 0)
		return;
	close(root->spare_fd);
	root->spare_fd = -1;
	if (root->is_decided)
		return;
	if (root->args.up)
		decide_failure(root, ERR_SYSTEM,
			"rank %u, where the ranks of its host meet, cannot accept them: "
			"%s; "
			"see ulimit -n",
			root->args.rank, strerror(cause));
	else
		decide_failure(root, ERR_SYSTEM,
			"process %d, where the ranks meet, cannot accept them: %s; see "
			"ulimit -n",
			getpid(), strerror(cause));
}

/* NULL: there is no memory for it, and it may come again. */
static struct guest *guest_admit(struct root *root, int fd)
{
	struct seal *seal = NULL;
	struct guest *guest = NULL;

	if (root->args.is_sealed)
		seal = seal_create(fd, SEAL_SERVER, root->args.psk);
	if (seal || !root->args.is_sealed)
		guest = guest_create(fd, seal, clock_ns());
	if (!guest) {
		seal_destroy(seal);
		close(fd);
		return NULL;
	}
	guest->next = root->guests;
	root->guests = guest;
	root->guest_count++;
	root->stranger_count++;
	return guest;
}

static void guests_accept(struct root *root, int door)
{
	while (door_is_open(root)) {
		int fd, status = addr_accept(root->doors[door], &fd);
		struct guest *guest;

		if (status == EAGAIN)
			return;
		if (status) {
			door_starve(root, status);
			return;
		}
		root->starved_ns = 0;
		guest = guest_admit(root, fd);
		if (!guest)
			return;
		/* Its first words have often come with it. */
		guest_serve(root, guest);
	}
}

/* The doors are looked at only while there is room for who knocks. */
static void doors_watch(struct root *root, bool is_open)
{
	if (is_open == root->is_knockable)
		return;
	for (int i = 0; i < DOORS; i++) {
		struct epoll_event event = {
			.events = is_open ? EPOLLIN : 0, .data.ptr = &root->doors[i]};

		if (root->doors[i] >= 0)
			epoll_ctl(root->epoll_fd, EPOLL_CTL_MOD, root->doors[i], &event);
	}
	root->is_knockable = is_open;
}

static bool root_is_over(struct root *root)
{
	if (clock_ns() < root->end_ns) /* not before it is known who is to be told */
		return root->is_decided && !root->guest_count &&
		       (!is_listening(root) ||
			       (root->expected && root->told >= root->expected));
	if ((root->rank_count || root->args.up) && !root->is_decided) {
		decide_timeout(root);
		guests_sweep(root);
		return !root->guest_count;
	}
	return true;
}

/* Somebody of this process has something to say. False: we are to stop. */
static bool root_woken(struct root *root)
{
	struct refusal refusal;
	eventfd_t count;
	bool goes_on;

	eventfd_read(root->wake_fd, &count);
	goes_on = root_refusal_take(root, &refusal);
	root->told += refusal.count; /* they will not come to hear it */
	if (!root->expected)
		root->expected = refusal.rank_count;
	if (goes_on && refusal.code && !root->is_decided)
		decide_failure(root, code_elsewhere(refusal.code), "rank %u: %s",
			refusal.rank, refusal.sentence);
	return goes_on;
}

/* What the root of all says goes to the ranks of this host. */
static void porch_verdict(
	struct root *root, enum err code, const unsigned char *payload, size_t bytes)
{
	struct porch *up = root->args.up;

	memcpy(root->news.meeting, up->verdict.meeting, sizeof(root->news.meeting));
	if (code) {
		snprintf(root->sentence, sizeof(root->sentence), "%.*s", (int)bytes,
			(const char *)payload);
		root_decide(root, code);
		return;
	}
	news_set(root, OK, payload, bytes);
	round_tell(root, root->is_last_round);
}

static void porch_serve(struct root *root)
{
	struct porch *up = root->args.up;
	struct epoll_event event = {.data.ptr = &up->fd};
	const unsigned char *payload;
	enum err code;
	size_t bytes;

	porch_flush(up);
	while (!root->is_decided && porch_hear(up, &code, &payload, &bytes))
		porch_verdict(root, code, payload, bytes);
	if (up->is_gone && !root->is_decided)
		decide_failure(root, ERR_REMOTE,
			"the process in which the ranks meet has gone while the "
			"communicator was made");
	/* once all is decided there is nothing to be heard */
	event.events = (root->is_decided || up->is_gone ? 0u : EPOLLIN) |
		       (porch_has_output(up) ? EPOLLOUT : 0u);
	epoll_ctl(root->epoll_fd, EPOLL_CTL_MOD, up->fd, &event);
}

/* One thing that happened. False: we are to stop. */
static bool event_take(struct root *root, void *what)
{
	if (root->args.up && what == &root->args.up->fd)
		return true; /* below, in any case */
	if (what == &root->wake_fd)
		return root_woken(root);
	for (int i = 0; i < DOORS; i++)
		if (what == &root->doors[i]) {
			guests_accept(root, i);
			return true;
		}
	guest_serve(root, what);
	return true;
}

/* Wait for something to happen, and see to it. False: we are to stop. */
static bool root_wait(struct root *root)
{
	struct epoll_event events[EVENTS];
	bool is_ticking = root->stranger_count > 0 || clock_ns() < root->accept_ns;
	uint64_t look_ns = stall_look(&root->stall, root);
	int timeout_ms = clock_left_ms(look_ns < root->end_ns ? look_ns : root->end_ns,
		is_ticking ? TICK_MS : 60000);
	int count;

	doors_watch(root, door_is_open(root));
	count = epoll_wait(root->epoll_fd, events, EVENTS, timeout_ms);
	/* guests are put out only after all of it: an event may be of one of them */
	for (int i = 0; i < count; i++)
		if (!event_take(root, events[i].data.ptr))
			return false;
	if (root->args.up)
		porch_serve(root);
	guests_sweep(root);
	return true;
}

void *root_run(void *argument)
{
	struct root *root = argument;

	while (!root_is_over(root) && root_wait(root))
		;
	while (root->guests) {
		struct guest *guest = root->guests;

		root->guests = guest->next;
		guest_drop(root, guest);
	}
	log_info(LOG_BOOTSTRAP, "boot: root ends after %u rounds of %u ranks",
		root->round, root->rank_count);
	root_end(root);
	return NULL;
}
