/*
 * names.h - names as people type them: all_reduce, AllReduce and ALLREDUCE are one.
 */
#ifndef TOOLS_COMMON_NAMES_H
#define TOOLS_COMMON_NAMES_H

#include <stdbool.h>

/* The same letters, whatever their case; underscores do not count. */
bool names_match(const char *typed, const char *name);

#endif
