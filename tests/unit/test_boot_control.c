/*
 * The control channel: everybody hears what is meant for it, in order and once; who dies
 * or falls silent is known to all; strangers are no hindrance. Ranks are processes that
 * believe to be on different hosts, joined over loopback.
 */
#include "boot/control.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/param.h"
#include "boot/strand.h"
#include "entries.h"
#include "net/psk.h"
#include "test.h"

enum { RANKS_MAX = 64, LOST_TEXT = 96 };

/* What all processes of a test see. */
struct seat {
	pid_t pid;
	struct addr addr;
	atomic_uint flooded, direct; /* messages that came */
	atomic_uint lost[RANKS_MAX];
	_Atomic uint64_t lost_ns[RANKS_MAX];
	char why[RANKS_MAX][LOST_TEXT];
	uint32_t flood_next[RANKS_MAX], direct_next[RANKS_MAX]; /* expected of each */
};

static struct table {
	atomic_uint ready, settled, go, done;
	atomic_uint failed; /* a check of some process did */
	struct seat seats[RANKS_MAX];
} * table;

static uint32_t rank_count, per_host = 1, per_process = 1, messages = 20;
enum { NOBODY = RANKS_MAX };
static uint32_t stander = NOBODY; /* stands still before it opens its control .. */
static uint32_t dawdler = NOBODY; /* .. or only takes its time */
static size_t theft_bytes;	  /* that rank 1 is robbed of; 0: none */
static unsigned char key[AUTH_KEY_BYTES] = "the key of this communicator";

struct rank {
	uint32_t rank;
	struct control *control;
	pthread_t thread;
};

struct message {
	uint32_t number, filler[31];
};

static bool is_connection(int fd)
{
	struct sockaddr_storage peer;
	socklen_t size = sizeof(peer);

	return !getpeername(fd, (struct sockaddr *)&peer, &size);
}

/* Take what has come over the connections of this process, as if it had got lost on
 * the way, and then break them. */
static void theft_commit(size_t left)
{
	enum { FDS = 256 };
	static char loot[1 << 14];

	while (left)
		for (int fd = 0; fd < FDS && left; fd++) {
			ssize_t n = is_connection(fd)
					    ? recv(fd, loot, sizeof(loot), MSG_DONTWAIT)
					    : -1;

			if (n > 0)
				left -= (size_t)n < left ? (size_t)n : left;
		}
	for (int fd = 0; fd < FDS; fd++)
		if (is_connection(fd))
			shutdown(fd, SHUT_RDWR);
}

static void on_message(
	void *arg, uint32_t from, uint32_t kind, const void *bytes, size_t size)
{
	struct rank *rank = arg;
	struct seat *seat = &table->seats[rank->rank];
	const struct message *message = bytes;
	uint32_t *next = kind ? &seat->direct_next[from] : &seat->flood_next[from];

	EQ(size, sizeof(*message));
	TRUE(from != rank->rank && from < rank_count);
	EQ(message->number, *next);
	*next += 1;
	/* what was sent to all before comes before */
	if (kind)
		TRUE(seat->flood_next[from] > message->number);
	for (uint32_t i = 0; i < 31; i++)
		EQ(message->filler[i], from * 1000 + i);
	atomic_fetch_add(kind ? &seat->direct : &seat->flooded, 1);
	if (theft_bytes && rank->rank == 1 && !kind && !message->number) {
		atomic_store(&table->go, 1);
		theft_commit(theft_bytes); /* meanwhile nobody reads here */
	}
}

static void on_lost(void *arg, uint32_t lost, const char *why)
{
	struct rank *rank = arg;
	struct seat *seat = &table->seats[rank->rank];

	TRUE(lost < rank_count);
	snprintf(seat->why[lost], LOST_TEXT, "%s", why);
	atomic_store(&seat->lost_ns[lost], clock_ns());
	atomic_fetch_add(&seat->lost[lost], 1);
}

/* Nobody waits for what a process that failed was to do. */
static void until(const atomic_uint *word, uint32_t value)
{
	while (atomic_load(word) < value) {
		if (atomic_load(&table->failed))
			_exit(1);
		usleep(500);
	}
}

