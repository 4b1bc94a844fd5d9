/* A captured host as one file: a tar, made and opened by tar(1) itself. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "weft/doctor/host_facts.h"

enum { PATH = 1024 };

static bool is_tar(const char *path)
{
	size_t bytes = strlen(path);

	return bytes > 4 && !strcmp(path + bytes - 4, ".tar");
}

/* 0: it ran, and was content. */
static int run(const char *const *words)
{
	int status = -1;
	pid_t child = fork();

	if (!child) {
		execvp(words[0], (char *const *)words);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return -1;
	return status;
}

static void remove_folder(const char *folder)
{
	const char *const words[] = {"rm", "-rf", "--", folder, NULL};

	run(words);
}

static enum err make_place(char *place)
{
	const char *above = getenv("TMPDIR");

	snprintf(place, PATH, "%.900s/weft-host.XXXXXX",
		above && above[0] ? above : "/tmp");
	if (!mkdtemp(place))
		return err_set(ERR_SYSTEM, "cannot make the folder %s: %m", place);
	return OK;
}

enum err host_facts_capture(const struct host_facts *facts, const char *path)
{
	char place[PATH], inner[PATH + 8];
	const char *const words[] = {"tar", "cf", path, "-C", inner, ".", NULL};
	enum err e;
	int fd;

	if (!is_tar(path))
		return host_capture_folder(facts, path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return err_set(ERR_SYSTEM,
			"cannot make the file %s: %m; name one that is not there", path);
	close(fd);
	e = make_place(place);
	if (e)
		return e;
	snprintf(inner, sizeof(inner), "%s/host", place);
	e = host_capture_folder(facts, inner);
	if (!e && run(words))
		e = err_set(ERR_SYSTEM,
			"tar could not write %s; name a folder instead, without .tar",
			path);
	remove_folder(place);
	return e;
}

enum err host_facts_read(struct host_facts *facts, const char *root)
{
	struct stat about;
	char place[PATH];
	const char *const words[] = {
		"tar", "xf", root, "-C", place, "--no-same-owner", NULL};
	enum err e;

	if (!root || stat(root, &about) || !S_ISREG(about.st_mode))
		return host_read_folder(facts, root);
	e = make_place(place);
	if (e)
		return e;
	if (run(words))
		e = err_set(ERR_ARGUMENT,
			"--root %s is no folder and no tar; weft doctor --capture makes "
			"either",
			root);
	else
		e = host_read_folder(facts, place);
	remove_folder(place);
	return e;
}
