/* Ranks meet, or all learn why not; strangers are no hindrance. Ranks are threads. */
#include "boot/boot.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/param.h"
#include "entries.h"
#include "free_port.h"
#include "log_text.h"
#include "net/psk.h"
#include "spy.h"
#include "test.h"

enum { RANKS_MAX = 64 };

/* Where family and name stand in an id: see struct id_body. */
enum { ID_SECRET = 8, ID_PORT = 42, ID_NAME = 44 };

struct seat {
	struct boot_args args;
	pthread_t thread;
	uint32_t record[4];
	uint32_t late_us;    /* it comes when the others are there */
	uint32_t rounds;     /* before the last one */
	enum err fails;	     /* it says so in the last round */
	bool dies;	     /* .. or is gone by then */
	uint32_t gathers[4]; /* sizes of the records it brings, each in a round; 0 ends */
	uint32_t gather_fails; /* .. but not the n-th, counted from 1: it says why */
	uint32_t gather_dies;  /* .. or is gone by then */
	enum err e;
	char sentence[512];
	uint32_t records[RANKS_MAX * 4];
};

static struct boot_id id, spare[3];
static char log_path[] = "/tmp/weft-boot-XXXXXX";
static struct seat seats[RANKS_MAX];

static void set(const char *name, enum param param, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
	param_forget(param);
}

/* Do all of it over TCP, where one rank speaks for its host? */
static bool by_porch;

static enum err id_make(void)
{
	char text[64];

	if (by_porch) {
		snprintf(text, sizeof(text), "127.0.0.1:%d", port_find(AF_INET));
		set("NCCL_COMM_ID", PARAM_COMM_ID, text);
	}
	return boot_id_create(&id);
}

/* What rank `rank` brings as byte `at` of the n-th record. */
static unsigned char brought(uint32_t rank, uint32_t n, uint32_t at)
{
	return (unsigned char)(rank * 37 + n * 11 + at + (at >> 8));
}

static enum err gather_once(struct seat *seat, struct meeting *meeting, uint32_t n)
{
	uint32_t bytes = seat->gathers[n], count = seat->args.rank_count;
	unsigned char *record = malloc(bytes), *records = malloc((size_t)count * bytes);
	enum err mine = seat->gather_fails == n + 1 ? ERR_SYSTEM : OK, e;

	TRUE(record && records);
	for (uint32_t i = 0; i < bytes; i++)
		record[i] = brought(seat->args.rank, n, i);
	if (mine)
		err_set(mine, "no ink for rank %u", seat->args.rank);
	e = boot_gather(meeting, mine, record, bytes, records);
	for (uint32_t rank = 0; rank < count && !e; rank++)
		for (uint32_t i = 0; i < bytes; i++)
			EQ(records[(size_t)rank * bytes + i], brought(rank, n, i));
	free(record);
	free(records);
	return e;
}

static void *meet(void *argument)
{
	struct seat *seat = argument;

	struct meeting *meeting = NULL;

	usleep(seat->late_us);
	if (seat->args.failed)
		err_set(seat->args.failed, "no bed for rank %u", seat->args.rank);
	seat->e = boot_meet(&seat->args, seat->records, &meeting);
	for (uint32_t i = 0; i < seat->rounds && !seat->e; i++)
		seat->e = boot_agree(meeting, OK, false);
	for (uint32_t n = 0; n < 4 && seat->gathers[n] && !seat->e && !seat->dies; n++)
		if (seat->gather_dies == n + 1)
			seat->dies = true;
		else
			seat->e = gather_once(seat, meeting, n);
	if (!seat->e && seat->fails)
		err_set(seat->fails, "no bread for rank %u", seat->args.rank);
	if (!seat->e && !seat->dies)
		seat->e = boot_agree(meeting, seat->fails, true);
	boot_leave(meeting);
	snprintf(seat->sentence, sizeof(seat->sentence), "%s", seat->e ? err_last() : "");
	return NULL;
}