static void on_end(int status, void *arg)
{
	(void)arg;
	if (status)
		atomic_store(&table->failed, 1);
}

static void linger(uint32_t rank)
{
	if (rank % 3 == 1)
		usleep(30000); /* others call before there is a session */
	if (rank == stander)
		raise(SIGSTOP);
	if (rank == dawdler)
		usleep(5000000);
}

/* Whoever was to be called by it, or to call it, says so, and then all know. */
static void stander_is_named(const struct rank *rank, enum err settled)
{
	char name[64];

	snprintf(name, sizeof(name),
		"rank %u was lost while the communicator was made: ", stander);
	if (settled)
		TRUE(settled == ERR_REMOTE && strstr(err_last(), name));
	until(&table->seats[rank->rank].lost[stander], 1);
	EQ(control_check(rank->control), ERR_REMOTE);
	TRUE(strstr(err_last(), name));
}

static void rank_open(struct rank *rank)
{
	struct control_peer peers[RANKS_MAX] = {0};
	struct control_args args = {.rank = rank->rank,
		.rank_count = rank_count,
		.peers = peers,
		.arg = rank,
		.on_message = on_message,
		.on_lost = on_lost};
	enum err e;

	EQ(control_listen(&table->seats[rank->rank].addr), OK);
	atomic_fetch_add(&table->ready, 1);
	until(&table->ready, rank_count);
	for (uint32_t i = 0; i < rank_count; i++)
		peers[i] = (struct control_peer){
			.host = i / per_process / per_host, .addr = table->seats[i].addr};
	memcpy(args.key, key, sizeof(key));
	linger(rank->rank);
	EQ(control_open(&args, &rank->control), OK);
	e = control_settle(rank->control, clock_ns() + 60 * CLOCK_SEC, NULL);
	if (stander != NOBODY) {
		stander_is_named(rank, e);
		return;
	}
	EQ(e, OK);
	EQ(control_check(rank->control), OK);
	atomic_fetch_add(&table->settled, 1);
	until(&table->settled, rank_count);
}

static void rank_close(struct rank *rank)
{
	control_close(rank->control);
	control_unlisten();
}

static void *rank_thread(void *arg)
{
	rank_open(arg);
	return NULL;
}

typedef void rank_work(struct rank *ranks);

/* A process with `per_process` ranks; the first one's thread works. */
static void process_run(uint32_t first, rank_work *work)
{
	struct rank ranks[RANKS_MAX] = {0};

	for (uint32_t i = 0; i < per_process; i++) {
		ranks[i].rank = first + i;
		EQ(pthread_create(&ranks[i].thread, NULL, rank_thread, &ranks[i]), 0);
	}
	for (uint32_t i = 0; i < per_process; i++)
		EQ(pthread_join(ranks[i].thread, NULL), 0);
	work(ranks);
	for (uint32_t i = 0; i < per_process; i++)
		rank_close(&ranks[i]);
	_exit(0);
}

static void job_start(uint32_t count, rank_work *work)
{
	rank_count = count;
	memset(table, 0, sizeof(*table));
	auth_random(key, sizeof(key));
	fflush(NULL);
	for (uint32_t first = 0; first < count; first += per_process) {
		pid_t pid = fork();

		TRUE(pid >= 0);
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL); /* one may stand still */
			process_run(first, work);
		}
		for (uint32_t i = 0; i < per_process; i++)
			table->seats[first + i].pid = pid;
	}
}

static void ends_well(uint32_t rank)
{
	int status;

	EQ(waitpid(table->seats[rank].pid, &status, 0), table->seats[rank].pid);
	EQ(status, 0);
}

/* All but the ranks from `first` to `last` end well. */
static void job_end(uint32_t first, uint32_t last)
{
	int status;

	for (uint32_t i = 0; i < rank_count; i += per_process) {
		EQ(waitpid(table->seats[i].pid, &status, 0), table->seats[i].pid);
		if (i < first || i > last)
			EQ(status, 0);
	}
}

static void message_send(
	const struct rank *rank, uint32_t to, uint32_t kind, uint32_t number)
{
	struct message message = {.number = number};

	for (uint32_t i = 0; i < 31; i++)
		message.filler[i] = rank->rank * 1000 + i;
	EQ(control_send(rank->control, to, kind, &message, sizeof(message)), OK);
}

