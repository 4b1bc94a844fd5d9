/*
 * Drives a network plugin as the proxy of NCCL does, for the version that NET_VERSION
 * says.
 *
 *   drive_netN PLUGIN.so [PART ..]
 *
 * Both ends are in this process. Connecting, accepting, sending and receiving are asked
 * for again until there is a connection or a request; nothing may wait inside the plugin,
 * since one thread has both ends. What comes back is compared byte for byte, with its
 * size.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

#include "drive_group.h"
#include "drive_lines.h"
#include "test.h"

#define SYMBOL_OF(version) "ncclNetPlugin_v" #version
#define SYMBOL(version)	   SYMBOL_OF(version)
#define NET_SYMBOL	   SYMBOL(NET_VERSION)

enum { LINES = 4, REQUESTS = 32, THREADS = 3 };

/* ---- parts ---- */

static void part_properties(void)
{
	struct world world = world_open();
	const char *proto = getenv("NCCL_PROTO"), *wanted = getenv("DRIVE_PROTO");
	int count = 0;

	if (wanted) /* it has set it, or not */
		EQ_STR(proto ? proto : "unset", wanted);

	EQ(net->devices(&count), ncclSuccess);
	TRUE(count > 0);
	for (int i = 0; i < count; i++) {
		ncclNetProperties_t props;

		memset(&props, 0xa5, sizeof(props));
		EQ(net->getProperties(i, &props), ncclSuccess);
		TRUE(props.name && props.name[0]);
		TRUE(props.ptrSupport & NCCL_PTR_HOST);
		EQ(!(props.ptrSupport & NCCL_PTR_CUDA), !getenv("DRIVE_GPU"));
		EQ(!(props.ptrSupport & NCCL_PTR_DMABUF), !is_on_gpu("dmabuf"));
		TRUE(props.speed > 0 && props.speed < 10000000);
		TRUE(props.latency >= 0 && props.latency < 1e6f);
		TRUE(props.maxComms >= 0);
		TRUE(props.maxRecvs >= 1 && props.maxRecvs <= 8);
		TRUE(props.port >= 0 && props.port < 256);
#if NET_VERSION >= 7
		EQ(props.netDeviceType, 0);
#endif
#if NET_VERSION >= 8
		TRUE(props.regIsGlobal == 0 || props.regIsGlobal == 1);
#endif
#if NET_VERSION >= 9
		TRUE(props.forceFlush == 0 || props.forceFlush == 1);
		EQ(props.vProps.ndevs, 1);
		EQ(props.vProps.devs[0], i);
		TRUE(props.maxP2pBytes >= STEP_BYTES && props.maxCollBytes >= STEP_BYTES);
#endif
#if NET_VERSION >= 12
		EQ(props.railId, -1);
		EQ(props.planeId, -1);
#endif
	}
	is_quiet = true;
	TRUE(net->getProperties(count, &(ncclNetProperties_t){0}) != ncclSuccess);
	is_quiet = false;
	world_close(&world);
}

static void part_messages(void)
{
	struct world from = world_open(), to = world_open();
	struct line lines[LINES];

	lines_open(lines, LINES, &from, &to);
	for (int i = 0; i < LINES; i++)
		lines[i].seed = (unsigned)i;
	lines_run(lines, LINES);
	for (int i = 0; i < LINES; i++)
		line_close(&lines[i], i);
	world_close(&to);
	world_close(&from);
}

/* Both ways between two worlds, as the ranks of a ring of two have it; and to oneself. */
static void part_both_ways(void)
{
	struct world one = world_open(), two = world_open();
	struct line lines[3];

	lines_open(&lines[0], 1, &one, &two);
	lines_open(&lines[1], 1, &two, &one);
	lines_open(&lines[2], 1, &one, &one);
	lines_run(lines, 3);
	for (int i = 2; i >= 0; i--)
		line_close(&lines[i], i + 1);
	world_close(&one);
	world_close(&two);
}

/* Sends that nobody has asked for yet, up to where no more are taken. */
static void part_early(void)
{
	struct world world = world_open();
	struct line line;
	int done = 0;

	lines_open(&line, 1, &world, &world);
	line.seed = 3; /* the first has all of a step */
	for (int turn = 0; turn < 2000; turn++) {
		send_post(&line);
		if (line.send.posted)
			EQ(net->test(line.send.requests[0], &done, NULL), ncclSuccess);
		if (done)
			break;
	}
	if (done) {
		line.send.done++;
		line.send.requests[0] = NULL;
	}
	lines_run(&line, 1);
	line_close(&line, 0);
	world_close(&world);
}

