/*
 * test.h - the whole test framework: a check that prints both sides and the place.
 */
#ifndef TEST_H
#define TEST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HERE	     __FILE__, __LINE__
#define EQ(a, b)     test_eq((long long)(a), (long long)(b), #a " == " #b, HERE)
#define EQ_STR(a, b) test_eq_str((a), (b), #a " == " #b, HERE)
#define TRUE(a)	     test_eq(!!(a), 1, #a, HERE)

/* CTest counts this exit code as skipped. */
enum { TEST_SKIP = 77 };

static inline void test_eq(
	long long a, long long b, const char *text, const char *file, int line)
{
	if (a == b)
		return;
	fprintf(stderr, "%s:%d: %s: %lld is not %lld\n", file, line, text, a, b);
	exit(1);
}

static inline void test_eq_str(
	const char *a, const char *b, const char *text, const char *file, int line)
{
	if (a && b && !strcmp(a, b))
		return;
	fprintf(stderr, "%s:%d: %s: \"%s\" is not \"%s\"\n", file, line, text,
		a ? a : "(null)", b ? b : "(null)");
	exit(1);
}

#endif
