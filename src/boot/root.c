#include "boot/root.h"

#include <errno.h>

#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "boot/absent.h"
#include "boot/guest.h"

enum { STRANGERS_MAX = 256 };
enum {
	STRANGER_MS = 2000, /* to prove itself */
	CROWDED_MS = 100, /* the same while the door is full: an honest rank needs 1 ms */
	TICK_MS = 20,	  /* how often we look at the clock while somebody is on it */
	FLUSH_MS = 10000, /* for the slowest rank to take the verdict */
	LINGER_MS = 2000, /* a failed TCP root tells late ranks, then frees the port */
	ACCEPT_PAUSE_MS = 10,
	STARVED_MS = 1000 /* without a descriptor for who knocks */
};

/* With no rank at all we wait this long: ids are often made well before they are used. */
#define IDLE_NS (3600 * CLOCK_SEC)

enum { COMPLAINTS_MAX = 10 };

/* At the address itself, and where other hosts come to. */
enum { DOOR_HERE, DOOR_AWAY, DOORS, FIXED_POLLS = DOORS + 1 };

struct root {
	struct root *next;   /* in `roots` */
	pthread_t thread;    /* joined by whoever takes it off the list */
	pid_t process;	     /* a forked child must not join it */
	atomic_bool is_done; /* pairs with roots_reap() */
	int wake_fd;	     /* owned; readable means stop, or look at `refusal` */
	/* A rank of this process cannot come and cannot say so by a socket; guarded by
	 * roots_lock. */
	struct refusal {
		enum err code; /* OK: none */
		uint32_t rank, rank_count, count;
		char sentence[WIRE_SENTENCE_MAX];
	} refusal;
	bool is_ending; /* guarded by roots_lock */

	/* The rest belongs to the thread. */
	struct root_args args;
	int doors[DOORS]; /* owned: they listen; -1 once closed, or not there */
	uint64_t accept_ns, end_ns;
	struct guest *guests; /* owned; the first `guest_count` are valid */
	struct pollfd *polls; /* owned: the wake, the doors, then the guests */
	uint32_t guest_count, guest_capacity, stranger_count;
	uint32_t rank_count, record_bytes, first_rank; /* what the first arrival said */
	uint32_t arrived, told, expected;
	uint32_t round;		/* verdicts given; 0: ranks are still coming */
	unsigned char *came;	/* owned; per rank: here, or has said in this round */
	unsigned char *records; /* owned; in rank order */
	/* Records of later rounds; owned. Two take turns: while one round's are sent,
	 * those of the next may come. */
	struct gather {
		unsigned char *records;
		size_t room;
	} gathers[2];
	uint32_t
		gather_bytes; /* a record of this round, as the first rank to say it .. */
	uint32_t gather_rank; /* .. this one, has it */
	bool is_gathering;    /* the two are set */
	bool is_decided;      /* `news` is the last word */
	uint64_t starved_ns;  /* since when no descriptor is left for who knocks; 0 */
	int spare_fd;	      /* owned: given up to tell so; -1 */
	uint32_t complaints;  /* lines about strangers without the key */
	struct guest_news news;
	char sentence[WIRE_SENTENCE_MAX];
};

/* All roots of this process, so that none outlives the library's code. */
static pthread_mutex_t roots_lock = PTHREAD_MUTEX_INITIALIZER;
static struct root *roots;
static _Atomic pid_t roots_process; /* who made the newest */

/* Shut down first: a forked child may hold a copy, at which ranks would queue for ever.
 */
static void listen_stop(struct root *root)
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

/* Tell a guest that is here, once what it was told before is on its way. */
static void guest_told(struct root *root, struct guest *guest)
{
	if (guest->phase != GUEST_HERE || guest_has_output(guest))
		return;
	root->told++;
	guest_tell(guest, &root->news);
}