/* A long message after a short one that nobody had asked for: the sender has nothing to
 * test, and asks to send until it may. */
static void part_ahead(void)
{
	struct world from = world_open(), to = world_open();
	struct line line;

	lines_open(&line, 1, &from, &to);
	line.seed = 2; /* 4096 bytes, then a whole step */
	for (int turn = 0; turn < 2000 && !line.send.done; turn++) {
		if (!line.send.posted)
			send_post(&line);
		line_sent(&line);
	}
	for (time_t until = deadline(); line.send.posted == line.send.done;) {
		recv_post(&line);
		line_receive(&line);
		send_post(&line);
		TRUE(time(NULL) < until);
	}
	lines_run(&line, 1);
	line_close(&line, 0);
	world_close(&to);
	world_close(&from);
}

/* A sender that has closed all it had before the receiver asks for what it sent: ranks
 * end a job one after the other. */
static void part_parting(void)
{
	enum { SENT = 3 };
	struct world from = world_open(), to = world_open();
	struct line line;

	lines_open(&line, 1, &from, &to);
	for (int turn = 0; turn < 2000 && line.send.done < SENT; turn++) {
		if (line.send.posted < SENT)
			send_post(&line);
		line_sent(&line);
	}
	while (line.send.done < SENT) { /* nothing is sent unasked */
		line_sent(&line);
		if (line.send.posted < SENT)
			send_post(&line);
		if (line.recv.posted < SENT)
			recv_post(&line);
		line_receive(&line);
	}
	end_forget(&line.send);
	EQ(net->closeSend(line.send.comm), ncclSuccess);
	world_close(&from);
	for (time_t until = deadline(); line.recv.done < SENT; TRUE(time(NULL) < until)) {
		while (line.recv.posted < SENT)
			recv_post(&line);
		line_receive(&line);
	}
	end_forget(&line.recv);
	EQ(net->closeRecv(line.recv.comm), ncclSuccess);
	EQ(net->closeListen(line.listener), ncclSuccess);
	end_free(&line.send);
	end_free(&line.recv);
	world_close(&to);
}

static void line_again(struct line *line)
{
	line->send.posted = line->send.done = line->send.filled = 0;
	line->recv.posted = line->recv.done = 0;
}

/* A connection whose receiver asks for nothing yet must not hold up others between the
 * same two ends: what would have it ask may wait for them, as a GPU's kernel does. One
 * after the other has sent all it may, while the next does all of its work. */
static void part_apart(void)
{
	struct world from = world_open(), to = world_open();
	struct line lines[LINES];

	lines_open(lines, LINES, &from, &to);
	for (int i = 0; i < LINES; i++)
		lines[i].seed = (unsigned)i + 3; /* long ones in front */
	for (int ahead = 0; ahead < LINES - 1; ahead++) {
		for (int i = 0; i < STEPS; i++)
			send_post(&lines[ahead]);
		lines_run(&lines[ahead + 1], 1);
		line_again(&lines[ahead + 1]);
	}
	lines_run(lines, LINES);
	for (int i = 0; i < LINES; i++)
		line_close(&lines[i], i);
	world_close(&to);
	world_close(&from);
}

/* As many as NCCL may have under way, tested from the newest to the oldest. */
static void part_many(void)
{
	struct world world = world_open();
	void *requests[2][REQUESTS] = {{NULL}};
	struct line line;
	int left = 2 * REQUESTS;

	lines_open(&line, 1, &world, &world);
	for (int i = 0; i < REQUESTS; i++) {
		for (time_t until = deadline(); !requests[0][i]; TRUE(time(NULL) < until))
			EQ(net_recv(line.recv.comm, line.recv.data + i * 64, 64,
				   line.recv.known, &requests[0][i]),
				ncclSuccess);
		memset(line.send.seen + i * 64, i, 64);
		for (time_t until = deadline(); !requests[1][i]; TRUE(time(NULL) < until))
			EQ(net_send(line.send.comm, line.send.data + i * 64, 64,
				   line.send.known, &requests[1][i]),
				ncclSuccess);
	}
	for (time_t until = deadline(); left; TRUE(time(NULL) < until))
		for (int i = 2 * REQUESTS - 1; i >= 0; i--) {
			void **request = &requests[i % 2][i / 2];
			int done = 0, bytes = 0;

			if (!*request)
				continue;
			EQ(net->test(*request, &done, &bytes), ncclSuccess);
			if (!done)
				continue;
			EQ(bytes, 64);
			*request = NULL;
			left--;
		}
	line_flush(&line, 0, 64);
	for (int i = 0; i < REQUESTS; i++)
		for (int b = 0; b < 64; b++)
			EQ(line.recv.seen[i * 64 + b], i);
	line_close(&line, 2);
	world_close(&world);
}

