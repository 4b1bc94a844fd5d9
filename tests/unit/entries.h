/*
 * entries.h - how many names a folder has: descriptors and threads of this process, say.
 */
#ifndef UNIT_ENTRIES_H
#define UNIT_ENTRIES_H

#include <dirent.h>

#include "test.h"

static inline int entries(const char *path)
{
	DIR *folder = opendir(path);
	int count = 0;

	TRUE(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

#endif
