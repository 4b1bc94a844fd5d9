/*
 * What a network carries: ./wire hosts=2|loopback=2[,sum] 2 COLLECTIVE BYTES,..
 *
 * A plain loop over one connection between two hosts moves the bytes that the collective
 * has to move, in the same directions at once, between buffers as large, and does nothing
 * else with them. Nobody who uses sockets and copies is expected to be faster.
 *
 * With `sum` it is an all_reduce by hand, for two ranks and nothing else: it waits for
 * what has to come first and adds it, which no library can leave out.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "host.h"
#include "method.h"

enum { PORT = 7700, AT_ONCE = 256 << 10, PIECE = 1 << 20 };

/* One page that both see. */
struct shared {
	double seconds[2], cpu[2];
};

struct side {
	struct shared *shared;
	int rank, fd, coll;
	int sums; /* an all_reduce by hand */
	char *out, *in;
};

static void fail(const char *what)
{
	fprintf(stderr, "wire: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void meet_other(int rank, int pretended, int *fd)
{
	struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	char text[32];

	host_address(0, pretended, text);
	inet_pton(AF_INET, text, &name.sin_addr);
	if (!rank) {
		setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		if (bind(listener, (struct sockaddr *)&name, sizeof(name)) ||
			listen(listener, 1))
			fail("listen");
		*fd = accept(listener, NULL, NULL);
		close(listener);
	} else {
		*fd = listener;
		while (connect(*fd, (struct sockaddr *)&name, sizeof(name))) {
			close(*fd);
			usleep(1000);
			*fd = socket(AF_INET, SOCK_STREAM, 0);
		}
	}
	setsockopt(*fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (*fd < 0 || fcntl(*fd, F_SETFL, O_NONBLOCK))
		fail("connect");
}

/* How many bytes this side sends and receives in one call. */
static void traffic(const struct side *side, size_t bytes, size_t *tx, size_t *rx)
{
	*tx = *rx = side->coll == ALL_REDUCE ? bytes : bytes / 2;
	if (side->coll == BROADCAST) {
		*tx = side->rank ? 0 : bytes;
		*rx = side->rank ? bytes : 0;
	}
}

static size_t part(ssize_t done)
{
	if (!done || (done < 0 && errno != EAGAIN))
		fail("the connection");
	return done > 0 ? (size_t)done : 0;
}

static void exchange(const struct side *side, size_t tx, size_t rx)
{
	size_t sent = 0, got = 0;

	while (sent < tx || got < rx) {
		size_t before = sent + got;
		size_t most = tx - sent < AT_ONCE ? tx - sent : AT_ONCE;
		struct pollfd ready = {.fd = side->fd,
			.events = (short)((sent < tx ? POLLOUT : 0) |
					  (got < rx ? POLLIN : 0))};

		if (sent < tx)
			sent += part(
				send(side->fd, side->out + sent, most, MSG_NOSIGNAL));
		if (got < rx)
			got += part(recv(side->fd, side->in + got, rx - got, 0));
		if (sent + got == before)
			poll(&ready, 1, 1000);
	}
}

/* One way of an all_reduce by hand: a share goes out in pieces, and the sum of each piece
 * of the other share behind the next piece: share 0, share 1, sum 0, share 2, sum 1, ..
 */
struct way {
	size_t item, at; /* which of the 2 x pieces, and the bytes of it that are done */
};

struct by_hand {
	const struct side *side;
	size_t half, pieces, summed; /* sums [0, summed) are made */
	struct way tx, rx;
};

/* Which piece an item is of, and whether it is a sum. */
static size_t item_piece(const struct by_hand *call, size_t item, int *is_sum)
{
	*is_sum = item == 2 * call->pieces - 1 || (item && item % 2 == 0);
	if (item == 2 * call->pieces - 1)
		return call->pieces - 1;
	return *is_sum ? item / 2 - 1 : (item + 1) / 2;
}

static size_t piece_bytes(const struct by_hand *call, size_t piece)
{
	size_t left = call->half - piece * PIECE;

	return left < PIECE ? left : PIECE;
}

/* Bytes sent of the next item; 0: the socket is full, or what it is the sum of is not
 * here. */
static size_t send_item(struct by_hand *call)
{
	const struct side *side = call->side;
	int is_sum;
	size_t piece = item_piece(call, call->tx.item, &is_sum), done;
	size_t bytes = piece_bytes(call, piece);
	size_t mine = (size_t)side->rank * call->half, other = call->half - mine;
	const char *from = is_sum ? side->in + mine : side->out + other;

	if (is_sum && piece >= call->summed)
		return 0;
	done = part(send(side->fd, from + piece * PIECE + call->tx.at,
		bytes - call->tx.at, MSG_NOSIGNAL));
	call->tx.at += done;
	if (call->tx.at == bytes)
		call->tx = (struct way){.item = call->tx.item + 1};
	return done;
}

/* Bytes received of the next item. A piece of the share is added to ours as soon as it is
 * whole. */
static size_t receive_item(struct by_hand *call)
{
	static char inbox[PIECE] __attribute__((aligned(64)));
	const struct side *side = call->side;
	int is_sum;
	size_t piece = item_piece(call, call->rx.item, &is_sum), done;
	size_t bytes = piece_bytes(call, piece);
	size_t mine = (size_t)side->rank * call->half, other = call->half - mine;
	char *to = is_sum ? side->in + other + piece * PIECE : inbox;

	done = part(recv(side->fd, to + call->rx.at, bytes - call->rx.at, 0));
	call->rx.at += done;
	if (call->rx.at < bytes)
		return done;
	if (!is_sum) {
		const float *ours = (const float *)(side->out + mine + piece * PIECE);
		float *sum = (float *)(side->in + mine + piece * PIECE);

		for (size_t i = 0; i < bytes / sizeof(float); i++)
			sum[i] = ours[i] + ((const float *)inbox)[i];
		call->summed++;
	}
	call->rx = (struct way){.item = call->rx.item + 1};
	return done;
}

static void reduce_by_hand(const struct side *side, size_t bytes)
{
	size_t half = bytes / 2 / sizeof(float) * sizeof(float);
	struct by_hand call = {.side = side, .half = half ? half : sizeof(float)};
	size_t items;

	call.pieces = (call.half + PIECE - 1) / PIECE;
	items = 2 * call.pieces;
	while (call.tx.item < items || call.rx.item < items) {
		size_t moved = 0;

		if (call.tx.item < items)
			moved += send_item(&call);
		if (call.rx.item < items)
			moved += receive_item(&call);
		if (!moved)
			sched_yield();
	}
}

/* Both have come here. */
static void together(const struct side *side)
{
	exchange(side, 1, 1);
}

static double loop(const struct side *side, size_t bytes, int iters, double *cpu)
{
	struct shared *shared = side->shared;
	double start, used;
	size_t tx, rx;

	traffic(side, bytes, &tx, &rx);
	together(side);
	start = method_now();
	used = method_cpu();
	for (int i = 0; i < iters; i++) {
		if (side->sums)
			reduce_by_hand(side, bytes);
		else
			exchange(side, tx, rx);
	}
	together(side); /* who only sends has not sent before the other has it */
	shared->seconds[side->rank] = (method_now() - start) / iters;
	shared->cpu[side->rank] = (method_cpu() - used) / iters;
	together(side);
	*cpu = shared->cpu[0] + shared->cpu[1];
	used = shared->seconds[0] > shared->seconds[1] ? shared->seconds[0]
						       : shared->seconds[1];
	together(side);
	return used;
}

static void time_size(const struct side *side, size_t bytes)
{
	double cpu, best = 0, best_cpu = 0;
	double warm = loop(side, bytes, method_warm(bytes), &cpu);
	int iters = method_loop(bytes, warm);

	for (int i = 0; i < METHOD_LOOPS; i++) {
		double seconds = loop(side, bytes, iters, &cpu);

		if (i && best <= seconds)
			continue;
		best = seconds;
		best_cpu = cpu;
	}
	for (size_t i = 0; side->sums && i < bytes / sizeof(float); i++)
		if (((const float *)side->in)[i] != 3) {
			errno = EBADMSG;
			fail("a sum");
		}
	if (!side->rank)
		method_print_cpu(side->coll, 2, bytes, best, best_cpu);
}

static void side_main(struct side *side, const char *mode, const char *text)
{
	size_t sizes[METHOD_SIZES_MAX];
	int count = method_sizes(text, sizes);
	size_t room = method_buffer(method_largest(sizes, count), 2);

	host_bind(side->rank, 2);
	if (!host_is_pretended(mode))
		host_enter(side->rank);
	meet_other(side->rank, host_is_pretended(mode), &side->fd);
	side->out = aligned_alloc(4096, room);
	side->in = aligned_alloc(4096, room);
	if (!side->out || !side->in)
		fail("no memory");
	for (size_t i = 0; i < room / sizeof(float); i++)
		((float *)side->out)[i] = (float)(side->rank + 1);
	memset(side->in, 1, room);
	for (int i = 0; i < count; i++)
		time_size(side, sizes[i]);
}

int main(int argc, char **argv)
{
	struct side side = {.coll = argc == 5 ? method_find(argv[3]) : METHOD_COLLS};
	int status;

	side.sums = argc == 5 && strstr(argv[1], ",sum") != NULL;
	if (argc != 5 || host_count(argv[1]) != 2 || atoi(argv[2]) != 2 ||
		side.coll == METHOD_COLLS || (side.sums && side.coll != ALL_REDUCE)) {
		fprintf(stderr,
			"usage: wire hosts=2|loopback=2[,sum] 2 COLLECTIVE BYTES,..\n"
			"sum is for all_reduce\n");
		return 2;
	}
	side.shared = mmap(NULL, sizeof(*side.shared), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (side.shared == MAP_FAILED)
		return 1;
	for (side.rank = 0; side.rank < 2; side.rank++) {
		if (fork())
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		side_main(&side, argv[1], argv[4]);
		_exit(0);
	}
	for (int i = 0; i < 2; i++)
		if (wait(&status) < 0 || status)
			return 1;
	return 0;
}
