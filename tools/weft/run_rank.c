#include "weft/run_rank.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "weft/run_env.h"

/* What a rank's process begins with; the first of each pair is ours. */
struct ends {
	int input[2], output[2], errors[2], pmi[2];
	int news[2]; /* closed by exec(); else the step and errno that failed */
};

enum step { STEP_FOLDER = 1, STEP_EXEC };

struct failure {
	int step, error;
};

/* The limit that ranks get back; all 0: not raised. */
static struct rlimit files_before;

void run_rank_more_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files))
		return;
	files_before = files;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

static void pair_close(const int pair[2])
{
	if (pair[0] >= 0)
		close(pair[0]);
	if (pair[1] >= 0)
		close(pair[1]);
}

static void ends_close(const struct ends *ends)
{
	pair_close(ends->input);
	pair_close(ends->output);
	pair_close(ends->errors);
	pair_close(ends->pmi);
	pair_close(ends->news);
}

static bool ends_open(struct ends *ends, bool has_input)
{
	memset(ends, -1, sizeof(*ends));
	if (pipe2(ends->output, O_CLOEXEC) || pipe2(ends->errors, O_CLOEXEC) ||
		pipe2(ends->news, O_CLOEXEC) ||
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends->pmi))
		return false;
	if (!has_input)
		ends->input[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	else if (pipe2(ends->input, O_CLOEXEC))
		return false;
	return ends->input[0] >= 0;
}

static _Noreturn void give_up(int news, enum step step)
{
	struct failure failure = {(int)step, errno};

	if (write(news, &failure, sizeof(failure)) < 0)
		_exit(126);
	_exit(127);
}

/* In the new process. */
static _Noreturn void become(const struct run_job *job, uint32_t local_rank,
	const struct ends *ends, pid_t parent)
{
	sigset_t none;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* it died before the line above */
		_exit(127);
	dup2(ends->input[0], STDIN_FILENO);
	dup2(ends->output[1], STDOUT_FILENO);
	dup2(ends->errors[1], STDERR_FILENO);
	fcntl(ends->pmi[1], F_SETFD, 0); /* this one goes with it */
	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (files_before.rlim_max)
		setrlimit(RLIMIT_NOFILE, &files_before);
	run_env_enter(job, local_rank, ends->pmi[1]);
	if (chdir(job->folder))
		give_up(ends->news[1], STEP_FOLDER);
	execvp(job->argv[0], job->argv);
	give_up(ends->news[1], STEP_EXEC);
}

static void take_ends(struct run_rank *rank, const struct ends *ends)
{
	close(ends->input[0]);
	close(ends->output[1]);
	close(ends->errors[1]);
	close(ends->pmi[1]);
	close(ends->news[0]);
	rank->input = ends->input[1];
	rank->output = ends->output[0];
	rank->errors = ends->errors[0];
	rank->pmi.fd = ends->pmi[0];
	fcntl(rank->output, F_SETFL, O_NONBLOCK);
	fcntl(rank->errors, F_SETFL, O_NONBLOCK);
	fcntl(rank->pmi.fd, F_SETFL, O_NONBLOCK);
	if (rank->input >= 0)
		fcntl(rank->input, F_SETFL, O_NONBLOCK);
}

/* exec() worked when nothing comes. */
static bool has_begun(const struct run_job *job, int news, char *why, size_t room)
{
	struct failure failure;
	ssize_t n;

	do
		n = read(news, &failure, sizeof(failure));
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof(failure))
		return true;
	snprintf(why, room,
		failure.step == STEP_FOLDER ? "cannot enter the folder %.200s: %s"
					    : "cannot start %.200s: %s",
		failure.step == STEP_FOLDER ? job->folder : job->argv[0],
		strerror(failure.error));
	return false;
}

bool run_rank_start(const struct run_job *job, uint32_t local_rank, struct run_rank *rank,
	char *why, size_t room)
{
	uint32_t number = job->first_rank + local_rank;
	struct ends ends;
	pid_t parent = getpid(), pid = -1;

	*rank = (struct run_rank){.input = -1, .output = -1, .errors = -1};
	rank->pmi = (struct run_pmi_client){.fd = -1, .rank = number};
	if (ends_open(&ends, !number))
		pid = fork();
	if (!pid)
		become(job, local_rank, &ends, parent);
	if (pid < 0) {
		snprintf(why, room, "cannot start a process: %s", strerror(errno));
		ends_close(&ends);
		return false;
	}
	close(ends.news[1]);
	setpgid(pid, pid); /* whoever comes first */
	if (!has_begun(job, ends.news[0], why, room)) {
		ends.news[1] = -1;
		ends_close(&ends);
		return false;
	}
	take_ends(rank, &ends);
	rank->pid = pid;
	return true;
}
