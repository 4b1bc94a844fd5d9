#include "boot/hub.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "boot/session.h"
#include "boot/strand.h"
#include "net/iface.h"

enum {
	STRANGERS_MAX = 256,
	STRANGER_MS = 2000, /* to prove itself */
	CROWDED_MS = 100,   /* the same while the door is full */
	ACCEPT_PAUSE_MS = 10,
	STARVED_MS = 50, /* descriptors that are not back by then are not waited for */
	LATE_MS = 20,	 /* who looks so much too late was held up itself */
	SETTLE_US = 200,
	EVENTS = 64
};

static struct hub {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pid_t process; /* whose thread it is: a forked child begins anew */
	uint32_t users;
	pthread_t thread;
	int epoll_fd, wake_fd, listen_fd; /* owned */
	struct addr addr;
	bool is_ending, is_killed, is_woken, is_greeting;
	struct strand *strangers; /* owned */
	uint32_t stranger_count;
	uint64_t accept_ns;  /* not before */
	uint64_t starved_ns; /* since when nobody could be taken in; 0: they can */
	int starved_of;	     /* errno */
	bool is_listening;   /* the listener is polled */
} hub = {.lock = PTHREAD_MUTEX_INITIALIZER,
	.epoll_fd = -1,
	.wake_fd = -1,
	.listen_fd = -1};

void hub_lock(void)
{
	pthread_mutex_lock(&hub.lock);
}

void hub_unlock(void)
{
	pthread_mutex_unlock(&hub.lock);
}

bool hub_is_self(void)
{
	return hub.users && pthread_equal(hub.thread, pthread_self());
}

void hub_changed(void)
{
	pthread_cond_broadcast(&hub.changed);
}

void hub_sleep(uint32_t ms)
{
	struct timespec until;
	uint64_t ns = clock_ns() + ms * CLOCK_MS;

	until.tv_sec = (time_t)(ns / CLOCK_SEC);
	until.tv_nsec = (long)(ns % CLOCK_SEC);
	pthread_cond_timedwait(&hub.changed, &hub.lock, &until);
}

void hub_wake(void)
{
	if (hub.is_woken || hub.wake_fd < 0 || hub_is_self())
		return;
	hub.is_woken = true;
	eventfd_write(hub.wake_fd, 1);
}

/* ---- what is polled ---- */

void hub_watch(struct strand *strand)
{
	short events = strand_events(strand);
	struct epoll_event event = {.events = (uint32_t)events, .data.ptr = strand};

	if (strand->phase == STRAND_GONE) {
		hub_wake(); /* the thread takes it away */
		return;
	}
	if (events == strand->held.polled)
		return;
	/* poll() and epoll have the same bits */
	if (epoll_ctl(hub.epoll_fd,
		    strand->held.polled < 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, strand->fd,
		    &event)) {
		strand->status = errno;
		strand->phase = STRAND_GONE;
		hub_wake();
		return;
	}
	strand->held.polled = events;
}

static_assert(POLLIN == EPOLLIN && POLLOUT == EPOLLOUT, "the same bits");

void hub_drop(struct strand *strand)
{
	/* a forked child's copy, for a moment, would keep it in the set */
	if (strand->held.polled >= 0)
		epoll_ctl(hub.epoll_fd, EPOLL_CTL_DEL, strand->fd, NULL);
	strand_destroy(strand);
}

/* The listener is polled only while there is room for who knocks. */
static void ear_set(bool is_open)
{
	struct epoll_event event = {
		.events = is_open ? EPOLLIN : 0, .data.ptr = &hub.listen_fd};

	if (is_open != hub.is_listening &&
		!epoll_ctl(hub.epoll_fd, EPOLL_CTL_MOD, hub.listen_fd, &event))
		hub.is_listening = is_open;
}

/* ---- strangers ---- */

static void stranger_serve(struct strand *strand, uint64_t now_ns)
{
	struct session *session;

	for (;;) {
		strand_flush(strand);
		if (strand->phase == STRAND_ASKED) {
			session = session_find_any(strand->session);
			if (!session && session_was_there(strand->session))
				strand->phase = STRAND_GONE;
			if (!session)
				return; /* it may be made in a moment */
			strand_answer(strand, session->key);
		}
		if (strand_read(strand, now_ns) == STRAND_NOTHING)
			return;
		if (strand->phase == STRAND_OPEN)
			return;
	}
}

