/*
 * call_files.h - files that threads of large calls (exec/host/squad.h) may open between
 * them: a quarter of what the process may, for all its communicators together.
 */
#ifndef COMM_CALL_FILES_H
#define COMM_CALL_FILES_H

#include <stdint.h>

/* Of so many threads that may open `each` files, those that there is room for; what they
 * may open is taken. One thread, or none, is done without. */
uint32_t call_files_take(uint32_t threads, uint32_t each);

void call_files_give(uint32_t files);

#endif