static void send_all(struct rank *rank)
{
	for (uint32_t n = 0; n < messages; n++) {
		if (theft_bytes && n == 1)
			until(&table->go, 1); /* the thief waits */
		message_send(rank, CONTROL_ALL, 0, n);
		for (uint32_t to = 0; to < rank_count; to++)
			if (to != rank->rank)
				message_send(rank, to, 1, n);
	}
}

static void talk(struct rank *ranks)
{
	for (uint32_t i = 0; i < per_process; i++)
		send_all(&ranks[i]);
	for (uint32_t i = 0; i < per_process; i++) {
		struct seat *seat = &table->seats[ranks[i].rank];

		until(&seat->flooded, messages * (rank_count - 1));
		until(&seat->direct, messages * (rank_count - 1));
	}
	atomic_fetch_add(&table->done, per_process);
	until(&table->done, rank_count); /* else who leaves takes some along */
}

static void messages_arrive(uint32_t count, uint32_t each)
{
	per_process = each;
	job_start(count, talk);
	job_end(count, count);
	for (uint32_t i = 0; i < count; i++) {
		EQ(table->seats[i].flooded, messages * (count - 1));
		EQ(table->seats[i].direct, messages * (count - 1));
		for (uint32_t j = 0; j < count; j++)
			EQ(table->seats[i].lost[j], 0);
	}
	per_process = 1;
}

/* What a strand had carried when it broke comes by the next one, and be it more than is
 * kept for no reason. */
static void nothing_breaks_with_a_strand(void)
{
	uint32_t before = messages;

	messages = 3000;
	theft_bytes = (size_t)messages * sizeof(struct message);
	messages_arrive(2, 1);
	theft_bytes = 0;
	messages = before;
}

/* Until told. */
static void stay(struct rank *ranks)
{
	(void)ranks;
	until(&table->go, 1);
}

static void strike(uint32_t first, uint32_t last, int signal)
{
	for (uint32_t i = first; i <= last; i++)
		EQ(kill(table->seats[i].pid, signal), 0);
}

/* All others hear of each of them, once; returns when the last one did. */
static uint64_t losses_known(uint32_t first, uint32_t last, const char *why)
{
	uint64_t latest = 0;

	for (uint32_t i = 0; i < rank_count; i++) {
		if (i >= first && i <= last)
			continue;
		for (uint32_t j = first; j <= last; j++) {
			uint64_t at;

			until(&table->seats[i].lost[j], 1);
			at = table->seats[i].lost_ns[j];
			latest = at > latest ? at : latest;
			if (!strstr(table->seats[i].why[j], why))
				EQ_STR(table->seats[i].why[j], why);
		}
	}
	return latest;
}

static void nobody_else_lost(uint32_t first, uint32_t last)
{
	for (uint32_t i = 0; i < rank_count; i++)
		for (uint32_t j = 0; j < rank_count && (i < first || i > last); j++)
			EQ(table->seats[i].lost[j], j >= first && j <= last);
}

static void death_is_known(uint32_t count, uint32_t first, uint32_t last)
{
	uint64_t begin;

	job_start(count, stay);
	until(&table->settled, count);
	begin = clock_ns();
	strike(first, last, SIGKILL);
	printf("%u of %u processes killed, known to all in %.1f ms\n", last - first + 1,
		count,
		(double)(losses_known(first, last, "its process has ended") - begin) /
			1e6);
	atomic_store(&table->go, 1);
	job_end(first, last);
	nobody_else_lost(first, last);
}

static void set(const char *name, enum param param, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
	param_forget(param);
}