/* Seats for ranks 0 .. count-1 of `rank_count` at `id`; the test may change them. */
static void seats_set(uint32_t count, uint32_t rank_count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct seat *seat = &seats[i];

		memset(seat, 0, sizeof(*seat));
		seat->record[0] = 1000 + i;
		seat->record[3] = ~i;
		seat->args = (struct boot_args){.ids = &id,
			.id_count = 1,
			.rank = i,
			.rank_count = rank_count,
			.record = seat->record,
			.record_bytes = sizeof(seat->record)};
	}
}

static double seats_run(uint32_t count)
{
	uint64_t begin = clock_ns();

	for (uint32_t i = 0; i < count; i++)
		EQ(pthread_create(&seats[i].thread, NULL, meet, &seats[i]), 0);
	for (uint32_t i = 0; i < count; i++)
		EQ(pthread_join(seats[i].thread, NULL), 0);
	return (double)(clock_ns() - begin) / 1e6;
}

static void all_met(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (seats[i].e)
			fprintf(stderr, "rank %u: %s\n", i, seats[i].sentence);
		EQ(seats[i].e, OK);
		for (uint32_t j = 0; j < count; j++) {
			EQ(seats[i].records[4 * j], 1000 + j);
			EQ(seats[i].records[4 * j + 3], ~j);
		}
	}
}

static void all_failed(uint32_t count, enum err code, const char *part)
{
	for (uint32_t i = 0; i < count; i++) {
		if (seats[i].e != code)
			fprintf(stderr, "rank %u: %s\n", i, seats[i].sentence);
		EQ(seats[i].e, code);
		if (!strstr(seats[i].sentence, part))
			EQ_STR(seats[i].sentence, part);
	}
}

static void ranks_meet(uint32_t count)
{
	EQ(id_make(), OK);
	seats_set(count, count);
	printf("%u ranks met in %.2f ms\n", count, seats_run(count));
	all_met(count);
}

/* Rounds after the meeting: all go on, or all hear of the one that does not. */
static void rounds_are_made(void)
{
	for (uint32_t rounds = 0; rounds < 3; rounds++) {
		EQ(id_make(), OK);
		seats_set(5, 5);
		for (uint32_t i = 0; i < 5; i++)
			seats[i].rounds = rounds;
		seats_run(5);
		all_met(5);
	}
	EQ(id_make(), OK);
	seats_set(4, 4);
	seats[2].fails = ERR_SYSTEM;
	seats_run(4);
	EQ(seats[2].e, ERR_SYSTEM);
	EQ_STR(seats[2].sentence, "no bread for rank 2");
	seats[2] = seats[3];
	all_failed(3, ERR_REMOTE, "rank 2: no bread for rank 2");
	EQ(id_make(), OK);
	seats_set(4, 4);
	seats[1].rounds = seats[0].rounds = seats[2].rounds = seats[3].rounds = 1;
	seats[3].dies = true;
	seats_run(4);
	EQ(seats[3].e, OK);
	all_failed(3, ERR_REMOTE, "rank 3 died while the communicator was made");
}

static void seats_gather(uint32_t count, const uint32_t sizes[4])
{
	EQ(id_make(), OK);
	seats_set(count, count);
	for (uint32_t i = 0; i < count; i++)
		memcpy(seats[i].gathers, sizes, sizeof(seats[i].gathers));
}

/* Records of any size in later rounds, among plain rounds; who fails, dies or brings
 * something else is known to all. */
