/* No signal is delivered to a thread of the library's, and its starter's mask stays. */
#include "base/thread.h"

#include <signal.h>

#include "test.h"

static void *thread_main(void *argument)
{
	pthread_sigmask(SIG_SETMASK, NULL, argument);
	return NULL;
}

int main(void)
{
	sigset_t blocked, before, after;
	pthread_t thread;

	pthread_sigmask(SIG_SETMASK, NULL, &before);
	EQ(thread_start(&thread, "weft-test", thread_main, &blocked), 0);
	EQ(pthread_join(thread, NULL), 0);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	EQ(sigismember(&blocked, SIGTERM), 1);
	EQ(sigismember(&blocked, SIGUSR1), 1);
	EQ(sigismember(&blocked, SIGCHLD), 1);
	EQ(sigismember(&before, SIGTERM), 0);
	EQ(sigismember(&after, SIGTERM), 0); /* ours are as they were */
	return 0;
}