static void flush_any(void *line)
{
	line_flush(line, 0, 8);
}

static struct group_end group_end_of(const struct end *end)
{
	return (struct group_end){end->comm, end->known, end->data, end->seen};
}

/* Several receives at once, where they are offered. */
static void part_grouped(void)
{
	struct world from = world_open(), to = world_open();
	const char *protocol = getenv("OFI_NCCL_PROTOCOL");
	struct group_end send, recv;
	ncclNetProperties_t props;
	struct line line;

	EQ(net->getProperties(0, &props), ncclSuccess);
	if (protocol)
		EQ(props.maxRecvs,
			NET_VERSION >= 9 && !strcmp(protocol, "RDMA") ? GROUP_MAX : 1);
	lines_open(&line, 1, &from, &to);
	send = group_end_of(&line.send);
	recv = group_end_of(&line.recv);
	for (int size = 1; size <= props.maxRecvs; size++)
		group_drive(&send, &recv, size, flush_any, &line);
	line_close(&line, 1);
	world_close(&to);
	world_close(&from);
}

/* DRIVE_EARLY: receives are done, or not, before anything is sent. */
static void part_before(void)
{
	struct world from = world_open(), to = world_open();
	struct group_end ends[2];
	struct line line;

	lines_open(&line, 1, &from, &to);
	ends[0] = group_end_of(&line.send);
	ends[1] = group_end_of(&line.recv);
	early_drive(ends, atoi(getenv("DRIVE_EARLY")));
	line_close(&line, 1);
	world_close(&to);
	world_close(&from);
}

/* A communicator that ends before its connections, which one split off still uses. */
static void part_outlived(void)
{
	struct world from = world_open(), to = world_open();
	struct line line;

	lines_open(&line, 1, &from, &to);
	world_close(&from);
	world_close(&to);
	lines_run(&line, 1);
	line_close(&line, 1);
}

/* What is under way when a communicator is aborted. */
static void part_abort(void)
{
	struct world world = world_open();
	struct line lines[3];

	lines_open(lines, 3, &world, &world);
	for (int i = 0; i < 3; i++)
		for (int turn = 0; turn < 4; turn++) {
			lines[i].seed = 3;
			if (i != 1)
				recv_post(&lines[i]);
			if (i != 2)
				send_post(&lines[i]);
		}
	for (int i = 0; i < 3; i++)
		line_close(&lines[i], i);
	/* listening, and half connected */
	line_listen(&lines[0], &world, &world);
	EQ(net->closeListen(lines[0].listener), ncclSuccess);
	world_close(&world);
}

static void part_memory(void)
{
	enum { BUFFERS = 1000, BYTES = 8192 };
	struct world world = world_open();
	char *data = aligned_alloc(4096, (size_t)BUFFERS * BYTES);
	void *known[2][BUFFERS];
	struct line line;

	TRUE(data);
	lines_open(&line, 1, &world, &world);
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < BUFFERS; i++)
			EQ(net->regMr(line.send.comm, data + (size_t)i * BYTES, BYTES,
				   NCCL_PTR_HOST, &known[round][i]),
				ncclSuccess);
	for (int i = 0; i < BUFFERS; i++)
		for (int round = 0; round < 2; round++)
			EQ(net->deregMr(line.send.comm, known[round][(i * 7) % BUFFERS]),
				ncclSuccess);
	is_quiet = true;
	TRUE(net->regMr(line.send.comm, data, BYTES, 64, &known[0][0]) != ncclSuccess);
	TRUE(net->regMr(line.send.comm, data, BYTES, NCCL_PTR_CUDA, &known[0][0]) !=
		ncclSuccess); /* it is the host's */
	is_quiet = false;
	lines_run(&line, 1);
	line_close(&line, 1);
	free(data);
	world_close(&world);
}

static void failure_check(void)
{
	const char *wanted = getenv("DRIVE_SAYS");

	TRUE(failure >= 1 && failure <= 7); /* what NCCL knows */
	if (!wanted || strstr(said, wanted))
		return;
	fprintf(stderr, "not \"%s\", but: %s\n", wanted, said);
	exit(1);
}

static void part_fails(void)
{
	struct world world = world_open();
	struct line line;

	may_fail = true;
	lines_open(&line, 1, &world, &world);
	if (!failure)
		lines_run(&line, 1);
	failure_check();
	line_close(&line, 0);
	world_close(&world);
}

