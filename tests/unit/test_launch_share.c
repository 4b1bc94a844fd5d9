/* What rank 0 has comes to the others by a file and over TCP, past old files, strangers
 * and ports that others have; and whoever does not come is named. */
#include "launch/idfile.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "free_port.h"
#include "launch/giver.h"
#include "launch/hex.h"
#include "launch/master.h"
#include "test.h"

enum { BYTES = 128, RANKS = 9, TIMEOUT_S = 30 };

static void fill(unsigned char bytes[BYTES], int seed)
{
	for (int i = 0; i < BYTES; i++)
		bytes[i] = (unsigned char)(i * 7 + seed);
}

static void test_hex(void)
{
	unsigned char bytes[3] = {0x01, 0xab, 0xff}, again[3];
	char text[7];

	hex_print(bytes, 3, text);
	EQ_STR(text, "01abff");
	TRUE(hex_read(text, again, 3));
	EQ(memcmp(bytes, again, 3), 0);
	TRUE(!hex_read("01abf", again, 3));
	TRUE(!hex_read("01abff0", again, 3));
	TRUE(!hex_read("01ABFF", again, 3));
	TRUE(!hex_read("01abfg", again, 3));
	TRUE(!hex_read("", again, 3));
}

/* ---- files ---- */

static void file_put(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	TRUE(file);
	fputs(text, file);
	fclose(file);
}

static void test_file(void)
{
	char folder[] = "/tmp/weft-share-XXXXXX", path[64], other[64];
	struct idfile file = {
		.path = path, .job = "a", .rank = 1, .timeout_s = TIMEOUT_S};
	unsigned char mine[BYTES], theirs[BYTES];
	struct timespec old[2] = {{.tv_sec = time(NULL) - 2 * TIMEOUT_S},
		{.tv_sec = time(NULL) - 2 * TIMEOUT_S}};
	struct stat info;

	TRUE(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/id", folder);
	snprintf(other, sizeof(other), "%s/other", folder);
	fill(mine, 1);
	EQ(idfile_write(&file, mine, BYTES), OK);
	EQ(idfile_read(&file, theirs, BYTES), OK);
	EQ(memcmp(mine, theirs, BYTES), 0);
	EQ(stat(path, &info), 0);
	EQ(info.st_mode & 0777, 0600);
	/* written over */
	fill(mine, 2);
	EQ(idfile_write(&file, mine, BYTES), OK);
	EQ(idfile_read(&file, theirs, BYTES), OK);
	EQ(memcmp(mine, theirs, BYTES), 0);
	/* not: of another job, another number, too old, a link, a folder, half of it */
	file.timeout_s = 1;
	file.job = "b";
	EQ(idfile_read(&file, theirs, BYTES), ERR_TIMEOUT);
	TRUE(strstr(err_last(), "rank 1 has waited 1 s for the file"));
	file.job = "a";
	file.number = 1;
	EQ(idfile_read(&file, theirs, BYTES), ERR_TIMEOUT);
	file.number = 0;
	EQ(utimensat(AT_FDCWD, path, old, 0), 0);
	EQ(idfile_read(&file, theirs, BYTES), ERR_TIMEOUT);
	EQ(idfile_write(&file, mine, BYTES), OK);
	EQ(truncate(path, 100), 0);
	EQ(idfile_read(&file, theirs, BYTES), ERR_TIMEOUT);
	EQ(idfile_write(&file, mine, BYTES), OK);
	EQ(rename(path, other), 0);
	EQ(symlink(other, path), 0);
	EQ(idfile_read(&file, theirs, BYTES), ERR_TIMEOUT);
	EQ(unlink(path), 0);
	file_put(path, "hello\n");
	EQ(idfile_read(&file, theirs, BYTES), ERR_TIMEOUT);
	idfile_remove(&file);
	EQ(access(path, F_OK), -1);
	file.path = "/nonexistent/id";
	EQ(idfile_write(&file, mine, BYTES), ERR_SYSTEM);
	unlink(other);
	EQ(rmdir(folder), 0);
}

/* ---- TCP ---- */

struct taker {
	pthread_t thread;
	struct launch launch;
	unsigned char bytes[BYTES];
	enum err e;
	uint64_t deadline_ns;
};

static void *taker_main(void *arg)
{
	struct taker *taker = arg;
	struct master_args args = {
		.launch = &taker->launch, .number = 3, .deadline_ns = taker->deadline_ns};

	taker->e = master_take(&args, taker->bytes, BYTES);
	return NULL;
}

static struct launch launch_of(int rank, int port)
{
	struct launch launch = {.kind = LAUNCH_ENV,
		.rank = rank,
		.rank_count = RANKS,
		.port = port,
		.master = "127.0.0.1",
		.job = "test"};

	return launch;
}

/* Somebody listens at this port and says nothing, or nothing of use. */
static int port_hold(int port)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 8)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* A stranger that sends what it likes to every port that a rank 0 may have. */
struct stranger {
	pthread_t thread;
	struct launch launch;
	atomic_bool *is_over;
};

