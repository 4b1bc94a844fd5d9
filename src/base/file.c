#include "base/file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

bool file_is_special(const char *path)
{
	struct stat info;

	return !stat(path, &info) && !S_ISREG(info.st_mode);
}

int file_create(const char *path, int flags, mode_t rights)
{
	int fd = open(path,
		flags | O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
		rights);

	if (fd >= 0) /* what is written waits for its reader as on any pipe */
		(void)fcntl(fd, F_SETFL, flags & O_APPEND);
	return fd;
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
