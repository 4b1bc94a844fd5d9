#include "launch/idfile.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "launch/hex.h"
#include "launch/launch.h"

enum { LOOK_MS = 20, TEXT_BYTES = 1200, NAME_BYTES = LAUNCH_PATH_BYTES + 64 };

static const char magic[] = "weft-id-1";

static void name_print(const struct idfile *file, char name[NAME_BYTES])
{
	if (file->number)
		snprintf(name, NAME_BYTES, "%s.%u", file->path, file->number);
	else
		snprintf(name, NAME_BYTES, "%s", file->path);
}

/* The line before the bytes, by which a file of another job is known. */
static int head_print(const struct idfile *file, char *text, size_t room)
{
	return snprintf(text, room, "%s %u %016llx ", magic, file->number,
		(unsigned long long)hash_add_text(HASH_START, file->job));
}

static enum err file_write(const char *name, const char *text, size_t bytes)
{
	char fresh[NAME_BYTES + 32];
	int fd;

	snprintf(fresh, sizeof(fresh), "%s.%ld", name, (long)getpid());
	unlink(fresh);
	fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_set(ERR_SYSTEM,
			"%s, by which rank 0 tells the others where to meet, cannot be "
			"written: %m",
			name);
	if (write(fd, text, bytes) == (ssize_t)bytes && !fsync(fd) &&
		!rename(fresh, name)) {
		close(fd);
		return OK;
	}
	close(fd);
	unlink(fresh);
	return err_set(ERR_SYSTEM, "%s cannot be written: %m", name);
}

enum err idfile_write(const struct idfile *file, const void *bytes, size_t count)
{
	char name[NAME_BYTES], text[TEXT_BYTES];
	int used = head_print(file, text, sizeof(text));

	if ((size_t)used + 2 * count + 2 > sizeof(text))
		return err_set(ERR_INTERNAL, "an id of %zu bytes", count);
	hex_print(bytes, count, text + used);
	used += (int)(2 * count);
	text[used++] = '\n';
	name_print(file, name);
	return file_write(name, text, (size_t)used);
}

/* Nobody waits so long: it is of an earlier job. A clock that differs between hosts by
 * less than that does no harm. */
static bool is_stale(const struct idfile *file, const struct stat *info)
{
	return file->timeout_s > 0 && time(NULL) - info->st_mtime > file->timeout_s;
}

/* Look once. Anything but the file we wait for is as good as none. */
static bool file_look(
	const struct idfile *file, const char *name, void *bytes, size_t count)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	char text[TEXT_BYTES] = "", head[TEXT_BYTES];
	int used = head_print(file, head, sizeof(head));
	ssize_t n = -1, wanted = used + (ssize_t)(2 * count) + 1;
	struct stat info;

	if (fd < 0)
		return false;
	if (!fstat(fd, &info) && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
		!is_stale(file, &info))
		n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n != wanted || text[wanted - 1] != '\n' || strncmp(text, head, (size_t)used))
		return false;
	text[wanted - 1] = '\0';
	return hex_read(text + used, bytes, count);
}

enum err idfile_read(const struct idfile *file, void *bytes, size_t count)
{
	uint64_t since = clock_ns();
	char name[NAME_BYTES];

	name_print(file, name);
	while (!file_look(file, name, bytes, count)) {
		if (clock_is_over(since, file->timeout_s))
			return err_set(ERR_TIMEOUT,
				"rank %d has waited %d s for the file %s, which rank 0 "
				"writes: rank 0 has not come, or its host does not see "
				"the same file",
				file->rank, file->timeout_s, name);
		poll(NULL, 0, LOOK_MS);
	}
	return OK;
}

void idfile_remove(const struct idfile *file)
{
	char name[NAME_BYTES];

	name_print(file, name);
	unlink(name);
}