static void records_are_gathered(void)
{
	static const uint32_t sizes[4] = {24, BOOT_GATHER_MAX, 1, 5000};

	for (uint32_t count = 1; count <= 33; count += 8) {
		seats_gather(count, sizes);
		for (uint32_t i = 0; i < count; i++)
			seats[i].rounds = 2;
		seats_run(count);
		all_met(count);
	}
	seats_gather(4, sizes);
	seats[1].gather_fails = 2;
	seats_run(4);
	EQ(seats[1].e, ERR_SYSTEM);
	EQ_STR(seats[1].sentence, "no ink for rank 1");
	seats[1] = seats[3];
	all_failed(3, ERR_REMOTE, "rank 1: no ink for rank 1");
	seats_gather(4, sizes);
	seats[3].gather_dies = 3;
	seats_run(4);
	EQ(seats[3].e, OK);
	all_failed(3, ERR_REMOTE, "rank 3 died while the communicator was made");
	for (uint32_t odd = 0; odd < 48; odd += 24) { /* one brings less, or nothing */
		seats_gather(3, sizes);
		seats[2].gathers[0] = odd / 2;
		seats_run(3);
		all_failed(3, ERR_USAGE, "they run different versions");
	}
	seats_gather(2, sizes);
	seats[0].gathers[1] = seats[1].gathers[1] = BOOT_GATHER_MAX + 1;
	seats_run(2);
	all_failed(2, ERR_ARGUMENT, "a record of 8193 bytes, at most 8192");
}

/* A rank that cannot take part comes to say so; misuse stays misuse. */
static void one_cannot_come(void)
{
	/* over TCP it is rank 0 that has the root */
	for (int i = by_porch; i < 2; i++) {
		EQ(id_make(), OK);
		seats_set(3, 3);
		seats[i].args.failed = i ? ERR_USAGE : ERR_SYSTEM;
		TRUE(seats_run(3) < 60000);
		EQ(seats[i].e, i ? ERR_USAGE : ERR_SYSTEM);
		seats[i] = seats[2];
		all_failed(2, i ? ERR_USAGE : ERR_REMOTE, "no bed for rank");
	}
}

static enum err no_hope(void *arg, bool has_met)
{
	(void)has_met;
	return err_set(ERR_REMOTE, "%s", (const char *)arg);
}

/* Somebody knows that a rank will not come: nobody waits for the deadline. */
static void hope_is_lost(void)
{
	EQ(id_make(), OK);
	seats_set(2, 3);
	seats[1].args.hope = no_hope;
	seats[1].args.hope_arg = (void *)(uintptr_t) "rank 2 is no more";
	seats_run(2);
	all_failed(2, ERR_REMOTE, "rank 2 is no more");
}

/* A used id is refused at once, as is one that was never an id. */
static void old_ids_are_refused(void)
{
	static struct boot_id zero;

	ranks_meet(2);
	seats_set(1, 2);
	TRUE(seats_run(1) < 500);
	all_failed(1, ERR_REMOTE, "nobody listens any more");
	id = zero;
	seats_set(1, 2);
	seats_run(1);
	all_failed(1, ERR_ARGUMENT, "not made by this version");
	TRUE(fcntl(STDIN_FILENO, F_GETFD) >= 0); /* what is not ours stays open */
}

static void wrong_secret(void)
{
	struct boot_id wrong;

	EQ(boot_id_create(&id), OK);
	wrong = id;
	wrong.bytes[ID_SECRET] ^= 1;
	TRUE(boot_id_hash(&wrong) != boot_id_hash(&id));
	seats_set(1, 2);
	seats[0].args.ids = &wrong;
	seats_run(1);
	all_failed(1, ERR_USAGE, "does not know this id's secret");
	seats_set(2, 2);
	seats_run(2); /* the root took no notice */
	all_met(2);
}

static void claims_must_fit(void)
{
	EQ(id_make(), OK);
	seats_set(3, 3);
	seats[2].args.rank = 1;
	seats_run(3);
	all_failed(3, ERR_USAGE, "two ranks say that they are rank 1 of 3");

	EQ(id_make(), OK);
	seats_set(3, 3);
	seats[1].args.rank_count = 2;
	seats_run(3);
	all_failed(3, ERR_USAGE, "ranks, rank ");

	EQ(id_make(),
		OK); /* one that comes when the others have heard it hears it, too */
	seats_set(3, 3);
	seats[1].args.rank_count = 2;
	seats[2].late_us = 100000;
	TRUE(seats_run(3) < 60000);
	all_failed(3, ERR_USAGE, "ranks, rank ");

	EQ(id_make(), OK);
	seats_set(2, 2);
	seats[1].args.record_bytes = 12;
	seats_run(2);
	all_failed(2, ERR_USAGE, "they run different versions");

	seats_set(1, 1);
	seats[0].args.rank = 1;
	seats_run(1);
	all_failed(1, ERR_ARGUMENT, "no rank 1 among 1");
}

