/*
 * environment.h - the environment, for the program's threads and for our own.
 *
 * A program may change its environment whenever no other thread of its reads it; of our
 * threads it knows nothing, and setenv() gives back the memory that they would be
 * reading. So a thread of ours reads a copy, which was made by the last thread of the
 * program's that called environment_keep(): when an id or a communicator is made, which
 * is where a program expects its environment to count. Any other call may start threads,
 * too, but it may run beside a setenv() of another thread, and does not look.
 */
#ifndef BASE_ENVIRONMENT_H
#define BASE_ENVIRONMENT_H

#include <stdint.h>

/* Copy it as it is now. Nothing in a thread of ours. Without memory the copy is shorter:
 * what is missing there counts as unset. */
void environment_keep(void);

/* The same unless there is a copy. */
void environment_keep_first(void);

/* This thread is one of ours from now on. */
void environment_use_kept(void);

/* A variable's value; NULL when it is not set. A thread of ours may hold it for ever,
 * one of the program's until the program changes the environment. */
const char *environment_find(const char *name);

/* All of it, one "NAME=VALUE" after the other; NULL after the last. As above. */
const char *environment_at(uint32_t index);

#endif