/* One that has proved itself belongs to its session. */
static void stranger_settle(struct strand *strand, uint64_t now_ns)
{
	struct session *session = session_find_any(strand->session);
	struct strand **at = &hub.strangers;

	while (*at != strand)
		at = &(*at)->held.next;
	*at = strand->held.next;
	if (session && session_adopt(session, strand, now_ns)) {
		hub.stranger_count--;
		return;
	}
	strand->phase = STRAND_GONE; /* swept away as a stranger */
	strand->held.next = hub.strangers;
	hub.strangers = strand;
}

/* Is it one of us now? */
static bool stranger_look(struct strand *strand, uint64_t now_ns)
{
	stranger_serve(strand, now_ns);
	hub_watch(strand);
	return strand->phase == STRAND_OPEN;
}

/* Strangers may have asked for a session that there is now. */
static void strangers_look(uint64_t now_ns)
{
	for (struct strand *strand = hub.strangers, *next; strand; strand = next) {
		next = strand->held.next;
		if (stranger_look(strand, now_ns)) {
			stranger_settle(strand, now_ns);
			if (strand->held.owner)
				session_serve(strand, now_ns);
		}
	}
}

/* While the door is full only who has named a session that is here has its time:
 * strangers do not know one, and a caller may be slow because its host has much to do.
 * Half of the places are for others all the same: who listens on the way knows the name,
 * too. */
static uint64_t stranger_ms(
	const struct strand *strand, bool is_crowded, uint32_t *kept_count)
{
	if (!is_crowded)
		return STRANGER_MS;
	if (strand->phase != STRAND_CLAIM || *kept_count >= STRANGERS_MAX / 2)
		return CROWDED_MS;
	++*kept_count;
	return STRANGER_MS;
}

/* Put out who takes too long. Not while events are looked at, which may be of them. */
static void strangers_sweep(uint64_t now_ns)
{
	bool is_crowded = hub.stranger_count >= STRANGERS_MAX;
	uint32_t kept_count = 0;

	for (struct strand **at = &hub.strangers; *at;) {
		struct strand *strand = *at;
		uint64_t patience = stranger_ms(strand, is_crowded, &kept_count);

		if (strand->phase != STRAND_GONE &&
			now_ns - strand->since_ns <= patience * CLOCK_MS) {
			at = &strand->held.next;
			continue;
		}
		*at = strand->held.next;
		hub.stranger_count--;
		hub_drop(strand);
	}
}

void hub_greet(void)
{
	hub.is_greeting = true;
	hub_wake();
}

static void door_starve(int cause, uint64_t now_ns)
{
	hub.accept_ns = now_ns + ACCEPT_PAUSE_MS * CLOCK_MS;
	if (!hub.starved_ns)
		hub.starved_ns = now_ns;
	hub.starved_of = cause;
}

int hub_starved(void)
{
	bool is_starved = hub.starved_ns &&
			  clock_ns() - hub.starved_ns >= STARVED_MS * CLOCK_MS;

	return is_starved ? hub.starved_of : 0;
}

static void strangers_accept(uint64_t now_ns)
{
	while (hub.stranger_count < STRANGERS_MAX && now_ns >= hub.accept_ns) {
		struct strand *strand;
		int fd, status = addr_accept(hub.listen_fd, &fd);

		if (status && status != EAGAIN) { /* no descriptor: wait for one */
			door_starve(status, now_ns);
			return;
		}
		hub.starved_ns = 0;
		if (status)
			return;
		strand = strand_accept(fd, now_ns);
		if (!strand)
			continue;
		strand->held.next = hub.strangers;
		hub.strangers = strand;
		hub.stranger_count++;
		hub_watch(strand);
	}
}

/* ---- the thread ---- */

static void strand_ready(struct strand *strand, uint64_t now_ns)
{
	if (strand->phase == STRAND_GONE)
		return;
	if (!strand->held.owner && strand->phase == STRAND_ASKED) {
		strand->phase = STRAND_GONE; /* it went, or said more than it may */
		return;
	}
	if (!strand->held.owner && stranger_look(strand, now_ns))
		stranger_settle(strand, now_ns);
	if (strand->held.owner)
		session_serve(strand, now_ns);
}