static void missing_ranks_are_named(void)
{
	double ms;

	set("WEFT_BOOT_TIMEOUT_SEC", PARAM_BOOT_TIMEOUT, "1");
	EQ(id_make(), OK);
	seats_set(3, 9);
	seats[2].args.rank = 4;
	ms = seats_run(3);
	TRUE(ms > 900 && ms < 1900);
	all_failed(3, ERR_TIMEOUT, "ranks 2-3, 5-8 of 9 did not come within 1 s");
	set("WEFT_BOOT_TIMEOUT_SEC", PARAM_BOOT_TIMEOUT, NULL);
}

static void *raise_later(void *word)
{
	usleep(50000);
	atomic_store((atomic_int *)word, 1);
	return NULL;
}

/* One rank gives up; the other hears of it long before the deadline. */
static void abort_ends_the_wait(void)
{
	static atomic_int word;
	pthread_t thread;

	EQ(id_make(), OK);
	seats_set(2, 3);
	seats[0].args.abort = &word;
	EQ(pthread_create(&thread, NULL, raise_later, &word), 0);
	TRUE(seats_run(2) < 500);
	EQ(pthread_join(thread, NULL), 0);
	EQ(seats[0].e, ERR_REMOTE);
	TRUE(strstr(seats[0].sentence, "aborted"));
	EQ(seats[1].e, ERR_REMOTE);
	/* in more words where rank 0 had not reached the root by then */
	TRUE(strstr(seats[1].sentence, "rank 0: "));
	TRUE(strstr(seats[1].sentence, "the communicator was aborted"));
}

static int stranger_connect(void)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int used = sprintf(to.sun_path + 1, "weft-");

	for (int i = 0; i < 16; i++)
		used += sprintf(to.sun_path + 1 + used, "%02x", id.bytes[ID_NAME + i]);
	EQ(connect(fd, (struct sockaddr *)&to,
		   (socklen_t)(sizeof(sa_family_t) + 1 + (size_t)used)),
		0);
	return fd;
}

/* Silent ones, noisy ones, one that knows the magic, one that leaves; more than the door
 * holds. */
static void strangers_are_no_hindrance(void)
{
	enum { CROWD = 400 };
	int fds[CROWD];
	char noise[700];

	memset(noise, 'x', sizeof(noise));
	EQ(boot_id_create(&id), OK);
	for (int i = 0; i < CROWD; i++) {
		fds[i] = stranger_connect();
		if (i % 4 == 1)
			send(fds[i], noise, sizeof(noise), MSG_NOSIGNAL);
		if (i % 4 == 2)
			send(fds[i], "WEFTBT01xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 40,
				MSG_NOSIGNAL);
		if (i == 3)
			close(fds[i]);
	}
	send(fds[2], noise, sizeof(noise), MSG_NOSIGNAL); /* a wrong proof */
	seats_set(8, 8);
	printf("8 ranks met among %d strangers in %.2f ms\n", CROWD, seats_run(8));
	all_met(8);
	for (int i = 0; i < CROWD; i++)
		if (i != 3)
			close(fds[i]);
}

static void *nothing(void *argument)
{
	return argument;
}

/* Spare ids leave neither a thread nor a descriptor; that of the id used is joined when
 * the next one is made. */