/* A process that stands still is given up; one that does so for a moment is not. */
static void silence_is_known(void)
{
	uint64_t begin;

	set("WEFT_SILENCE_SEC", PARAM_SILENCE, "2");
	job_start(5, stay);
	until(&table->settled, 5);
	for (int i = 0; i < 4; i++) { /* bursts of half a second, several at a time */
		strike(1, 2 + (uint32_t)i % 2, SIGSTOP);
		usleep(500000);
		strike(1, 2 + (uint32_t)i % 2, SIGCONT);
		usleep(50000);
	}
	begin = clock_ns();
	strike(3, 3, SIGSTOP);
	printf("silence known to all after %.2f s\n",
		(double)(losses_known(3, 3, "nothing was heard of it for 2 s") - begin) /
			1e9);
	nobody_else_lost(3, 3);
	strike(3, 3, SIGCONT);
	until(&table->seats[3].lost[3], 1); /* it learns that it was given up */
	atomic_store(&table->go, 1);
	job_end(3, 3);
	set("WEFT_SILENCE_SEC", PARAM_SILENCE, NULL);
}

static bool is_next_to_first(uint32_t rank)
{
	for (uint32_t step = 1; step < rank_count; step *= 2)
		if (rank == step || rank == rank_count - step)
			return true;
	return false;
}

/* Who hears of nobody any more gives all others up, also those that it has no strand to;
 * who hears of anybody gives up those that are silent and no others. */
static void cut_off_is_known(bool is_whole)
{
	set("WEFT_SILENCE_SEC", PARAM_SILENCE, "1");
	job_start(13, stay);
	until(&table->settled, 13);
	for (uint32_t i = 1; i < 13; i++)
		if (is_whole || is_next_to_first(i))
			strike(i, i, SIGSTOP);
	for (uint32_t i = 1; i < 13; i++) {
		if (is_whole || is_next_to_first(i))
			until(&table->seats[0].lost[i], 1);
		if (is_whole && !is_next_to_first(i))
			TRUE(strstr(table->seats[0].why[i], "is cut off"));
	}
	usleep(is_whole ? 0 : 1500000); /* what was taken for a loss is told by now */
	for (uint32_t i = 1; i < 13; i++)
		EQ(table->seats[0].lost[i], is_whole || is_next_to_first(i));
	strike(1, 12, SIGKILL);
	atomic_store(&table->go, 1);
	job_end(1, 12);
	set("WEFT_SILENCE_SEC", PARAM_SILENCE, NULL);
}

/* One that stands still as the communicator is made is named by all, also if it was the
 * one to call; one that is slow is waited for. */
static void silence_at_the_start_is_known(uint32_t who)
{
	set("WEFT_SILENCE_SEC", PARAM_SILENCE, "2");
	stander = who;
	job_start(5, stay);
	losses_known(who, who, "nothing was heard of it");
	strike(who, who, SIGKILL);
	atomic_store(&table->go, 1);
	job_end(who, who);
	nobody_else_lost(who, who);
	stander = NOBODY;
	set("WEFT_SILENCE_SEC", PARAM_SILENCE, NULL);
}

static void slowness_at_the_start_is_no_silence(uint32_t who)
{
	set("WEFT_SILENCE_SEC", PARAM_SILENCE, "1");
	dawdler = who;
	job_start(3, stay);
	until(&table->settled, 3);
	atomic_store(&table->go, 1);
	job_end(3, 3);
	nobody_else_lost(3, 3);
	dawdler = NOBODY;
	set("WEFT_SILENCE_SEC", PARAM_SILENCE, NULL);
}

/* Somebody sees by other means that rank 2 is lost. */
static void tell(struct rank *ranks)
{
	if (ranks[0].rank == 4)
		control_tell_lost(ranks[0].control, 2, "it fell");
	until(&table->go, 1);
}

static void told_losses_are_known(void)
{
	job_start(6, tell);
	losses_known(2, 2, "it fell");
	until(&table->seats[2].lost[2], 1);
	atomic_store(&table->go, 1);
	job_end(6, 6);
}

/* Who leaves first is not lost, though its process ends. */
static void leave_early(struct rank *ranks)
{
	if (ranks[0].rank % 2)
		until(&table->go, 1);
}

static void leaving_is_no_loss(void)
{
	job_start(7, leave_early);
	for (uint32_t i = 0; i < 7; i += 2)
		ends_well(i);
	usleep(100000);
	atomic_store(&table->go, 1);
	for (uint32_t i = 1; i < 7; i += 2)
		ends_well(i);
	for (uint32_t i = 0; i < 7; i++)
		for (uint32_t j = 0; j < 7; j++)
			EQ(table->seats[i].lost[j], 0);
}

