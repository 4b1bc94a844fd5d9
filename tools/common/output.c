#include "common/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

void output_begin(void)
{
	signal(SIGXFSZ, SIG_IGN);
	/* The lowest number that is free is taken, so upwards. One that can only be read
	 * makes writing fail, as it would have. */
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null", fd ? O_RDONLY : O_WRONLY);
}

/* Did all of it go out? errno is why not: what was the reason in the middle of the
 * output is one still. */
static bool is_written(void)
{
	if (fflush(stdout))
		return false;
	if (!ferror(stdout))
		return true;
	clearerr(stdout);
	errno = EIO;
	(void)(putchar('\n') == EOF || fflush(stdout));
	return false;
}

int output_end(const char *program, int status, int failure)
{
	if (is_written())
		return status;
	fprintf(stderr, "%s: cannot write the output: %m%s\n", program,
		errno == EFBIG ? " (see ulimit -f)" : "");
	return status ? status : failure;
}