static void spare_ids_go_home(void)
{
	struct seat *seat = &seats[0];
	int descriptors, threads;
	pthread_t first;

	/* a sanitizer starts a thread of its own with the program's first */
	EQ(pthread_create(&first, NULL, nothing, NULL), 0);
	EQ(pthread_join(first, NULL), 0);
	usleep(20000);
	descriptors = entries("/proc/self/fd");
	threads = entries("/proc/self/task");
	for (int i = 0; i < 3; i++)
		EQ(boot_id_create(&spare[i]), OK);
	id = spare[0];
	seats_set(2, 2);
	seats[0].args.ids = seats[1].args.ids = spare;
	seats[0].args.id_count = seats[1].args.id_count = 3;
	seats_run(2);
	all_met(2);
	for (int i = 1; i < 3; i++) {
		id = spare[i];
		seats_set(1, 1);
		meet(seat);
		EQ(seat->e, ERR_REMOTE);
		TRUE(strstr(seat->sentence, "nobody listens"));
	}
	boot_id_drop(&spare[0]);
	EQ(entries("/proc/self/fd"), descriptors);
	while (entries("/proc/self/task") >
		threads) /* a joined thread is seen a little */
		usleep(1000);
}

static void address_meets(int family, const char *format)
{
	static struct boot_id each[4];
	int port = port_find(family);
	char text[64];

	if (!port)
		return; /* no IPv6 here */
	snprintf(text, sizeof(text), format, port);
	set("NCCL_COMM_ID", PARAM_COMM_ID, text);
	for (int round = 0; round < 2; round++) { /* the port is free again at once */
		seats_set(4, 4);
		for (int i = 0; i < 4; i++) { /* every rank may make the id for itself */
			EQ(boot_id_create(&each[i]), OK);
			EQ(memcmp(&each[i], &each[0], sizeof(id)), 0);
			seats[i].args.ids = &each[i];
		}
		printf("4 ranks met at %s in %.2f ms\n", text, seats_run(4));
		all_met(4);
	}
	set("NCCL_COMM_ID", PARAM_COMM_ID, NULL);
}

/* What is wrong with an address, and what to do, on the rank that it is told to. */
static void address_refuses(const char *text, uint32_t rank, const char *part)
{
	set("NCCL_COMM_ID", PARAM_COMM_ID, text);
	EQ(boot_id_create(&id), OK);
	seats_set(2, 2);
	meet(&seats[rank]);
	TRUE(seats[rank].e != OK);
	if (!strstr(seats[rank].sentence, part))
		EQ_STR(seats[rank].sentence, part);
	set("NCCL_COMM_ID", PARAM_COMM_ID, NULL);
}

static void address_mistakes_are_told(void)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int port = port_find(AF_INET),
	    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char text[64];

	set("WEFT_BOOT_TIMEOUT_SEC", PARAM_BOOT_TIMEOUT, "1");
	snprintf(text, sizeof(text), "127.0.0.1:%d", port);
	address_refuses(text, 1, "does rank 0 run, and on the host that NCCL_COMM_ID");
	at.sin_port = htons((uint16_t)port);
	EQ(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	EQ(listen(fd, 1), 0);
	address_refuses(text, 0, "give NCCL_COMM_ID another port, on all ranks");
	address_refuses("192.0.2.77:4000", 0, "an address of the host of rank 0");
	close(fd);
	set("WEFT_BOOT_TIMEOUT_SEC", PARAM_BOOT_TIMEOUT, NULL);
}

/* ---- who listens in ---- */

/* Does a spy see what the ranks say to each other? */
static void spied(bool is_seen)
{
	static const uint32_t said[2] = {1000, 0}; /* the beginning of rank 0's record */
	static struct boot_id detour;
	static struct spy spy;
	char text[64];
	uint16_t port;

	snprintf(text, sizeof(text), "127.0.0.1:%d", port_find(AF_INET));
	set("NCCL_COMM_ID", PARAM_COMM_ID, text);
	EQ(boot_id_create(&id), OK);
	detour = id;
	memcpy(&port, &id.bytes[ID_PORT], sizeof(port));
	port = spy_start(&spy, port);
	memcpy(&detour.bytes[ID_PORT], &port, sizeof(port));
	seats_set(2, 2);
	seats[1].args.ids = &detour;
	seats_run(2);
	all_met(2);
	EQ(pthread_join(spy.thread, NULL), 0);
	close(spy.listener);
	TRUE(spy.count > 100);
	EQ(memmem(spy.bytes, spy.count, said, sizeof(said)) != NULL, is_seen);
	EQ(memmem(spy.bytes, spy.count, "WEFTBT", 6) != NULL, is_seen);
	set("NCCL_COMM_ID", PARAM_COMM_ID, NULL);
}