/* A message that is longer than what was asked for. */
static void part_longer(void)
{
	enum { ASKED = 64, SENT = 5000 };
	struct world world = world_open();
	void *requests[2] = {NULL, NULL};
	struct line line;

	lines_open(&line, 1, &world, &world);
	memset(line.recv.data, 7, STEP_BYTES);
	may_fail = true;
	for (time_t until = deadline(); !failure; TRUE(time(NULL) < until)) {
		int done = 0;

		if (!requests[0])
			went(net_recv(line.recv.comm, line.recv.data, ASKED,
				line.recv.known, &requests[0]));
		if (!requests[1] && !failure)
			went(net_send(line.send.comm, line.send.data, SENT,
				line.send.known, &requests[1]));
		for (int i = 0; i < 2 && !failure; i++)
			if (requests[i])
				went(net->test(requests[i], &done, NULL));
	}
	failure_check();
	for (int i = ASKED; i < STEP_BYTES; i++)
		EQ(line.recv.data[i], 7);
	line_close(&line, 0);
	world_close(&world);
}

/* One end is another version of the plugin, DRIVE_OTHER: both say so, the listener as
 * well, which is called by nobody who can speak with it. */
static void part_skewed(void)
{
	static const char *const wanted[] = {
		"the other end speaks version 2 and this one 4",
		"the other end speaks version 4 and this one 2"};
	void *library = dlopen(getenv("DRIVE_OTHER"), RTLD_NOW | RTLD_LOCAL);
	const ncclNet_t *both[] = {net, library ? dlsym(library, NET_SYMBOL) : NULL};

	for (int listens = 0; listens < 2; listens++) {
		struct world worlds[2] = {{NULL}, {NULL}};
		struct line line = {.seed = 0};
		int got[2] = {0, 0};

		said[0] = '\0';
		may_fail = true;
		for (int i = 0; i < 2; i++) {
			net = both[i];
			TRUE(net);
			worlds[i] = world_open();
		}
		net = both[listens];
		EQ(net_listen(&worlds[listens], line.handle, &line.listener),
			ncclSuccess);
		for (time_t until = deadline(); !got[0] || !got[1];
			TRUE(time(NULL) < until)) {
			net = both[!listens];
			if (!got[!listens])
				got[!listens] = net_connect(
					&worlds[!listens], line.handle, &line.send.comm);
			net = both[listens];
			if (!got[listens])
				got[listens] = net_accept(line.listener, &line.recv.comm);
			TRUE(!line.send.comm && !line.recv.comm);
		}
		EQ(net->closeListen(line.listener), ncclSuccess);
		for (int i = 0; i < 2; i++) {
			TRUE(strstr(said, wanted[i]));
			net = both[i];
			world_close(&worlds[i]);
		}
	}
	net = both[0];
}

static void *thread_main(void *unused)
{
	(void)unused;
	part_messages();
	return NULL;
}

/* Communicators of one process, each with a thread of its own. */
static void part_threads(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		EQ(pthread_create(&threads[i], NULL, thread_main, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		EQ(pthread_join(threads[i], NULL), 0);
}

static const struct {
	const char *name;
	void (*run)(void);
	bool is_odd; /* only where it is named */
} parts[] = {{"properties", part_properties, false}, {"messages", part_messages, false},
	{"both ways", part_both_ways, false}, {"early", part_early, false},
	{"ahead", part_ahead, false}, {"parting", part_parting, false},
	{"apart", part_apart, false}, {"many", part_many, false},
	{"grouped", part_grouped, false}, {"outlived", part_outlived, false},
	{"abort", part_abort, false}, {"memory", part_memory, false},
	{"threads", part_threads, false}, {"fails", part_fails, true},
	{"before", part_before, true}, {"longer", part_longer, true},
	{"skewed", part_skewed, true}};

static bool is_wanted(int part, int argc, char **argv)
{
	for (int i = 2; i < argc; i++)
		if (!strcmp(argv[i], parts[part].name))
			return true;
	return argc <= 2 && !parts[part].is_odd;
}

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	int run = 0;

	if (!library) {
		fprintf(stderr, "usage: drive_net PLUGIN.so [PART ..]: %s\n", dlerror());
		return 2;
	}
	net = dlsym(library, NET_SYMBOL);
	TRUE(net);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		if (!is_wanted((int)i, argc, argv))
			continue;
		printf("%s: %s ..", NET_SYMBOL, parts[i].name);
		fflush(stdout);
		parts[i].run();
		printf(" as it should be\n");
		run++;
	}
	if (!run)
		fprintf(stderr, "drive_net: no such part\n");
	return run ? 0 : 2;
}