/* Returns when to look again. */
static uint64_t clock_look(uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;

	for (struct session *at = session_list(); at;) {
		struct session *session = at;
		uint64_t wanted = session_tick(session, now_ns);

		at = session->next;
		next = wanted < next ? wanted : next;
		if (session_is_over(session, now_ns))
			session_destroy(session);
	}
	if (hub.stranger_count && next > now_ns + CROWDED_MS * CLOCK_MS)
		next = now_ns + CROWDED_MS * CLOCK_MS;
	if (hub.accept_ns > now_ns && next > hub.accept_ns)
		next = hub.accept_ns;
	ear_set(hub.stranger_count < STRANGERS_MAX && now_ns >= hub.accept_ns);
	return next;
}

/* Call one function of one rank, without the lock. False: there is nothing to be said. */
static bool deliver_one(void)
{
	for (struct session *session = session_list(); session; session = session->next)
		for (struct control *at = session->controls; at; at = at->next) {
			struct delivery *what = at->first;

			if (!what)
				continue;
			at->first = what->next;
			if (!at->first)
				at->last = &at->first;
			at->is_called = true;
			hub_unlock();
			if (what->is_loss)
				at->on_lost(
					at->arg, what->rank, (const char *)what->bytes);
			else
				at->on_message(at->arg, what->rank, what->kind,
					what->bytes, what->size);
			free(what);
			hub_lock();
			at->is_called = false;
			if (at->is_closed)
				control_free(at); /* by its own function */
			hub_changed();
			return true;
		}
	return false;
}

static void events_take(const struct epoll_event *events, int count, uint64_t now_ns)
{
	eventfd_t ignored;

	for (int i = 0; i < count; i++) {
		void *what = events[i].data.ptr;

		if (what == &hub.listen_fd) {
			strangers_accept(now_ns);
		} else if (what == &hub.wake_fd) {
			hub.is_woken = false;
			eventfd_read(hub.wake_fd, &ignored);
		} else {
			strand_ready(what, now_ns);
		}
	}
}

/* For how long this process itself was held up since its last look, asleep for too long
 * or at work on what it had found; 0: not. */
static uint64_t late_by(uint64_t looked_ns, uint64_t next_ns, uint64_t now_ns)
{
	uint64_t due = next_ns > looked_ns ? next_ns : looked_ns;

	return now_ns > due && now_ns - due >= LATE_MS * CLOCK_MS ? now_ns - due : 0;
}

static void *hub_run(void *argument)
{
	struct epoll_event events[EVENTS];
	uint64_t next_ns = 0, now = clock_ns(), looked, late;

	hub_lock();
	while (!hub.is_killed && (!hub.is_ending || session_list())) {
		int wait_ms = next_ns == UINT64_MAX ? -1 : clock_left_ms(next_ns, 60000);
		int count;

		hub_unlock();
		count = epoll_wait(hub.epoll_fd, events, EVENTS, wait_ms);
		hub_lock();
		looked = now;
		now = clock_ns();
		late = late_by(looked, next_ns, now);
		for (struct session *at = session_list(); at && late; at = at->next)
			session_forgive(at, late, now);
		events_take(events, count, now);
		if (hub.is_greeting)
			strangers_look(now);
		hub.is_greeting = false;
		strangers_sweep(now);
		next_ns = clock_look(now);
		while (deliver_one())
			next_ns = 0; /* it may have asked for anything */
	}
	hub_unlock();
	return argument;
}

/* ---- life ---- */

static void fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void hub_clear(void)
{
	while (hub.strangers) {
		struct strand *strand = hub.strangers;

		hub.strangers = strand->held.next;
		hub_drop(strand);
	}
	hub.stranger_count = 0;
	hub.starved_ns = 0;
	fd_close(&hub.epoll_fd);
	fd_close(&hub.wake_fd);
	fd_close(&hub.listen_fd);
}

/* By the interface for control, or loopback. */
static enum err ear_open(void)
{
	struct iface ifaces[IFACES_MAX];
	char why[IFACE_NONE_BYTES];
	uint32_t count = 0;
	enum err e = iface_list(IFACE_CONTROL, ifaces, &count);

