/* A failure keeps its sentence, per thread first and for the process next. */
#include "base/err.h"

#include <errno.h>
#include <pthread.h>

#include "test.h"

static void *other_thread(void *unused)
{
	(void)unused;
	EQ_STR(err_last(),
		"open x: No such file or directory"); /* the process's newest */
	EQ(err_set(ERR_USAGE, "mine %d", 1), ERR_USAGE);
	EQ_STR(err_last(), "mine 1");
	return NULL;
}

/* What it says is for who adopts it. */
static void *hushed_thread(void *kept)
{
	err_hush();
	EQ(err_set(ERR_USAGE, "quiet"), ERR_USAGE);
	EQ_STR(err_last(), "quiet");
	strcpy(kept, err_last());
	return NULL;
}

static void *asking_thread(void *unused)
{
	(void)unused;
	EQ_STR(err_last(), "newest");
	return NULL;
}

static void a_hushed_thread_tells_nobody(void)
{
	char kept[ERR_TEXT_BYTES];
	pthread_t thread;

	EQ(err_set(ERR_USAGE, "newest"), ERR_USAGE);
	EQ(pthread_create(&thread, NULL, hushed_thread, kept), 0);
	EQ(pthread_join(thread, NULL), 0);
	EQ(pthread_create(&thread, NULL, asking_thread, NULL), 0);
	EQ(pthread_join(thread, NULL), 0);
	err_adopt(kept);
	EQ_STR(err_last(), "quiet");
}

static void names_are_nccls(void)
{
	EQ_STR(err_name(OK), "no error");
	EQ_STR(err_name(ERR_CUDA),
		"unhandled cuda error (run with NCCL_DEBUG=INFO for details)");
	EQ_STR(err_name(ERR_SYSTEM),
		"unhandled system error (run with NCCL_DEBUG=INFO for details)");
	EQ_STR(err_name(ERR_INTERNAL),
		"internal error - please report this issue to the NCCL developers");
	EQ_STR(err_name(ERR_ARGUMENT),
		"invalid argument (run with NCCL_DEBUG=WARN for details)");
	EQ_STR(err_name(ERR_USAGE),
		"invalid usage (run with NCCL_DEBUG=WARN for details)");
	EQ_STR(err_name(ERR_REMOTE),
		"remote process exited or there was a network error");
	EQ_STR(err_name(ERR_PROGRESS), "NCCL operation in progress");
	EQ_STR(err_name(ERR_TIMEOUT), "timeout");
	EQ_STR(err_name((enum err)42), "unknown result code");
}

int main(void)
{
	char big[2000];
	pthread_t thread;

	EQ_STR(err_last(), "");
	errno = ENOENT;
	EQ(err_set(ERR_SYSTEM, "open %s: %m", "x"), ERR_SYSTEM);
	EQ(errno, ENOENT);
	EQ_STR(err_last(), "open x: No such file or directory");
	EQ(pthread_create(&thread, NULL, other_thread, NULL), 0);
	EQ(pthread_join(thread, NULL), 0);
	EQ_STR(err_last(), "open x: No such file or directory"); /* not the other's */
	EQ(err_set(ERR_REMOTE, "again: %s", err_last()), ERR_REMOTE);
	EQ_STR(err_last(), "again: open x: No such file or directory");
	memset(big, 'a', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	EQ(err_set(ERR_INTERNAL, "%s", big), ERR_INTERNAL);
	EQ(strlen(err_last()), 511);
	names_are_nccls();
	a_hushed_thread_tells_nobody();
	return 0;
}
