/*
 * relay.c - the relay's process. A connection is a pair of sockets with a flow of bytes
 * each way; a flow holds one piece at a time and reads the next when that is written.
 */
#include "relay.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "detour.h"
#include "ranks.h"

enum {
	PIECE_BYTES = 64 << 10,
	TRICKLE_BYTES = 700,
	PAIRS_MAX = 512,
	TICK_MS = 2,
	WAIT_US_MAX = 4000,	 /* of one piece */
	WAIT_US_OF_PAIR = 60000, /* .. and of all pieces of a connection together */
	END_US_MAX = 20000,	 /* of a connection that is to end */
	END_BYTES_POWER = 16,	 /* .. or when so much has passed */
	MAGIC_BYTES = 8
};

struct flow {
	char bytes[PIECE_BYTES];
	size_t first, count;
	uint64_t due_us; /* not written before */
	bool is_over;	 /* its source has closed */
	bool is_told;	 /* .. and its destination knows */
};

struct pair {
	int fds[2]; /* owned; who called, who listens; -1: free */
	int ends[2];
	unsigned kind;
	struct flow *flows; /* owned: two */
	uint64_t passed, waited_us;
	struct relay_tape tape; /* until it is answered */
	bool is_broken;		/* one end takes nothing more */
	bool is_marked;		/* to be ended .. */
	uint64_t end_us, end_bytes;
};

/* Accepted by a rank, and not yet by us. */
struct guest {
	struct detour_intro intro;
	int out; /* owned */
};

static struct desk {
	const struct relay *relay;
	uint64_t state; /* of the seed */
	struct pair pairs[PAIRS_MAX];
	int pair_count;
	struct guest guests[PAIRS_MAX];
	int guest_count;
} desk;

/* splitmix64 */
static uint64_t draw(uint64_t below)
{
	uint64_t z = desk.state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (z ^ z >> 31) % below;
}

/* ---- who suffers ---- */

static bool is_victims(int process)
{
	const struct relay_plan *plan = &desk.relay->plan;

	return process == plan->victim ||
	       (plan->is_whole_host && process >= 0 &&
		       plan->host_of[process] == plan->host_of[plan->victim]);
}

static bool is_between_hosts(const struct pair *pair)
{
	const int *host_of = desk.relay->plan.host_of;

	return pair->ends[0] < 0 || pair->ends[1] < 0 ||
	       host_of[pair->ends[0]] != host_of[pair->ends[1]];
}

static bool suffers(const struct pair *pair)
{
	const struct relay_plan *plan = &desk.relay->plan;
	bool is_late = plan->trouble == RELAY_DELAY || plan->trouble == RELAY_TRICKLE;

	return plan->trouble && (is_late || atomic_load(&desk.relay->page->is_struck)) &&
	       plan->kinds & pair->kind && is_between_hosts(pair) &&
	       (is_victims(pair->ends[0]) || is_victims(pair->ends[1]));
}

/* Is there another trouble to be made? Then it is counted. */
static bool trouble_take(void)
{
	struct relay_page *page = desk.relay->page;

	if (desk.relay->plan.times &&
		atomic_load(&page->troubles) >= desk.relay->plan.times)
		return false;
	atomic_fetch_add(&page->troubles, 1);
	return true;
}

/* Does nothing pass this way? */
static bool is_held(const struct pair *pair, int way)
{
	enum relay_trouble trouble = desk.relay->plan.trouble;

	if ((trouble != RELAY_HOLE && trouble != RELAY_HALF) || !suffers(pair))
		return false;
	return trouble == RELAY_HOLE || is_victims(pair->ends[way]);
}

/* ---- pairs ---- */

static void pair_end(struct pair *pair, bool by_reset)
{
	struct linger now = {.l_onoff = 1};

	for (int i = 0; i < 2; i++) {
		if (by_reset)
			setsockopt(
				pair->fds[i], SOL_SOCKET, SO_LINGER, &now, sizeof(now));
		else
			shutdown(pair->fds[i], SHUT_RDWR);
		close(pair->fds[i]);
	}
	free(pair->flows);
	pair->flows = NULL;
	pair->fds[0] = -1;
}

