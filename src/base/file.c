#include "base/file.h"

#include <sys/stat.h>

bool file_is_special(const char *path)
{
	struct stat info;

	return !stat(path, &info) && !S_ISREG(info.st_mode);
}
