/*
 * file.h - what a name in a variable stands for, and opening it without waiting.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <sys/types.h>

/* Is there something by this name that is no regular file? Opening a fifo, as dlopen()
 * does, waits for whoever writes into it. */
bool file_is_special(const char *path);

/* Open it for writing, empty, and made with these rights where there is none; `flags` are
 * more of open()'s. -1 with errno, which is ENXIO for a fifo that nobody reads: nobody is
 * waited for. */
int file_create(const char *path, int flags, mode_t rights);

/* Is it the name of a library's file, and not a word that such a name is made of? It has
 * a slash, or `.so` at its end or before a version. */
bool file_is_library(const char *name);

#endif
