#include "base/file.h"

#include <string.h>
#include <sys/stat.h>

bool file_is_special(const char *path)
{
	struct stat info;

	return !stat(path, &info) && !S_ISREG(info.st_mode);
}

bool file_is_library(const char *name)
{
	if (strchr(name, '/'))
		return true;
	for (const char *at = name; (at = strstr(at, ".so")); at += 3)
		if (at > name && (!at[3] || at[3] == '.'))
			return true;
	return false;
}
