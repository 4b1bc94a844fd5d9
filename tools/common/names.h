/*
 * names.h - names as people type them: all_reduce, AllReduce and ALLREDUCE are one.
 */
#ifndef TOOLS_COMMON_NAMES_H
#define TOOLS_COMMON_NAMES_H

#include <stdbool.h>
#include <stdint.h>

/* The same letters, whatever their case; underscores do not count. */
bool names_match(const char *typed, const char *name);

enum { NAMES_LENGTH_MAX = 64 };

/* How many letters to insert, drop or change to come from one to the other, whatever
 * their case; NAMES_LENGTH_MAX where one is longer than that. */
uint32_t names_distance(const char *a, const char *b);

#endif