	if (e)
		return e;
	if (!count) {
		iface_none(IFACE_CONTROL, why);
		return err_set(
			ERR_USAGE, "ranks of other hosts cannot reach this one: %s", why);
	}
	return addr_listen(&ifaces[0].addr, &hub.listen_fd, &hub.addr);
}

static enum err fds_open(void)
{
	struct epoll_event wake = {.events = EPOLLIN, .data.ptr = &hub.wake_fd};
	struct epoll_event door = {.events = EPOLLIN, .data.ptr = &hub.listen_fd};
	enum err e;

	hub.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	hub.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (hub.epoll_fd < 0 || hub.wake_fd < 0)
		return err_set(ERR_SYSTEM, "no descriptors to keep in touch: %m");
	e = ear_open();
	if (e)
		return e;
	if (epoll_ctl(hub.epoll_fd, EPOLL_CTL_ADD, hub.wake_fd, &wake) ||
		epoll_ctl(hub.epoll_fd, EPOLL_CTL_ADD, hub.listen_fd, &door))
		return err_set(ERR_SYSTEM, "epoll_ctl: %m");
	hub.is_listening = true;
	return OK;
}

static enum err hub_start(void)
{
	enum err e = auth_init();

	if (!e)
		e = fds_open();
	if (e) {
		hub_clear();
		return e;
	}
	hub.is_ending = hub.is_woken = hub.is_greeting = false;
	hub.process = getpid();
	errno = thread_start(&hub.thread, "weft-control", hub_run, NULL);
	if (!errno)
		return OK;
	e = err_set(ERR_SYSTEM, "no thread to keep in touch: %m");
	hub_clear();
	return e;
}

static void changed_init(void)
{
	pthread_condattr_t clock;

	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&hub.changed, &clock);
	pthread_condattr_destroy(&clock);
}

/* A child of fork() has neither the thread nor any business with the strands: its copies
 * would keep them up when this process dies. */
static void child_begin(void)
{
	session_forget();
	for (struct strand *strand = hub.strangers; strand; strand = strand->held.next)
		fd_close(&strand->fd);
	hub.strangers = NULL;
	hub.stranger_count = 0;
	hub.starved_ns = 0;
	fd_close(&hub.epoll_fd);
	fd_close(&hub.wake_fd);
	fd_close(&hub.listen_fd);
	hub.users = 0;
	changed_init();
	hub_unlock();
}

static void hub_prepare(void)
{
	changed_init();
	pthread_atfork(hub_lock, hub_unlock, child_begin);
}

/* With the lock: when another thread is ending it, until it has. */
static void hub_settle(void)
{
	while (hub.is_ending && hub.process == getpid()) {
		hub_unlock();
		usleep(SETTLE_US);
		hub_lock();
	}
}

enum err hub_get(struct addr *addr)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	enum err e = OK;

	pthread_once(&once, hub_prepare);
	hub_lock();
	hub_settle();
	if (!hub.users)
		e = hub_start();
	if (!e) {
		hub.users++;
		*addr = hub.addr;
	}
	hub_unlock();
	return e;
}

/* With the lock, which is given up meanwhile. */
static void hub_stop(bool at_once)
{
	pthread_t thread = hub.thread;

	hub.is_ending = true;
	hub.is_killed = at_once;
	hub_wake();
	hub_unlock();
	pthread_join(thread, NULL);
	hub_lock();
	hub.users = 0;
	hub.is_killed = false;
	hub_clear();
	hub.is_ending = false;
}

void hub_put(void)
{
	hub_lock();
	hub_settle(); /* exit() may be ending it in another thread */
	if (hub.users > 1)
		hub.users--;
	else if (hub.users && hub.process == getpid())
		hub_stop(false);
	hub_unlock();
}

/* No thread outlives the library's code. */
__attribute__((destructor)) static void hub_end(void)
{
	hub_lock();
	if (hub.is_ending && hub.process == getpid() && !hub_is_self()) {
		hub.is_killed = true;
		hub_wake();
		hub_settle();
	}
	if (hub.users && hub.process == getpid() && !hub_is_self())
		hub_stop(true);
	hub_unlock();
}
