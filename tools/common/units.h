/*
 * units.h - sizes, times and rates as people type them.
 *
 * Each function takes the whole text or nothing: on failure it returns false and leaves
 * the value alone.
 */
#ifndef TOOLS_COMMON_UNITS_H
#define TOOLS_COMMON_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "8", "1.5K", "32m", "2G": bytes, a letter is a power of 1024 (nccl-tests' grammar). */
bool units_size(const char *text, uint64_t *bytes);

/* "0", "250ns", "1us", "2.5ms", "3s": seconds. A bare number must be 0. */
bool units_time(const char *text, double *seconds);

/* "10GB/s", "400Gb/s", "900MB/s": bytes per second, powers of 1000; b is bits. */
bool units_rate(const char *text, double *bytes_per_second);

/* A whole number from `lowest` to `highest`, decimal. */
bool units_int(const char *text, int64_t lowest, int64_t highest, int64_t *value);

/* "8x1", as pods on a machine and GPUs of a pod: two such numbers from 1 to `highest`. */
bool units_pair(const char *text, int64_t highest, int64_t *first, int64_t *second);

/* "64M", "1.5K", "100": the shortest form that units_size() reads back. */
void units_print_size(uint64_t bytes, char *text, size_t text_size);

#endif
