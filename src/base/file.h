/*
 * file.h - what a name in a variable stands for, before somebody opens it who would wait.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>

/* Is there something by this name that is no regular file? Opening a fifo, as dlopen()
 * does, waits for whoever writes into it. */
bool file_is_special(const char *path);

#endif
