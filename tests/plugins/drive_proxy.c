/*
 * Drives a network plugin as the proxies of NCCL do while a job runs: ranks are processes
 * in a ring, each with several channels to the next and from the one before, and a long
 * row of calls of random sizes.
 *
 *   drive_proxyN [-r RANKS] [-c CHANNELS] [-n CALLS] [-s SEED] [-m MESSAGES] PLUGIN.so
 *
 * What is said to be a GPU here is a loop: a channel of a call takes a message out of the
 * slot in which it came only when it has a free slot for the one that it sends on, and a
 * rank begins a call when all channels have done with the one before. So channels wait
 * for each other over all ranks, and a plugin that has one wait for another hangs. Up to
 * eight sends and receives are asked for ahead, receives for some calls that the GPU has
 * not begun, and everything is asked about in order; now and then nobody comes to a
 * channel for a while. Half of the channels connect while the others are at work. Where
 * nothing moves for long, each rank says what is under way.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "drive_world.h"
#include "test.h"

#define SYMBOL_OF(version) "ncclNetPlugin_v" #version
#define SYMBOL(version)	   SYMBOL_OF(version)
#define NET_SYMBOL	   SYMBOL(NET_VERSION)

enum {
	RANKS_MAX = 8,
	CHANNELS_MAX = 16,
	SLOTS = 8,
	SLOT_BYTES = 512 << 10,
	HANDLE_BYTES = 128,
	AHEAD = 4, /* calls that receives are asked for */
	STUCK_S = 20,
	MARK_BYTES = 16,
};

static struct options {
	int ranks, channels, calls, messages;
	unsigned seed;
} options = {2, 4, 40, 12, 1};

/* What the ranks share. */
static struct board {
	_Atomic int is_listening[RANKS_MAX][CHANNELS_MAX];
	char handles[RANKS_MAX][CHANNELS_MAX][HANDLE_BYTES];
} * board;

static int own; /* rank */

/* ---- calls: what all ranks know of them ---- */

/* Messages of a channel; of a call that goes one way alone, rank 0 receives none and the
 * last sends none. */
struct call {
	int count, lag;
	bool is_one_way;
	size_t bytes;
};

static unsigned mix(unsigned a, unsigned b)
{
	unsigned x = a * 2654435761u ^ b * 2246822519u ^ options.seed * 3266489917u;

	x ^= x >> 15;
	x *= 2246822519u;
	return x ^ x >> 13;
}

static struct call call_at(int number, int channel)
{
	static const size_t sizes[] = {
		SLOT_BYTES, 8, 131072, 0, 65536, SLOT_BYTES, 4096, 40000};
	unsigned random = mix((unsigned)number, 77), here;

	here = mix((unsigned)number, (unsigned)channel);
	return (struct call){.count = 1 + (int)(here % (unsigned)options.messages),
		.lag = 1 + (int)(random >> 8) % 3,
		.is_one_way = random % 3 == 0,
		.bytes = sizes[(random >> 12) % (sizeof(sizes) / sizeof(*sizes))]};
}

/* How many calls more the program has begun by then: none, where it waits for each. */
static int ahead_of(int number)
{
	return mix((unsigned)number / 4, 5) % 2 ? AHEAD : 0;
}

static int sends_of(const struct call *call)
{
	return call->is_one_way && own == options.ranks - 1 ? 0 : call->count;
}

static int recvs_of(const struct call *call)
{
	return call->is_one_way && own == 0 ? 0 : call->count;
}

/* ---- one direction of a channel ---- */

struct way {
	void *comm, *known;
	char *data;
	void *requests[SLOTS];
	size_t sizes[SLOTS];
	uint64_t filled, posted, done, taken; /* messages, from the first call on */
	int call, step;			      /* the next to be asked for, or filled */
};

struct channel {
	void *listener;
	struct way send, recv;
	int call, sent, got; /* the GPU's place in its call */
};

static struct channel channels[CHANNELS_MAX];
static uint64_t moves; /* to see whether anything does */
static unsigned turn;

/* Is nobody there for this channel for a while? */
static bool is_held_up(int channel, unsigned of_what)
{
	return mix(turn >> 4, (unsigned)(channel + 100 * own) + of_what * 1000) % 4 == 0;
}

static char *slot_of(struct way *way, uint64_t message)
{
	return way->data + (size_t)(message % SLOTS) * SLOT_BYTES;
}

static void mark(char *to, size_t bytes, uint64_t message, int channel)
{
	uint64_t words[2] = {message, (uint64_t)channel};

	if (bytes < MARK_BYTES) {
		memset(to, (int)(message * 7 + (unsigned)channel), bytes);
		return;
	}
	memcpy(to, words, MARK_BYTES);
	memcpy(to + bytes - MARK_BYTES, words, MARK_BYTES);
}

