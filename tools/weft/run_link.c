#include "weft/run_link.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "weft/run_wire.h"

enum { WORDS_MAX = 64, COMMAND_BYTES = 2 * PATH_MAX };

/* For a shell at the other end, which ssh always has. */
static bool shell_quote(const char *text, char *quoted, size_t room)
{
	size_t used = 0;

	quoted[used++] = '\'';
	for (; *text; text++) {
		const char *piece = *text == '\'' ? "'\\''" : (char[]){*text, '\0'};
		size_t bytes = strlen(piece);

		if (used + bytes + 2 > room)
			return false;
		memcpy(quoted + used, piece, bytes);
		used += bytes;
	}
	quoted[used++] = '\'';
	quoted[used] = '\0';
	return true;
}

static bool own_path(char path[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);

	if (n <= 0)
		return false;
	path[n] = '\0';
	return true;
}

/* In the agent's process. Its own process group: ^C is ours to pass on. */
static _Noreturn void agent_become(
	const struct run_host *host, const struct run_args *args, const int ends[2])
{
	char path[PATH_MAX], quoted[COMMAND_BYTES], command[COMMAND_BYTES + 32];
	char *words[WORDS_MAX + 3] = {0}, *agent = strdup(args->agent), *rest = NULL;
	int count = 0;
	sigset_t none;

	setpgid(0, 0);
	dup2(ends[0], STDIN_FILENO);
	dup2(ends[1], STDOUT_FILENO);
	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (!own_path(path) || !agent)
		_exit(127);
	if (host->is_here)
		execl(path, "weft", "run", "--serve", NULL);
	if (!shell_quote(args->path ? args->path : path, quoted, sizeof(quoted)))
		_exit(127);
	snprintf(command, sizeof(command), "exec %s run --serve", quoted);
	for (char *word = strtok_r(agent, " \t", &rest); word && count < WORDS_MAX;
		word = strtok_r(NULL, " \t", &rest))
		words[count++] = word;
	words[count++] = (char *)(uintptr_t)host->name;
	words[count] = command;
	execvp(words[0], words);
	fprintf(stderr, "weft run: cannot start the agent %s: %m\n", words[0]);
	_exit(RUN_LINK_NO_AGENT);
}

bool run_link_open(
	struct run_link *link, const struct run_host *host, const struct run_args *args)
{
	int down[2] = {-1, -1}, up[2] = {-1, -1};
	pid_t pid = -1;

	*link = (struct run_link){.host = host, .to = -1, .from = -1};
	if (!pipe2(down, O_CLOEXEC) && !pipe2(up, O_CLOEXEC))
		pid = fork();
	if (!pid)
		agent_become(host, args, (int[2]){down[0], up[1]});
	if (down[0] >= 0)
		close(down[0]);
	if (up[1] >= 0)
		close(up[1]);
	if (pid < 0) {
		fprintf(stderr, "weft run: cannot start a process for host %s: %m\n",
			host->name);
		return false;
	}
	link->pid = pid;
	link->to = down[1];
	link->from = up[0];
	fcntl(link->from, F_SETFL, O_NONBLOCK);
	return true;
}

/* A login may print something first; it goes where errors go. */
bool run_link_is_greeted(struct run_link *link)
{
	size_t bytes = strlen(RUN_MAGIC);
	const char *found = link->in.count >= bytes
				    ? memmem(link->in.data, link->in.count, RUN_MAGIC,
					      bytes)
				    : NULL;

	if (link->is_greeted || !found)
		return link->is_greeted;
	fwrite(link->in.data, 1, (size_t)(found - link->in.data), stderr);
	run_bytes_drop(&link->in, (size_t)(found - link->in.data) + bytes);
	link->is_greeted = true;
	return true;
}

void run_link_close(struct run_link *link)
{
	if (link->to >= 0)
		close(link->to);
	if (link->from >= 0)
		close(link->from);
	link->to = link->from = -1;
	run_bytes_fini(&link->in);
}