static void news_set(struct root *root, enum err code, const void *payload, size_t bytes)
{
	root->news.code = code;
	root->news.payload = payload;
	root->news.bytes = bytes;
	auth_digest(payload, bytes, root->news.digest);
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
	root->news.is_last = root->is_decided = is_last;
	root->round++;
	root->arrived = 0;
	memset(root->came, 0, root->rank_count);
	for (uint32_t i = 0; i < root->guest_count; i++)
		guest_told(root, &root->guests[i]);
	listen_stop(root);
	if (is_last)
		root->end_ns = clock_ns() + FLUSH_MS * CLOCK_MS;
	else if (root->args.timeout_ns)
		root->end_ns = clock_ns() + root->args.timeout_ns;
}

/* The one failure of a meeting: everybody here is told now, or when it has taken what it
 * was told before; later arrivals on arrival. */
static void root_decide(struct root *root, enum err code)
{
	root->is_decided = root->news.is_last = true;
	news_set(root, code, root->sentence, strlen(root->sentence));
	log_info(LOG_BOOTSTRAP, "boot: %s", root->sentence);
	for (uint32_t i = 0; i < root->guest_count; i++)
		guest_told(root, &root->guests[i]);
	if (code == ERR_TIMEOUT)
		listen_stop(root);
	if (!is_listening(root))
		root->end_ns = clock_ns() + FLUSH_MS * CLOCK_MS;
	else if (root->args.addr.family != ADDR_UNIX)
		root->end_ns = clock_ns() + LINGER_MS * CLOCK_MS;
	else if (root->end_ns == UINT64_MAX)
		root->end_ns = clock_ns() + IDLE_NS;
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

static void decide_timeout(struct root *root)
{
	char list[WIRE_SENTENCE_MAX - 128];
	uint32_t missing = absent_print(root->came, root->rank_count, list, sizeof(list));

	decide_failure(root, ERR_TIMEOUT, "%s %s of %u did not %s within %llu s",
		missing == 1 ? "rank" : "ranks", list, root->rank_count,
		root->round ? "connect" : "come",
		(unsigned long long)(root->args.timeout_ns / CLOCK_SEC));
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

/* Room for `capacity` guests; the array may move. */
static bool guests_grow(struct root *root, uint32_t capacity)
{
	struct guest *guests = realloc(root->guests, capacity * sizeof(*guests));
	struct pollfd *polls;

	if (!guests)
		return false;
	root->guests = guests;
	polls = realloc(root->polls, (capacity + FIXED_POLLS) * sizeof(*polls));
	if (!polls)
		return false;
	root->polls = polls;
	root->guest_capacity = capacity;
	return true;
}

/* The first arrival says what meeting this is. Its guest may move. */
static void meeting_open(struct root *root, uint32_t index)
{
	struct guest first = root->guests[index];
	size_t bytes = (size_t)first.rank_count * first.record_bytes;

	root->rank_count = root->expected = first.rank_count;
	root->record_bytes = first.record_bytes;
	root->first_rank = first.rank;
	if (root->args.timeout_ns)
		root->end_ns = clock_ns() + root->args.timeout_ns;
	else
		root->end_ns = UINT64_MAX;
	if (first.rank_count > WIRE_RANKS_MAX) {
		decide_failure(root, ERR_USAGE,
			"rank %u says there are %u ranks; %d can meet", first.rank,
			first.rank_count, WIRE_RANKS_MAX);
		return;
	}
	root->came = calloc(first.rank_count ? first.rank_count : 1, 1);
	root->records = malloc(bytes ? bytes : 1);
	if (!root->came || !root->records ||
		!guests_grow(root, STRANGERS_MAX + first.rank_count))
		decide_failure(root, ERR_SYSTEM,
			"process %d, where the ranks meet, has no memory for %u ranks",
			getpid(), first.rank_count);
	fd_limit_raise(first.rank_count);
}

/* Does the claim fit the meeting? If not, that is the decision. */
static void claim_check(struct root *root, const struct guest *guest)
{
	if (guest->rank_count != root->rank_count)
		decide_failure(root, ERR_USAGE,
			"rank %u says there are %u ranks, rank %u says %u", guest->rank,
			guest->rank_count, root->first_rank, root->rank_count);
	else if (guest->record_bytes != root->record_bytes)
		decide_failure(root, ERR_USAGE,
			"rank %u sends a record of %u bytes, rank %u one of %u: they run "
			"different versions of this library",
			guest->rank, guest->record_bytes, root->first_rank,
			root->record_bytes);
	else if (guest->rank >= root->rank_count)
		decide_failure(root, ERR_USAGE, "there is no rank %u among %u ranks",
			guest->rank, root->rank_count);
	else if (root->came[guest->rank])
		decide_failure(root, ERR_USAGE,
			"two ranks say that they are rank %u of %u", guest->rank,
			root->rank_count);
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
		root->gather_bytes = guest->said.brings;
		root->gather_rank = guest->rank;
	}
	if (root->gather_bytes == guest->said.brings)
		return true;
	decide_failure(root, ERR_USAGE,
		"rank %u brings %u bytes and rank %u %u: they run different versions of "
		"this library",
		guest->rank, guest->said.brings, root->gather_rank, root->gather_bytes);
	return false;
}

/* Its word has come: where is the record that follows to go? */
static void gather_place(struct root *root, struct guest *guest)
{
	size_t bytes = (size_t)root->rank_count * guest->bring_bytes;
	struct gather *gather = &root->gathers[root->round % 2];

	if (root->is_decided || !gather_fits(root, guest))
		return;
	if (gather->room < bytes) {
		/* nobody has a place in the old one: all bring as much as the first */
		free(gather->records);
		gather->records = malloc(bytes);
		gather->room = gather->records ? bytes : 0;
	}
	if (gather->records)
		guest->bring_to = gather->records +
				  (size_t)guest->rank * guest->bring_bytes;
	else
		decide_failure(root, ERR_SYSTEM,
			"process %d, where the ranks meet, has no memory for %zu bytes",
			getpid(), bytes);
}

/* One of us has said how it went. */
static void guest_speak(struct root *root, struct guest *guest)
{
	if (root->is_decided)
		return;
	if (guest->said.code || guest->kind == WIRE_CANNOT) {
		decide_failure(root, code_elsewhere(guest->said.code), "rank %u: %s",
			guest->rank, guest->said.sentence);
		return;
	}
	if (!gather_fits(root, guest))
		return;
	root->came[guest->rank] = 1;
	if (++root->arrived == root->rank_count)
		round_pass(root, guest->said.is_last);
}

/* A guest has proved itself and its record is whole. */
static void guest_arrive(struct root *root, uint32_t index)
{
	struct guest *guest = &root->guests[index];

	if (guest->kind == WIRE_CANNOT) { /* it is about to say why */
		if (guest->rank_count > root->expected)
			root->expected = guest->rank_count;
		guest->is_member = true;
		if (root->is_decided)
			guest_told(root, guest);
		return;
	}
	if (!root->rank_count && !root->is_decided) {
		meeting_open(root, index);
		guest = &root->guests[index];
	}
	if (guest->rank_count > root->expected)
		root->expected = guest->rank_count;
	if (!root->is_decided)
		claim_check(root, guest);
	if (root->is_decided) {
		/* If it was decided just now, this guest is told already. */
		guest_told(root, guest);
		return;
	}
	guest->is_member = true;
	memcpy(root->records + (size_t)guest->rank * root->record_bytes, guest->in,
		root->record_bytes);
	root->came[guest->rank] = 1;
	if (++root->arrived == root->rank_count)
		round_pass(root, false);
}

/* One of us is lost without a word: nobody should wait for the deadline. */
static void guest_leave(struct root *root, const struct guest *guest)
{
	if (root->is_decided)
		return;
	root->told++;
	if (root->round)
		decide_failure(root, ERR_REMOTE,
			"rank %u died while the communicator was made", guest->rank);
	else
		decide_failure(root, ERR_REMOTE,
			"rank %u left before all %u ranks had come", guest->rank,
			root->rank_count);
}

static void guest_serve(struct root *root, uint32_t index)
{
	struct guest *guest = &root->guests[index];
	bool was_stranger = guest_is_stranger(guest), had_said = guest->has_said;

	guest_move(guest, root->args.secret);
	if (guest->phase == GUEST_HERE && guest_is_bringing(guest)) {
		gather_place(root, guest);
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
		guest_arrive(root, index);
	else if (guest->phase == GUEST_HERE && guest->has_said && !had_said)
		guest_speak(root, guest);
	/* it was in the middle of an earlier verdict when all was decided */
	if (root->is_decided)
		guest_told(root, &root->guests[index]);
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

/* Put out those that are done, and strangers that take too long. */
static void guests_sweep(struct root *root)
{
	uint64_t now = clock_ns();
	uint64_t patience = root->stranger_count < STRANGERS_MAX ? STRANGER_MS
								 : CROWDED_MS;

	root->stranger_count = 0;
	for (uint32_t i = 0; i < root->guest_count;) {
		struct guest *guest = &root->guests[i];
		bool is_stranger = guest_is_stranger(guest);
		bool is_late = now > guest->since_ns &&
			       now - guest->since_ns > patience * CLOCK_MS;

		if (guest->phase == GUEST_GONE ||
			(is_stranger && (is_late || !is_listening(root)))) {
			guest_complain(root, guest);
			if (guest->is_member)
				guest_leave(root, guest);
			guest_fini(guest);
			*guest = root->guests[--root->guest_count];
			continue;
		}
		root->stranger_count += is_stranger;
		i++;
	}
}

static bool door_is_open(const struct root *root)
{
	return is_listening(root) && root->stranger_count < STRANGERS_MAX &&
	       root->guest_count < root->guest_capacity && clock_ns() >= root->accept_ns;
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
	if (!root->is_decided)
		decide_failure(root, ERR_SYSTEM,
			"process %d, where the ranks meet, cannot accept them: %s",
			getpid(), strerror(cause));
}

/* False: there is no memory for it, and it may come again. */
static bool guest_admit(struct root *root, int fd)
{
	struct seal *seal = NULL;

	if (root->args.is_sealed)
		seal = seal_create(fd, SEAL_SERVER, root->args.psk);
	if (root->args.is_sealed && !seal) {
		close(fd);
		return false;
	}
	guest_init(&root->guests[root->guest_count++], fd, seal, clock_ns());
	root->stranger_count++;
	return true;
}

static void guests_accept(struct root *root, int door)
{
	while (door_is_open(root)) {
		int fd, status = addr_accept(root->doors[door], &fd);

		if (status == EAGAIN)
			return;
		if (status) {
			door_starve(root, status);
			return;
		}
		root->starved_ns = 0;
		if (!guest_admit(root, fd))
			return;
		/* Its first words have often come with it. */
		guest_serve(root, root->guest_count - 1);
	}
}

static bool root_is_over(struct root *root)
{
	if (clock_ns() < root->end_ns)
		return root->is_decided && !root->guest_count &&
		       (!is_listening(root) || root->told >= root->expected);
	if (root->rank_count && !root->is_decided) {
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
	pthread_mutex_lock(&roots_lock);
	refusal = root->refusal;
	root->refusal.count = 0;
	goes_on = !root->is_ending;
	pthread_mutex_unlock(&roots_lock);
	root->told += refusal.count; /* they will not come to hear it */
	if (!root->expected)
		root->expected = refusal.rank_count;
	if (goes_on && refusal.code && !root->is_decided)
		decide_failure(root, code_elsewhere(refusal.code), "rank %u: %s",
			refusal.rank, refusal.sentence);
	return goes_on;
}

/* Wait for something to happen. False: we are to stop. */
static bool root_wait(struct root *root)
{
	struct pollfd *polls = root->polls;
	bool is_ticking = root->stranger_count > 0 || clock_ns() < root->accept_ns;
	int timeout_ms = clock_left_ms(root->end_ns, is_ticking ? TICK_MS : 60000);
	bool has_input = false;

	for (int i = 0; i < DOORS; i++)
		polls[i] = (struct pollfd){
			.fd = door_is_open(root) ? root->doors[i] : -1, .events = POLLIN};
	polls[DOORS] = (struct pollfd){.fd = root->wake_fd, .events = POLLIN};
	for (uint32_t i = 0; i < root->guest_count; i++) {
		const struct guest *guest = &root->guests[i];
		int events = guest->phase < GUEST_TOLD ? POLLIN : 0;

		if (guest_has_output(guest))
			events |= POLLOUT;
		polls[i + FIXED_POLLS] = (struct pollfd){
			.fd = guest->fd, .events = (short)events};
		has_input = has_input || guest_has_input(guest);
	}
	if (poll(polls, root->guest_count + FIXED_POLLS, has_input ? 0 : timeout_ms) <= 0)
		for (uint32_t i = 0; i < root->guest_count + FIXED_POLLS; i++)
			polls[i].revents = 0;
	for (uint32_t i = 0; i < root->guest_count && has_input; i++)
		if (guest_has_input(&root->guests[i]))
			polls[i + FIXED_POLLS].revents |= POLLIN;
	return !polls[DOORS].revents || root_woken(root);
}

static void *root_run(void *argument)
{
	struct root *root = argument;

	while (!root_is_over(root) && root_wait(root)) {
		uint32_t count = root->guest_count;
		bool is_knocking[DOORS];

		for (int i = 0; i < DOORS; i++)
			is_knocking[i] = root->polls[i].revents != 0;

		/* Serving adds no guest and moves none, so the two arrays stay in step.
		 */
		for (uint32_t i = 0; i < count; i++)
			if (root->polls[i + FIXED_POLLS].revents)
				guest_serve(root, i);
		for (int i = 0; i < DOORS; i++)
			if (is_knocking[i])
				guests_accept(root, i);
		guests_sweep(root);
	}
	for (uint32_t i = 0; i < root->guest_count; i++)
		guest_fini(&root->guests[i]);
	root->guest_count = 0;
	listen_stop(root);
	log_info(LOG_BOOTSTRAP, "boot: root ends after %u rounds of %u ranks",
		root->round, root->rank_count);
	atomic_store_explicit(&root->is_done, true, memory_order_release);
	return NULL;
}

static void root_destroy(struct root *root)
{
	listen_stop(root);
	if (root->wake_fd >= 0)
		close(root->wake_fd);
	if (root->spare_fd >= 0)
		close(root->spare_fd);
	free(root->guests);
	free(root->polls);
	free(root->came);
	free(root->records);
	free(root->gathers[0].records);
	free(root->gathers[1].records);
	auth_wipe(&root->args, sizeof(root->args));
	free(root);
}

/* Join the roots that have ended; with `is_exit` end and join all, with `addr` this one.
 */
static void roots_reap(bool is_exit, const struct addr *addr)
{
	struct root *ended = NULL;

	pthread_mutex_lock(&roots_lock);
	for (struct root **at = &roots; *at;) {
		struct root *root = *at;
		bool is_done = atomic_load_explicit(&root->is_done, memory_order_acquire);

		bool is_meant = is_exit ||
				(addr && !memcmp(addr, &root->args.addr, sizeof(*addr)));

		if (root->process != getpid() || (!is_done && !is_meant)) {
			at = &root->next;
			continue;
		}
		*at = root->next;
		root->is_ending = true;
		root->next = ended;
		ended = root;
	}
	pthread_mutex_unlock(&roots_lock);
	while (ended) {
		struct root *root = ended;

		ended = root->next;
		eventfd_write(root->wake_fd, 1);
		pthread_join(root->thread, NULL);
		root_destroy(root);
	}
}

/* A forked child has the list but not the threads, and perhaps a lock nobody will free.
 */
__attribute__((destructor)) static void roots_stop(void)
{
	if (atomic_load(&roots_process) == getpid())
		roots_reap(true, NULL);
}

bool root_refuse(
	const struct root_args *args, uint32_t rank, uint32_t rank_count, enum err code)
{
	bool found = false;

	pthread_mutex_lock(&roots_lock);
	for (struct root *root = roots; root && !found; root = root->next) {
		struct refusal *refusal = &root->refusal;

		found = root->process == getpid() &&
			!memcmp(&args->addr, &root->args.addr, sizeof(args->addr)) &&
			!memcmp(args->secret, root->args.secret, sizeof(args->secret));
		if (!found)
			continue;
		refusal->count++;
		if (!refusal->code) { /* the first is the one that is told */
			refusal->code = code;
			refusal->rank = rank;
			refusal->rank_count = rank_count;
			snprintf(refusal->sentence, sizeof(refusal->sentence), "%.*s",
				WIRE_SENTENCE_MAX - 1, err_last());
		}
		eventfd_write(root->wake_fd, 1);
	}
	pthread_mutex_unlock(&roots_lock);
	return found;
}

void roots_tidy(void)
{
	roots_reap(false, NULL);
}

void root_stop(const struct addr *addr)
{
	roots_reap(false, addr);
}

bool root_is_here(const struct addr *addr)
{
	bool is_here = false;

	roots_reap(false, NULL);
	pthread_mutex_lock(&roots_lock);
	for (const struct root *root = roots; root; root = root->next)
		is_here = is_here ||
			  (root->process == getpid() &&
				  !memcmp(addr, &root->args.addr, sizeof(*addr)));
	pthread_mutex_unlock(&roots_lock);
	return is_here;
}

static enum err doors_open(struct root *root, struct root_args *args)
{
	enum err e = addr_listen(&args->addr, &root->doors[DOOR_HERE], NULL);

	if (!e && args->away.family)
		e = addr_listen(&args->away, &root->doors[DOOR_AWAY], &args->away);
	return e;
}

enum err root_start(struct root_args *args)
{
	struct root *root = calloc(1, sizeof(*root));
	enum err e;

	roots_tidy();
	if (!root)
		return err_set(ERR_SYSTEM, "no memory for a root");
	root->args = *args;
	auth_random(root->news.meeting, sizeof(root->news.meeting));
	root->process = getpid();
	atomic_store(&roots_process, root->process);
	for (int i = 0; i < DOORS; i++)
		root->doors[i] = -1;
	root->end_ns = clock_ns() + IDLE_NS;
	root->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	root->spare_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	e = root->wake_fd < 0 || root->spare_fd < 0 ? err_set(ERR_SYSTEM, "eventfd: %m")
						    : OK;
	if (!e && !guests_grow(root, STRANGERS_MAX))
		e = err_set(ERR_SYSTEM, "no memory for a root");
	if (!e)
		e = doors_open(root, args);
	if (e)
		goto err_destroy;
	pthread_mutex_lock(&roots_lock);
	errno = thread_start(&root->thread, "weft-root", root_run, root);
	if (errno) {
		pthread_mutex_unlock(&roots_lock);
		e = err_set(ERR_SYSTEM, "no thread for a root: %m");
		goto err_destroy;
	}
	root->next = roots;
	roots = root;
	pthread_mutex_unlock(&roots_lock);
	return OK;

err_destroy:
	root_destroy(root);
	return e;
}
