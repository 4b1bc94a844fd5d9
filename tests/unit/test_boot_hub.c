/* The hub ends once: when the last communicator lets go of it, when the process exits,
 * and when both happen at the same time. */
#include "boot/hub.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "test.h"

enum { RUNS = 200, STEP_NS = 2000, PATIENCE_MS = 60000 };

static void spin(uint64_t ns)
{
	uint64_t end = clock_ns() + ns;

	while (clock_ns() < end)
		;
}

static void *exit_main(void *arg)
{
	(void)arg;
	exit(0);
}

/* One thread exits, and another lets go of the hub a little later. */
static void end_twice(int run)
{
	struct addr addr;
	pthread_t thread;

	EQ(hub_get(&addr), OK);
	EQ(pthread_create(&thread, NULL, exit_main, NULL), 0);
	spin((uint64_t)run * STEP_NS);
	hub_put();
	pthread_join(thread, NULL); /* never comes back */
}

/* However slow the machine is, but not for ever. */
static int child_end(pid_t child)
{
	int status = -1;

	for (int ms = 0; ms < PATIENCE_MS; ms++) {
		if (waitpid(child, &status, WNOHANG) == child)
			return status;
		usleep(1000);
	}
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	return status;
}

static void test_exit(void)
{
	for (int run = 0; run < RUNS; run++) {
		pid_t child = fork();

		TRUE(child >= 0);
		if (!child) {
			end_twice(run);
			_exit(1);
		}
		EQ(child_end(child), 0);
	}
}

static void test_again(void)
{
	struct addr first, second;

	EQ(hub_get(&first), OK);
	EQ(hub_get(&second), OK);
	EQ(memcmp(&first, &second, sizeof(first)), 0);
	hub_put();
	hub_put();
	EQ(hub_get(&second), OK); /* it can be made again */
	hub_put();
}

int main(void)
{
	test_exit(); /* forks: before there are threads */
	test_again();
	return 0;
}
