/*
 * clock.h - monotonic time and deadlines.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define CLOCK_MS  1000000ull
#define CLOCK_SEC 1000000000ull

/* Nanoseconds of the monotonic clock. */
static inline uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * CLOCK_SEC + (uint64_t)now.tv_nsec;
}

/* Has it been longer than that since then? A limit of 0 or less is none. */
static inline bool clock_is_over(uint64_t since_ns, int64_t limit_s)
{
	return limit_s > 0 && clock_ns() - since_ns > (uint64_t)limit_s * CLOCK_SEC;
}

/* Milliseconds left until `deadline_ns`, 0 when it has passed, at most `cap_ms`. */
static inline int clock_left_ms(uint64_t deadline_ns, int cap_ms)
{
	uint64_t now = clock_ns(), left_ms;

	if (now >= deadline_ns)
		return 0;
	left_ms = (deadline_ns - now + CLOCK_MS - 1) / CLOCK_MS;
	return left_ms > (uint64_t)cap_ms ? cap_ms : (int)left_ms;
}

#endif