static void *stranger_main(void *arg)
{
	struct stranger *stranger = arg;
	unsigned seed = 5;
	char bytes[300];

	for (int turn = 0; !atomic_load(stranger->is_over); turn++) {
		struct sockaddr_in to = {.sin_family = AF_INET,
			.sin_port = htons((uint16_t)giver_port(
				&stranger->launch, turn % MASTER_PORTS)),
			.sin_addr = {htonl(INADDR_LOOPBACK)}};
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (char)rand_r(&seed);
		if (!connect(fd, (struct sockaddr *)&to, sizeof(to)) &&
			send(fd, bytes, (size_t)(rand_r(&seed) % 300), MSG_NOSIGNAL) < 0)
			turn++;
		close(fd);
		usleep(500);
	}
	return NULL;
}

static void test_tcp(int port, bool has_stranger)
{
	struct taker takers[RANKS];
	struct launch first = launch_of(0, port);
	uint64_t deadline_ns = clock_ns() + TIMEOUT_S * CLOCK_SEC;
	struct master_args args = {
		.launch = &first, .number = 3, .deadline_ns = deadline_ns};
	atomic_bool is_over = false;
	struct stranger stranger = {.launch = first, .is_over = &is_over};
	unsigned char bytes[BYTES];

	fill(bytes, port);
	if (has_stranger)
		EQ(pthread_create(&stranger.thread, NULL, stranger_main, &stranger), 0);
	for (int i = 1; i < RANKS; i++) {
		takers[i] = (struct taker){
			.launch = launch_of(i, port), .deadline_ns = deadline_ns};
		EQ(pthread_create(&takers[i].thread, NULL, taker_main, &takers[i]), 0);
	}
	EQ(master_give(&args, bytes, BYTES), OK);
	for (int i = 1; i < RANKS; i++) {
		pthread_join(takers[i].thread, NULL);
		EQ(takers[i].e, OK);
		EQ(memcmp(takers[i].bytes, bytes, BYTES), 0);
	}
	atomic_store(&is_over, true);
	if (has_stranger)
		pthread_join(stranger.thread, NULL);
}

/* Ranks of another count, exchange or job get nothing. */
static void test_other(int port)
{
	struct launch first = launch_of(0, port), other = launch_of(1, port);
	struct taker taker = {
		.launch = launch_of(1, port), .deadline_ns = clock_ns() + 2 * CLOCK_SEC};
	struct master_args args = {
		.launch = &first, .number = 3, .deadline_ns = clock_ns() + CLOCK_SEC};
	unsigned char bytes[BYTES];

	fill(bytes, 1);
	snprintf(taker.launch.job, sizeof(taker.launch.job), "another");
	EQ(pthread_create(&taker.thread, NULL, taker_main, &taker), 0);
	EQ(master_give(&args, bytes, BYTES), ERR_TIMEOUT);
	TRUE(strstr(err_last(), "8 of 9 ranks did not come: 1, 2, 3, 4, 5, 6, 7, 8"));
	pthread_join(taker.thread, NULL);
	EQ(taker.e, ERR_TIMEOUT);
	args = (struct master_args){
		.launch = &other, .deadline_ns = clock_ns() + CLOCK_SEC / 10};
	EQ(master_take(&args, bytes, BYTES), ERR_TIMEOUT);
	TRUE(strstr(err_last(), "rank 1 of 9 (the environment) has found no rank 0 at "
				"127.0.0.1, ports"));
}

/* A free one, from which ports can be tried on without wrapping around. */
static int port_of_span(void)
{
	enum { TRIED = 100 };
	int port = port_find(AF_INET);

	while (port < LAUNCH_PORT_FIRST ||
		port >= LAUNCH_PORT_FIRST + LAUNCH_PORT_SPAN - TRIED)
		port = port_find(AF_INET);
	return port;
}

int main(void)
{
	int port = port_of_span(), held;

	signal(SIGPIPE, SIG_IGN);
	test_hex();
	test_file();
	test_tcp(port, false);
	held = port_hold(port); /* the next one is taken then */
	test_tcp(port, false);
	close(held);
	test_tcp(port_of_span(), true);
	test_other(port_of_span());
	/* ports wrap around at the end of their range */
	test_tcp(LAUNCH_PORT_FIRST + LAUNCH_PORT_SPAN - 1, false);
	return 0;
}