static void mark_check(const char *data, size_t bytes, uint64_t message, int channel)
{
	char wanted[2 * MARK_BYTES];
	size_t end = bytes < MARK_BYTES ? 0 : bytes - MARK_BYTES;
	size_t part = bytes < MARK_BYTES ? bytes : MARK_BYTES;

	mark(wanted, part, message, channel);
	TRUE(!memcmp(data, wanted, part));
	TRUE(!memcmp(data + end, wanted, part));
}

static void send_move(struct way *way)
{
	while (way->posted < way->filled) {
		uint64_t at = way->posted;
		void **request = &way->requests[at % SLOTS];

		*request = NULL;
		EQ(net_send(way->comm, slot_of(way, at), way->sizes[at % SLOTS],
			   way->known, request),
			ncclSuccess);
		if (!*request)
			break;
		way->posted++;
		moves++;
	}
	while (way->done < way->posted) {
		int is_done = 0, bytes = -1;

		EQ(net->test(way->requests[way->done % SLOTS], &is_done, &bytes),
			ncclSuccess);
		if (!is_done)
			break;
		EQ(bytes, way->sizes[way->done % SLOTS]);
		way->done++;
		moves++;
	}
}

/* The next message that is to come, unless it is too far ahead. */
static bool recv_next(struct way *way, int channel, int gpu_call, size_t *bytes)
{
	while (way->call < options.calls) {
		struct call call = call_at(way->call, channel);

		if (way->call > gpu_call + ahead_of(gpu_call))
			return false;
		*bytes = call.bytes;
		if (way->step < recvs_of(&call))
			return true;
		way->call++;
		way->step = 0;
	}
	return false;
}

static void recv_move(struct way *way, int channel, int gpu_call)
{
	size_t bytes = 0;

	while (way->posted - way->taken < SLOTS &&
		recv_next(way, channel, gpu_call, &bytes)) {
		uint64_t at = way->posted;
		void **request = &way->requests[at % SLOTS];

		*request = NULL;
		EQ(net_recv(way->comm, slot_of(way, at), bytes, way->known, request),
			ncclSuccess);
		if (!*request)
			break;
		way->sizes[at % SLOTS] = bytes;
		way->posted++;
		way->step++;
		moves++;
	}
	while (way->done < way->posted) {
		int is_done = 0, bytes_got = -1;

		EQ(net->test(way->requests[way->done % SLOTS], &is_done, &bytes_got),
			ncclSuccess);
		if (!is_done)
			break;
		EQ(bytes_got, way->sizes[way->done % SLOTS]);
		mark_check(slot_of(way, way->done), way->sizes[way->done % SLOTS],
			way->done, channel);
		way->done++;
		moves++;
	}
}

/* ---- the GPU ---- */

static void gpu_fill(struct channel *channel, int number, const struct call *call)
{
	struct way *way = &channel->send;

	mark(slot_of(way, way->filled), call->bytes, way->filled, number);
	way->sizes[way->filled % SLOTS] = call->bytes;
	way->filled++;
	channel->sent++;
	moves++;
}

/* One turn of one channel; is it through with the call? */
static bool gpu_channel(struct channel *channel, int number)
{
	struct call call = call_at(channel->call, number);
	int sends = sends_of(&call), recvs = recvs_of(&call);
	bool has_room = channel->send.filled - channel->send.done < SLOTS;
	bool has_come = channel->recv.done > channel->recv.taken;

	if (!channel->send.comm || !channel->recv.comm)
		return false;
	if (channel->sent == sends && channel->got == recvs)
		return true;
	if (channel->sent < sends && (channel->sent < call.lag || !recvs)) {
		if (has_room)
			gpu_fill(channel, number, &call);
	} else if (channel->got < recvs && has_come &&
		   (has_room || channel->sent == sends)) {
		channel->recv.taken++;
		channel->got++;
		moves++;
		if (channel->sent < sends)
			gpu_fill(channel, number, &call);
	} else if (channel->got == recvs && channel->sent < sends && has_room) {
		gpu_fill(channel, number, &call);
	}
	return false;
}

static void gpu_move(void)
{
	bool are_through = true;

	for (int i = 0; i < options.channels; i++) {
		if (is_held_up(i, 1))
			are_through = false;
		else
			are_through = gpu_channel(&channels[i], i) && are_through;
	}
	if (!are_through)
		return;
	for (int i = 0; i < options.channels; i++) {
		channels[i].call++;
		channels[i].sent = channels[i].got = 0;
	}
	moves++;
}

/* ---- connecting ---- */

static void way_memory(struct way *way)
{
	size_t bytes = (size_t)SLOTS * SLOT_BYTES;

	way->data = aligned_alloc(4096, bytes);
	TRUE(way->data);
	memset(way->data, 0, bytes);
	EQ(net->regMr(
		   way->comm, way->data, SLOTS * SLOT_BYTES, NCCL_PTR_HOST, &way->known),
		ncclSuccess);
}