static void pair_begin(int in, const struct guest *guest)
{
	struct pair *pair = desk.pairs;
	int one = 1;

	while (pair < desk.pairs + desk.pair_count && pair->fds[0] >= 0)
		pair++;
	TRUE(pair < desk.pairs + PAIRS_MAX);
	if (pair == desk.pairs + desk.pair_count)
		desk.pair_count++;
	*pair = (struct pair){.fds = {in, guest->out},
		.ends = {guest->intro.from, guest->intro.to},
		.kind = RELAY_MEETING,
		.flows = calloc(2, sizeof(struct flow))};
	TRUE(pair->flows);
	for (int i = 0; i < 2; i++)
		setsockopt(pair->fds[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	atomic_fetch_add(&desk.relay->page->connections, 1);
}

static void mark(struct pair *pair)
{
	if (pair->is_marked || !suffers(pair) || !trouble_take())
		return;
	pair->is_marked = true;
	pair->end_us = now_us() + draw(END_US_MAX);
	pair->end_bytes = pair->passed + ((uint64_t)1 << draw(END_BYTES_POWER));
}

static bool ends_now(const struct pair *pair)
{
	return pair->is_marked &&
	       (now_us() >= pair->end_us || pair->passed >= pair->end_bytes);
}

/* ---- flows ---- */

/* The first bytes of who called say what it is for. */
static void kind_read(struct pair *pair, const char *bytes, size_t count)
{
	if (pair->passed || count < MAGIC_BYTES)
		return;
	if (!memcmp(bytes, "WEFTNET", 7))
		pair->kind = RELAY_DATA;
	else if (!memcmp(bytes, "WEFTCT", 6))
		pair->kind = RELAY_CONTROL;
}

static void piece_strike(struct pair *pair, struct flow *flow)
{
	enum relay_trouble trouble = desk.relay->plan.trouble;

	if (!suffers(pair))
		return;
	if (trouble == RELAY_CORRUPT && !draw(3) && trouble_take())
		flow->bytes[draw(flow->count)] ^= (char)(1 << draw(8));
	if ((trouble == RELAY_DELAY || trouble == RELAY_TRICKLE) &&
		pair->waited_us < WAIT_US_OF_PAIR && trouble_take()) {
		uint64_t wait = draw(WAIT_US_MAX);

		pair->waited_us += wait;
		flow->due_us = now_us() + wait;
	}
}

static void tape_make(struct pair *pair, int way, const struct flow *flow)
{
	struct relay_page *page = desk.relay->page;
	struct relay_tape *tape = &pair->tape;
	size_t room = sizeof(tape->said) - tape->bytes;
	struct sockaddr_in at = {0};
	socklen_t bytes = sizeof(at);

	if (tape->port)
		return;
	if (!way) {
		room = flow->count < room ? flow->count : room;
		memcpy(tape->said + tape->bytes, flow->bytes, room);
		tape->bytes += (uint32_t)room;
	} else if (!getpeername(pair->fds[1], (struct sockaddr *)&at, &bytes)) {
		tape->port = at.sin_port;
		page->tapes[atomic_load(&page->tape_count) % RELAY_TAPES] = *tape;
		atomic_fetch_add(&page->tape_count, 1);
	}
}

static size_t piece_room(const struct pair *pair)
{
	bool is_small = desk.relay->plan.trouble == RELAY_TRICKLE && suffers(pair) &&
			pair->waited_us < WAIT_US_OF_PAIR;

	return is_small ? 1 + draw(TRICKLE_BYTES) : PIECE_BYTES;
}

/* False: the connection is lost. */
static bool flow_read(struct pair *pair, int way)
{
	struct flow *flow = &pair->flows[way];
	ssize_t got = recv(pair->fds[way], flow->bytes, piece_room(pair), MSG_DONTWAIT);

	if (got < 0)
		return errno == EAGAIN || errno == EINTR;
	flow->is_over = !got;
	flow->first = 0;
	flow->count = (size_t)got;
	if (got && !way)
		kind_read(pair, flow->bytes, flow->count);
	if (got) {
		tape_make(pair, way, flow);
		piece_strike(pair, flow);
	}
	return true;
}

static bool flow_write(struct pair *pair, int way)
{
	struct flow *flow = &pair->flows[way];
	ssize_t sent = send(pair->fds[!way], flow->bytes + flow->first, flow->count,
		MSG_DONTWAIT | MSG_NOSIGNAL);

	if (sent < 0)
		return errno == EAGAIN || errno == EINTR;
	flow->first += (size_t)sent;
	flow->count -= (size_t)sent;
	pair->passed += (size_t)sent;
	return true;
}

/* Which side it wants to hear of, if any, and for what. */
static struct pollfd flow_wants(const struct pair *pair, int way)
{
	const struct flow *flow = &pair->flows[way];

	if (is_held(pair, way) || (flow->count && now_us() < flow->due_us))
		return (struct pollfd){.fd = -1};
	if (flow->count)
		return (struct pollfd){.fd = pair->fds[!way], .events = POLLOUT};
	return (struct pollfd){
		.fd = flow->is_over ? -1 : pair->fds[way], .events = POLLIN};
}

static bool flow_move(struct pair *pair, int way)
{
	struct flow *flow = &pair->flows[way];
	bool is_well = flow->count || flow_read(pair, way);

	/* who takes nothing more may have said something before, which still arrives */
	if (is_well && flow->count && now_us() >= flow->due_us &&
		!flow_write(pair, way)) {
		flow->count = 0;
		flow->is_over = flow->is_told = pair->is_broken = true;
	}
	if (is_well && flow->is_over && !flow->count && !flow->is_told) {
		flow->is_told = true;
		shutdown(pair->fds[!way], SHUT_WR);
	}
	return is_well;
}

/* ---- the process ---- */

/* All that have come, of whom the newcomer at `port` is one; false: it is not. */
static bool guest_find(uint16_t port, struct guest *found)
{
	for (;;) {
		union {
			struct cmsghdr head;
			char bytes[CMSG_SPACE(sizeof(int))];
		} control = {0};
		struct guest guest = {.out = -1};
		struct iovec body = {&guest.intro, sizeof(guest.intro)};
		struct msghdr message = {.msg_iov = &body,
			.msg_iovlen = 1,
			.msg_control = &control,
			.msg_controllen = sizeof(control)};

		if (recvmsg(desk.relay->intro[1], &message, MSG_DONTWAIT) < 0)
			break;
		memcpy(&guest.out, CMSG_DATA(&control.head), sizeof(guest.out));
		if (desk.guest_count == PAIRS_MAX) { /* one that never came */
			close(desk.guests[0].out);
			desk.guests[0] = desk.guests[--desk.guest_count];
		}
		desk.guests[desk.guest_count++] = guest;
	}
	for (int i = 0; i < desk.guest_count; i++)
		if (desk.guests[i].intro.port == port) {
			*found = desk.guests[i];
			desk.guests[i] = desk.guests[--desk.guest_count];
			return true;
		}
	return false;
}

static void newcomers_take(void)
{
	struct sockaddr_in from = {0};
	socklen_t bytes = sizeof(from);
	struct guest guest;
	int fd;

	while ((fd = accept4(desk.relay->listen_fd, (struct sockaddr *)&from, &bytes,
			SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		if (guest_find(from.sin_port, &guest))
			pair_begin(fd, &guest);
		else
			close(fd);
		bytes = sizeof(from);
	}
}

static void pair_serve(struct pair *pair, const struct pollfd polled[2])
{
	enum relay_trouble trouble = desk.relay->plan.trouble;
	bool is_well = true;

	if (trouble == RELAY_RESET || trouble == RELAY_CUT)
		mark(pair);
	if (ends_now(pair)) {
		pair_end(pair, trouble == RELAY_RESET);
		return;
	}
	for (int way = 0; way < 2 && is_well; way++)
		if (polled[way].fd >= 0 && polled[way].revents)
			is_well = flow_move(pair, way);
	if (!is_well)
		pair_end(pair, true);
	else if (pair->flows[0].is_told && pair->flows[1].is_told)
		pair_end(pair, pair->is_broken);
}

static void held_count(void)
{
	const struct relay_plan *plan = &desk.relay->plan;
	struct relay_page *page = desk.relay->page;

	if ((plan->trouble == RELAY_HOLE || plan->trouble == RELAY_HALF) &&
		atomic_load(&page->is_struck) && !atomic_load(&page->troubles))
		atomic_store(&page->troubles, 1);
}

static void relay_main(const struct relay *relay)
{
	static struct pollfd polled[1 + 2 * PAIRS_MAX];

	desk.relay = relay;
	desk.state = relay->plan.seed;
	for (;;) {
		int count = desk.pair_count;

		polled[0] = (struct pollfd){.fd = relay->listen_fd, .events = POLLIN};
		for (int i = 0; i < count; i++)
			for (int way = 0; way < 2; way++)
				polled[1 + 2 * i + way] =
					desk.pairs[i].fds[0] < 0
						? (struct pollfd){.fd = -1}
						: flow_wants(&desk.pairs[i], way);
		poll(polled, (nfds_t)(1 + 2 * count), TICK_MS);
		held_count();
		for (int i = 0; i < count; i++)
			if (desk.pairs[i].fds[0] >= 0)
				pair_serve(&desk.pairs[i], &polled[1 + 2 * i]);
		newcomers_take();
	}
}

static void listen_open(struct relay *relay)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t bytes = sizeof(at);

	relay->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	TRUE(relay->listen_fd >= 0);
	EQ(bind(relay->listen_fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	EQ(listen(relay->listen_fd, SOMAXCONN), 0);
	EQ(getsockname(relay->listen_fd, (struct sockaddr *)&at, &bytes), 0);
	relay->port = at.sin_port;
}

void relay_start(struct relay *relay, const struct relay_plan *plan)
{
	pid_t parent = getpid();

	relay->plan = *plan;
	relay->page = mmap(NULL, sizeof(*relay->page), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	TRUE(relay->page != MAP_FAILED);
	EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, relay->intro), 0);
	listen_open(relay);
	fflush(NULL);
	relay->pid = fork();
	TRUE(relay->pid >= 0);
	if (relay->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent) /* it has ended already */
			_exit(0);
		relay_main(relay);
	}
	close(relay->listen_fd);
}

void relay_strike(const struct relay *relay)
{
	atomic_store(&relay->page->is_struck, true);
}

void relay_stop(struct relay *relay)
{
	kill(relay->pid, SIGKILL);
	waitpid(relay->pid, NULL, 0);
	close(relay->intro[0]);
	close(relay->intro[1]);
	munmap(relay->page, sizeof(*relay->page));
}
