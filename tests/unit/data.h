/*
 * data.h - where the shared corpora are: captured machines, what NCCL decided on them.
 *
 * They are no part of the tree. A test that needs them ends with TEST_SKIP where they are
 * not.
 */
#ifndef DATA_H
#define DATA_H

#include <dirent.h>
#include <stdbool.h>
#include <unistd.h>

#include "test.h"

/* The build says where they are; a header compiled alone does not know. */
#ifndef WEFT_SHARED_DATA
#define WEFT_SHARED_DATA "."
#endif

enum { DATA_PATH_MAX = 1024 };

/* The path of a file or folder of the corpora; false when it is not there. */
static inline bool data_find(const char *name, char path[DATA_PATH_MAX])
{
	const char *folder = getenv("WEFT_DATA");

	if (!folder || !*folder)
		folder = WEFT_SHARED_DATA;
	snprintf(path, DATA_PATH_MAX, "%s/%s", folder, name);
	return !access(path, R_OK);
}

/* Do this with every file of a folder of the corpora that has `part` in its name, and its
 * folder. What a test's main() returns. */
static inline int data_each(const char *name, const char *part,
	void (*check)(const char *folder, const char *file))
{
	char folder[DATA_PATH_MAX];
	const struct dirent *entry;
	DIR *dir;

	if (!data_find(name, folder))
		return TEST_SKIP;
	dir = opendir(folder);
	TRUE(dir);
	while ((entry = readdir(dir)))
		if (strstr(entry->d_name, part))
			check(folder, entry->d_name);
	closedir(dir);
	return 0;
}

#endif