/* The ranks of a host come to one of them, who speaks for all: it makes no difference. */
static void porch_makes_no_difference(void)
{
	by_porch = true;
	set("WEFT_PORCH_RANKS", PARAM_PORCH_RANKS, "0");
	set("WEFT_SECRET", PARAM_SECRET, "hush");
	for (uint32_t count = 1; count <= 64; count *= 8)
		ranks_meet(count);
	rounds_are_made();
	records_are_gathered();
	one_cannot_come();
	claims_must_fit();
	abort_ends_the_wait();
	missing_ranks_are_named();
	set("WEFT_SECRET", PARAM_SECRET, NULL);
	set("WEFT_PORCH_RANKS", PARAM_PORCH_RANKS, NULL);
	set("NCCL_COMM_ID", PARAM_COMM_ID, NULL);
	by_porch = false;
}

/* One rank in a process of its own, which says how it went in its sentence. */
static pid_t rank_fork(uint32_t rank, const char *sentence)
{
	pid_t pid = fork();

	TRUE(pid >= 0);
	if (pid)
		return pid;
	seats_set(4, 4);
	meet(&seats[rank]);
	if (!strstr(seats[rank].sentence, sentence))
		EQ_STR(seats[rank].sentence, sentence);
	if (!rank)
		usleep(700000); /* it has the root, where the others still ask */
	_exit(0);
}

/* Who spoke for the others is killed: they hear of it from the root itself. */
static void porch_dies(void)
{
	static const uint32_t order[3] = {1, 0, 2};
	pid_t pids[3];
	int status;

	by_porch = true;
	set("WEFT_PORCH_RANKS", PARAM_PORCH_RANKS, "0");
	set("WEFT_SECRET", PARAM_SECRET, "hush");
	EQ(id_make(), OK);
	for (int i = 0; i < 3; i++) { /* the first makes the porch; rank 3 never comes */
		pids[i] = rank_fork(order[i], "rank 1 left before all 4 ranks had come");
		usleep(100000);
	}
	EQ(kill(pids[0], SIGKILL), 0);
	for (int i = 0; i < 3; i++) {
		EQ(waitpid(pids[i], &status, 0), pids[i]);
		if (i)
			EQ(status, 0);
	}
	set("WEFT_SECRET", PARAM_SECRET, NULL);
	set("WEFT_PORCH_RANKS", PARAM_PORCH_RANKS, NULL);
	set("NCCL_COMM_ID", PARAM_COMM_ID, NULL);
	by_porch = false;
}

/* One that was lost comes again: it is one, and the root waits for the others. */
static void lost_and_found(void)
{
	pid_t pid;

	EQ(id_make(), OK);
	pid = fork();
	TRUE(pid >= 0);
	seats_set(3, 3);
	if (!pid) {
		meet(&seats[1]);
		_exit(1); /* there is nobody to meet */
	}
	usleep(100000);
	EQ(kill(pid, SIGKILL), 0);
	EQ(waitpid(pid, NULL, 0), pid);
	seats[2].late_us = 100000;
	seats_run(3);
	all_failed(3, ERR_REMOTE, "rank 1 left before all 3 ranks had come");
}

/* In a process of its own: an address without a key is warned of once, one with it never.
 */
