/*
 * With a low limit on the size of files (ulimit -f) calls fail with a sentence that names
 * it; nobody is killed, and what needs no file works.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nccl.h"
#include "test.h"

static void limit(rlim_t bytes)
{
	struct rlimit now;

	EQ(getrlimit(RLIMIT_FSIZE, &now), 0);
	now.rlim_cur = bytes;
	EQ(setrlimit(RLIMIT_FSIZE, &now), 0);
}

static void names_the_limit(void)
{
	const char *said = ncclGetLastError(NULL);

	if (!strstr(said, "ulimit -f"))
		fprintf(stderr, "\"%s\" lacks \"ulimit -f\"\n", said);
	TRUE(strstr(said, "ulimit -f"));
}

static void refused(void)
{
	ncclComm_t comms[2];
	void *memory = NULL;

	EQ(ncclCommInitAll(comms, 2, NULL), ncclSystemError);
	names_the_limit();
	EQ(ncclMemAlloc(&memory, 1 << 20), ncclSystemError);
	names_the_limit();
	TRUE(memory == NULL);
}

static void none_at_all(void)
{
	limit(0);
	refused();
}

/* Room for a little: a log file fills up, and the calls go on. */
static void a_little(void)
{
	ncclComm_t comm;
	char path[] = "/tmp/weft-test-XXXXXX";
	int fd = mkstemp(path), n;
	void *memory;

	TRUE(fd >= 0);
	setenv("NCCL_DEBUG", "INFO", 1);
	setenv("NCCL_DEBUG_FILE", path, 1);
	limit(100 << 10);
	EQ(ncclMemAlloc(&memory, 4096), ncclSuccess);
	EQ(ncclMemFree(memory), ncclSuccess);
	for (int i = 0; i < 500; i++)
		refused();
	limit(RLIM_INFINITY);
	EQ(ncclCommInitAll(&comm, 1, NULL), ncclSuccess);
	limit(0);
	EQ(ncclCommCount(comm, &n), ncclSuccess);
	EQ(ncclCommDestroy(comm), ncclSuccess);
	unlink(path);
}

static void in_a_child(void (*body)(void))
{
	pid_t pid = fork();
	int status;

	TRUE(pid >= 0);
	if (!pid) {
		signal(SIGXFSZ, SIG_DFL);
		body();
		_exit(0);
	}
	EQ(waitpid(pid, &status, 0), pid);
	EQ(status, 0);
}

int main(void)
{
	in_a_child(none_at_all);
	in_a_child(a_little);
	return 0;
}
