/*
 * interpose.h - make the i-th allocation or system call of one rank fail.
 *
 * The program defines malloc() and the C library's wrappers of system calls itself, so
 * the library's calls come here first. They count while the rank, or a thread that the
 * library started for it, is inside. Beside a sanitizer, which does the same for its own
 * ends, nothing can be armed.
 */
#ifndef CAMPAIGN_INTERPOSE_H
#define CAMPAIGN_INTERPOSE_H

#include <stdatomic.h>
#include <stdbool.h>

enum interpose_kind { INTERPOSE_ALLOCATIONS, INTERPOSE_CALLS };

/* Call number `number` from now on fails, once; its name goes to `struck` (64 bytes,
 * borrowed), which is empty before. */
void interpose_arm(enum interpose_kind kind, int number, char *struck);
void interpose_disarm(void);

/* This thread enters or leaves the library as the victim. */
void interpose_inside(bool is_inside);

/* How many messages this process has sent are counted here from now on; borrowed. */
void interpose_count_sends(atomic_int *counter);

#endif