static void channel_connect(struct world *world, int number)
{
	struct channel *channel = &channels[number];
	int next = (own + 1) % options.ranks;

	if (!channel->listener) {
		EQ(net_listen(world, board->handles[own][number], &channel->listener),
			ncclSuccess);
		atomic_store(&board->is_listening[own][number], 1);
		moves++;
	}
	if (!channel->send.comm && atomic_load(&board->is_listening[next][number])) {
		EQ(net_connect(world, board->handles[next][number], &channel->send.comm),
			ncclSuccess);
		if (channel->send.comm)
			way_memory(&channel->send);
	}
	if (!channel->recv.comm) {
		EQ(net_accept(channel->listener, &channel->recv.comm), ncclSuccess);
		if (channel->recv.comm)
			way_memory(&channel->recv);
	}
}

/* Of the second half when the first call is over. */
static bool is_due(int number)
{
	return number < (options.channels + 1) / 2 || channels[0].call > 0 ||
	       channels[0].sent + channels[0].got > 0;
}

/* ---- a rank ---- */

static void ways_show(void)
{
	for (int i = 0; i < options.channels; i++) {
		const struct channel *at = &channels[i];

		fprintf(stderr,
			"rank %d channel %d: call %d, gpu %d sent %d got; sends %lu "
			"filled %lu asked %lu done; receives %lu asked %lu done %lu "
			"taken\n",
			own, i, at->call, at->sent, at->got, at->send.filled,
			at->send.posted, at->send.done, at->recv.posted, at->recv.done,
			at->recv.taken);
	}
}

static bool is_over(void)
{
	for (int i = 0; i < options.channels; i++)
		if (channels[i].call < options.calls ||
			channels[i].send.done < channels[i].send.filled)
			return false;
	return true;
}

static void way_close(struct way *way, int (*closer)(void *))
{
	EQ(net->deregMr(way->comm, way->known), ncclSuccess);
	EQ(closer(way->comm), ncclSuccess);
	free(way->data);
}

static void rank_run(void)
{
	struct world world = world_open();
	uint64_t seen = 0, sent = 0;
	time_t since = time(NULL);

	while (!is_over()) {
		for (int i = 0; i < options.channels; i++) {
			if (is_due(i) &&
				(!channels[i].send.comm || !channels[i].recv.comm))
				channel_connect(&world, i);
			if (channels[i].recv.comm)
				recv_move(&channels[i].recv, i, channels[i].call);
			if (channels[i].send.comm && !is_held_up(i, 2))
				send_move(&channels[i].send);
		}
		if (channels[0].call < options.calls)
			gpu_move();
		turn++;
		if (moves != seen) {
			seen = moves;
			since = time(NULL);
		} else if (time(NULL) > since + STUCK_S) {
			ways_show();
			exit(1);
		}
	}
	for (int i = 0; i < options.channels; i++) {
		sent += channels[i].send.done;
		way_close(&channels[i].send, net->closeSend);
		way_close(&channels[i].recv, net->closeRecv);
		EQ(net->closeListen(channels[i].listener), ncclSuccess);
	}
	world_close(&world);
	printf("rank %d sent %lu messages in %d calls\n", own, sent, options.calls);
}

static bool options_read(int argc, char **argv)
{
	int letter;

	while ((letter = getopt(argc, argv, "r:c:n:s:m:")) != -1)
		switch (letter) {
		case 'r':
			options.ranks = atoi(optarg);
			break;
		case 'c':
			options.channels = atoi(optarg);
			break;
		case 'n':
			options.calls = atoi(optarg);
			break;
		case 's':
			options.seed = (unsigned)atoi(optarg);
			break;
		case 'm':
			options.messages = atoi(optarg);
			break;
		default:
			return false;
		}
	return optind == argc - 1 && options.ranks >= 2 && options.ranks <= RANKS_MAX &&
	       options.channels >= 1 && options.channels <= CHANNELS_MAX &&
	       options.messages >= 1;
}

static int rank_start(int rank, const char *plugin)
{
	void *library;

	own = rank;
	library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "drive_proxy: %s\n", dlerror());
		return 2;
	}
	net = dlsym(library, NET_SYMBOL);
	TRUE(net);
	rank_run();
	return 0;
}

int main(int argc, char **argv)
{
	int bad = 0, status;

	if (!options_read(argc, argv)) {
		fprintf(stderr, "usage: drive_proxy [-r RANKS] [-c CHANNELS] [-n CALLS] "
				"[-s SEED] [-m MESSAGES] PLUGIN.so\n");
		return 2;
	}
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	TRUE(board != MAP_FAILED);
	for (int rank = 0; rank < options.ranks; rank++)
		if (!fork())
			exit(rank_start(rank, argv[optind]));
	while (wait(&status) > 0)
		bad += status != 0;
	return bad != 0;
}
