/*
 * clock.h - monotonic time and deadlines.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds of the monotonic clock. */
static inline uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Milliseconds left until `deadline_ns`, 0 when it has passed, at most `cap_ms`. */
static inline int clock_left_ms(uint64_t deadline_ns, int cap_ms)
{
	uint64_t now = clock_ns(), left_ms;

	if (now >= deadline_ns)
		return 0;
	left_ms = (deadline_ns - now + 999999u) / 1000000u;
	return left_ms > (uint64_t)cap_ms ? cap_ms : (int)left_ms;
}

#endif