static void secret_is_missed(const char *secret, int times)
{
	pid_t pid = fork();
	int status;

	TRUE(pid >= 0);
	if (!pid) {
		setenv("NCCL_DEBUG", "WARN", 1);
		setenv("NCCL_DEBUG_FILE", log_path, 1);
		log_reset();
		set("NCCL_COMM_ID", PARAM_COMM_ID, "127.0.0.1:5000");
		set("WEFT_SECRET", PARAM_SECRET, secret);
		EQ(boot_id_create(&id), OK);
		EQ(boot_id_create(&id), OK);
		EQ(log_count(log_path, "WEFT_SECRET is not set"), times);
		_exit(0);
	}
	EQ(waitpid(pid, &status, 0), pid);
	EQ(status, 0);
	unlink(log_path);
}

static void secret_text_counts(void)
{
	struct boot_id plain, keyed;

	set("NCCL_COMM_ID", PARAM_COMM_ID, "127.0.0.1:5000");
	EQ(boot_id_create(&plain), OK);
	set("WEFT_SECRET", PARAM_SECRET, "hush");
	EQ(boot_id_create(&keyed), OK);
	TRUE(memcmp(&plain.bytes[ID_SECRET], &keyed.bytes[ID_SECRET], 32));
	set("WEFT_SECRET", PARAM_SECRET, NULL);
	set("NCCL_COMM_ID", PARAM_COMM_ID, NULL);
}

/* Children of communicators meet each at a place of its own, not all where the first one
 * did. */
static void children_meet_elsewhere(void)
{
	struct boot_id given[2], own[2];

	set("NCCL_COMM_ID", PARAM_COMM_ID, "127.0.0.1:5000");
	for (int i = 0; i < 2; i++) {
		EQ(boot_id_create(&given[i]), OK);
		EQ(boot_id_create_here(&own[i]), OK);
	}
	TRUE(boot_id_hash(&given[0]) == boot_id_hash(&given[1]));
	TRUE(boot_id_hash(&own[0]) != boot_id_hash(&own[1]));
	TRUE(boot_id_hash(&own[0]) != boot_id_hash(&given[0]));
	for (int i = 0; i < 2; i++)
		boot_id_drop(&own[i]);
	set("NCCL_COMM_ID", PARAM_COMM_ID, NULL);
}

int main(void)
{
	int fd = mkstemp(log_path), input = open("/dev/null", O_RDONLY);

	TRUE(fd >= 0);
	close(fd);
	if (input != STDIN_FILENO)
		EQ(dup2(input, STDIN_FILENO), STDIN_FILENO);
	setenv("NCCL_CONF_FILE", "/nonexistent", 1);
	secret_is_missed(NULL, 1);
	secret_is_missed("hush", 0);
	porch_dies(); /* forks: before there are threads */
	lost_and_found();
	spare_ids_go_home(); /* counts threads: before the others leave some */
	for (uint32_t count = 1; count <= 64; count *= 8)
		ranks_meet(count);
	ranks_meet(2);
	rounds_are_made();
	records_are_gathered();
	one_cannot_come();
	hope_is_lost();
	old_ids_are_refused();
	wrong_secret();
	claims_must_fit();
	TRUE(fcntl(STDIN_FILENO, F_GETFD) >= 0); /* nothing of ours was closed */
	abort_ends_the_wait();
	strangers_are_no_hindrance();
	address_meets(AF_INET, "127.0.0.1:%d");
	address_meets(AF_INET6, "[::1]:%d");
	address_mistakes_are_told();
	secret_text_counts();
	children_meet_elsewhere();
	missing_ranks_are_named();
	spied(true);
	porch_makes_no_difference();
	/* the same with a key: all of it goes on as before, and nobody can listen */
	EQ(psk_set("a key that is as long as it has to be"), OK);
	for (uint32_t count = 1; count <= 64; count *= 8)
		ranks_meet(count);
	rounds_are_made();
	records_are_gathered();
	one_cannot_come();
	hope_is_lost();
	wrong_secret();
	claims_must_fit();
	abort_ends_the_wait();
	strangers_are_no_hindrance();
	address_meets(AF_INET, "127.0.0.1:%d");
	missing_ranks_are_named();
	spied(false);
	porch_makes_no_difference();
	boot_id_create(&id); /* never used: must not keep us here */
	return 0;
}
