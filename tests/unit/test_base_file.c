/* What a variable names is opened for writing without waiting for anybody. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

static char folder[] = "/tmp/weft-file-XXXXXX";

/* A fifo is refused while nobody reads it; who writes then waits as on any pipe. */
static void test_fifo(const char *path)
{
	int reader, writer;

	EQ(mkfifo(path, 0600), 0);
	TRUE(file_is_special(path));
	alarm(20); /* for the case that it waits after all */
	EQ(file_create(path, O_APPEND, 0644), -1);
	EQ(errno, ENXIO);
	reader = open(path, O_RDONLY | O_NONBLOCK);
	writer = file_create(path, O_APPEND, 0644);
	TRUE(reader >= 0 && writer >= 0);
	EQ(fcntl(writer, F_GETFL) & (O_NONBLOCK | O_APPEND), O_APPEND);
	EQ(fcntl(writer, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	close(reader);
	close(writer);
	alarm(0);
	EQ(unlink(path), 0);
}

static void test_plain(const char *path)
{
	struct stat info;
	int fd = file_create(path, 0, 0600);

	TRUE(fd >= 0);
	EQ(write(fd, "before", 6), 6);
	close(fd);
	EQ(stat(path, &info), 0);
	EQ(info.st_mode & 0777, 0600);
	fd = file_create(path, 0, 0600);
	TRUE(fd >= 0);
	EQ(fstat(fd, &info), 0);
	EQ(info.st_size, 0);
	close(fd);
	EQ(unlink(path), 0);
	EQ(file_create("/nowhere/at/all", 0, 0600), -1);
	EQ(errno, ENOENT);
}

int main(void)
{
	char path[64];

	TRUE(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/it", folder);
	test_fifo(path);
	test_plain(path);
	EQ(rmdir(folder), 0);
	return 0;
}
