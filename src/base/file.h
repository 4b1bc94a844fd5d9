/*
 * file.h - what a name in a variable stands for, before somebody opens it who would wait.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>

/* Is there something by this name that is no regular file? Opening a fifo, as dlopen()
 * does, waits for whoever writes into it. */
bool file_is_special(const char *path);

/* Is it the name of a library's file, and not a word that such a name is made of? It has
 * a slash, or `.so` at its end or before a version. */
bool file_is_library(const char *name);

#endif