/* Nor is who leaves while others talk to it, and does not read what they say. */
static void leave_amid_talk(struct rank *ranks)
{
	if (ranks[0].rank) {
		until(&table->seats[1].flooded, 1);
		return;
	}
	for (uint32_t n = 0; n < 2000; n++)
		message_send(&ranks[0], CONTROL_ALL, 0, n);
	usleep(30000); /* what was taken for a loss is told by now */
}

static void leaving_amid_talk_is_no_loss(void)
{
	for (int i = 0; i < 20; i++) {
		job_start(2, leave_amid_talk);
		job_end(2, 2);
		EQ(table->seats[0].lost[1], 0);
	}
}

/* Most leave; two that were not joined stay, and one of them dies. */
static void leave_but_two(struct rank *ranks)
{
	if (ranks[0].rank % 6 == 0)
		until(&table->go, 1);
}

/* Who is not next to one that leaves may miss the word of it, and takes it for lost after
 * the silence; this machine may be slow. */
static void who_stays_is_joined(void)
{
	int status;

	set("WEFT_SILENCE_SEC", PARAM_SILENCE, "60");
	job_start(12, leave_but_two);
	for (uint32_t i = 0; i < 12; i++)
		if (i % 6)
			ends_well(i);
	usleep(1000000); /* they find each other */
	strike(6, 6, SIGKILL);
	until(&table->seats[0].lost[6], 1);
	atomic_store(&table->go, 1);
	EQ(waitpid(table->seats[6].pid, &status, 0), table->seats[6].pid);
	ends_well(0);
	for (uint32_t i = 0; i < 12; i++)
		EQ(table->seats[0].lost[i], i == 6);
	set("WEFT_SILENCE_SEC", PARAM_SILENCE, NULL);
}

/* Two that were joined for a message between them alone hear, when the others have left,
 * what is for all as well. */
static void join_again(struct rank *ranks)
{
	uint32_t rank = ranks[0].rank;

	if (!rank) {
		message_send(&ranks[0], CONTROL_ALL, 0, 0);
		message_send(&ranks[0], 6, 1, 0);
	}
	until(&table->seats[6].direct, 1);
	if (rank % 6)
		return;
	until(&table->go, 1);
	if (!rank)
		message_send(&ranks[0], CONTROL_ALL, 0, 1);
	until(&table->seats[6].flooded, 2);
}

static void who_has_talked_is_joined(void)
{
	job_start(12, join_again);
	for (uint32_t i = 0; i < 12; i++)
		if (i % 6)
			ends_well(i);
	atomic_store(&table->go, 1);
	ends_well(0);
	ends_well(6);
}

/* ---- strangers ---- */

static int stranger_connect(uint32_t rank)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_port = table->seats[rank].addr.port};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(&at.sin_addr, table->seats[rank].addr.bytes, 4);
	TRUE(fd >= 0);
	if (!connect(fd, (struct sockaddr *)&at, sizeof(at)))
		return fd;
	close(fd);
	return -1;
}

/* Noise, half a hello, a hello with the right session name as a listener would hear it,
 * one for a session there is not, one that says too much. */
static void stranger_speak(int fd, uint32_t n)
{
	struct strand_hello hello = {.magic = "WEFTCT03"};
	unsigned char noise[3000], tag[AUTH_TAG_BYTES];

	if (fd < 0)
		return;
	auth_random(noise, sizeof(noise));
	auth_random(hello.nonce, sizeof(hello.nonce));
	auth_tag(key, "control session", "", 0, tag);
	switch (n % 6) {
	case 0:
		send(fd, noise, sizeof(noise), MSG_NOSIGNAL);
		break;
	case 1:
		send(fd, &hello, 20, MSG_NOSIGNAL);
		break;
	case 2:
		memcpy(hello.session, tag, sizeof(hello.session));
		send(fd, &hello, sizeof(hello), MSG_NOSIGNAL);
		send(fd, noise, sizeof(noise), MSG_NOSIGNAL);
		break;
	case 3:
		send(fd, &hello, sizeof(hello), MSG_NOSIGNAL);
		break;
	case 4:
		send(fd, &hello, sizeof(hello), MSG_NOSIGNAL);
		send(fd, noise, sizeof(noise), MSG_NOSIGNAL);
		break;
	default:
		break;
	}
}

