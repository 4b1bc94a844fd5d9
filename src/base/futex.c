#include "base/futex.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void futex_wait(const void *word, uint32_t expected, uint32_t timeout_us)
{
	struct timespec timeout = {.tv_sec = timeout_us / 1000000,
		.tv_nsec = (long)(timeout_us % 1000000) * 1000};

	/* not FUTEX_PRIVATE: the word may be shared with another process */
	syscall(SYS_futex, word, FUTEX_WAIT, expected, &timeout, NULL, 0);
}

void futex_wake(const void *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