static void strangers_come(uint32_t rank, uint32_t count)
{
	enum { AT_ONCE = 400 };
	static int fds[AT_ONCE];

	memset(fds, -1, sizeof(fds));
	for (uint32_t n = 0; n < count; n++) {
		uint32_t i = n % AT_ONCE;

		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = stranger_connect(rank);
		stranger_speak(fds[i], n);
	}
	for (uint32_t i = 0; i < AT_ONCE; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static void talk_when_told(struct rank *ranks)
{
	until(&table->go, 1);
	talk(ranks);
}

/* While strands are made and while they are used. */
static void strangers_are_no_hindrance(uint32_t crowd)
{
	job_start(4, talk_when_told);
	until(&table->ready, 4);
	strangers_come(0, crowd / 2);
	until(&table->settled, 4);
	atomic_store(&table->go, 1);
	strangers_come(1, crowd / 2);
	job_end(4, 4);
	nobody_else_lost(4, 4);
}

/* ---- what is left ---- */

static double cpu_seconds(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void together(uint32_t *turns)
{
	*turns += 1;
	atomic_fetch_add(&table->done, 1);
	until(&table->done, *turns * rank_count);
}

/* A session is opened and closed many times; nothing stays. An idle one wakes seldom. */
static void nothing_stays(struct rank *ranks)
{
	uint32_t turns = 1; /* talk() makes one */
	int descriptors;
	double begin;

	talk(ranks); /* now both have the strand */
	descriptors = entries("/proc/self/fd");
	together(&turns);
	for (uint32_t i = 0; i < 50; i++) {
		uint32_t rank = ranks[0].rank;

		control_close(ranks[0].control);
		together(&turns);
		key[0]++;
		ranks[0] = (struct rank){.rank = rank};
		atomic_store(&table->ready, 0);
		atomic_store(&table->settled, 0);
		together(&turns);
		rank_open(&ranks[0]);
		control_unlisten();
	}
	for (int i = 0; i < 200 && entries("/proc/self/fd") > descriptors; i++)
		usleep(5000);
	EQ(entries("/proc/self/fd"), descriptors);
	begin = cpu_seconds();
	usleep(1200000);
	TRUE(cpu_seconds() - begin < 0.1);
	together(&turns);
}

static void sessions_leave_nothing(void)
{
	job_start(2, nothing_stays);
	job_end(2, 2);
}

static void everything_works(void)
{
	messages_arrive(2, 1);
	messages_arrive(5, 1);
	messages_arrive(16, 4);
	per_host = 4;
	messages_arrive(24, 2);
	messages = 4;
	messages_arrive(64, 4); /* so many gather what they say (carry.h) */
	messages = 20;
	nothing_breaks_with_a_strand();
	death_is_known(16, 5, 5);
	death_is_known(16, 4, 7); /* a whole host */
	per_host = 1;
	death_is_known(2, 1, 1);
	told_losses_are_known();
	leaving_is_no_loss();
	leaving_amid_talk_is_no_loss();
	who_stays_is_joined();
	who_has_talked_is_joined();
}

int main(void)
{
	setenv("NCCL_CONF_FILE", "/nonexistent", 1);
	setenv("NCCL_OOB_NET_IFNAME", "=lo", 1);
	setvbuf(stdout, NULL, _IOLBF, 0);
	EQ(auth_init(), OK);
	table = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	TRUE(table != MAP_FAILED);
	EQ(on_exit(on_end, NULL), 0);
	everything_works();
	silence_is_known();
	cut_off_is_known(true);
	cut_off_is_known(false);
	silence_at_the_start_is_known(0);
	silence_at_the_start_is_known(3);
	slowness_at_the_start_is_no_silence(0);
	slowness_at_the_start_is_no_silence(2);
	sessions_leave_nothing();
	strangers_are_no_hindrance(10000);
	EQ(psk_set("a key that is as long as it has to be"), OK);
	everything_works();
	strangers_are_no_hindrance(1000);
	return 0;
}
