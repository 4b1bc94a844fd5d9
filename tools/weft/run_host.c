#include "weft/run_host.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "weft/command.h"
#include "weft/run_rank.h"

enum { GRACE_MS = 1000, SLICE_MS = 20, SWEEPS = 100, FDS_PER_RANK = 4, WHY_BYTES = 400 };

struct serve {
	struct run_job job;
	struct run_rank *ranks; /* job.host_ranks */
	struct run_pmi pmi;
	struct pollfd *waits;	/* 2, then FDS_PER_RANK each */
	int children;		/* signalfd of SIGCHLD */
	uint32_t left;		/* ranks that run */
	bool is_in_fence;	/* we have told that all ranks here are */
	bool is_over;		/* nobody listens to us any more */
	struct run_bytes in;	/* from weft run */
	struct run_bytes input; /* for rank 0 */
	bool is_input_all;	/* nothing will follow it */
};

static void tell(struct serve *serve, enum run_kind kind, uint32_t rank,
	const struct run_bytes *bytes)
{
	if (!run_frame_send(STDOUT_FILENO, kind, rank, bytes->data, bytes->count))
		serve->is_over = true;
}

/* ---- what ranks print ---- */

/* Pass on what there is. */
static void stream_pass(struct serve *serve, uint32_t local, enum run_kind kind)
{
	struct run_rank *rank = &serve->ranks[local];
	int *fd = kind == RUN_OUTPUT ? &rank->output : &rank->errors;
	struct run_bytes bytes = {0};
	int well = *fd < 0 ? 0 : 1;

	while (well > 0) {
		well = run_some_read(*fd, &bytes);
		if (well > 0)
			tell(serve, kind, serve->job.first_rank + local, &bytes);
		bytes.count = 0;
	}
	if (well < 0) {
		close(*fd);
		*fd = -1;
	}
	run_bytes_fini(&bytes);
}

/* ---- what rank 0 reads ---- */

static void input_close(struct serve *serve)
{
	if (serve->ranks[0].input >= 0)
		close(serve->ranks[0].input);
	serve->ranks[0].input = -1;
	serve->input.count = 0;
}

static void input_pass(struct serve *serve)
{
	int fd = serve->ranks[0].input;
	ssize_t n = fd < 0 || !serve->input.count
			    ? 0
			    : write(fd, serve->input.data, serve->input.count);

	if (fd < 0)
		return;
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		input_close(serve);
		return;
	}
	if (n > 0) {
		run_bytes_drop(&serve->input, (size_t)n);
		if (!serve->input.count) /* there is room for more */
			tell(serve, RUN_INPUT, 0, &(struct run_bytes){0});
	}
	if (!serve->input.count && serve->is_input_all)
		input_close(serve);
}

/* ---- ends ---- */

static uint32_t rank_find(const struct serve *serve, pid_t pid)
{
	uint32_t i = 0;

	while (i < serve->job.host_ranks && serve->ranks[i].pid != pid)
		i++;
	return i;
}

/* Its last words first, then its end. What it started may run on. */
static void rank_end(struct serve *serve, uint32_t local, int status)
{
	struct run_bytes bytes = {0};

	serve->ranks[local].pid = 0;
	serve->left--;
	stream_pass(serve, local, RUN_OUTPUT);
	stream_pass(serve, local, RUN_ERRORS);
	run_bytes_add_number(&bytes, (uint32_t)status);
	tell(serve, RUN_EXIT, serve->job.first_rank + local, &bytes);
	run_bytes_fini(&bytes);
}

/* Also what ranks left behind: it is our child then. */
static void children_reap(struct serve *serve)
{
	struct signalfd_siginfo info;
	pid_t pid;
	int status;

	while (read(serve->children, &info, sizeof(info)) > 0)
		continue;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		uint32_t local = rank_find(serve, pid);

		if (local < serve->job.host_ranks)
			rank_end(serve, local, status);
	}
}

static void ranks_signal(const struct serve *serve, int number)
{
	for (uint32_t i = 0; i < serve->job.host_ranks; i++)
		if (serve->ranks[i].pid)
			kill(-serve->ranks[i].pid, number);
}

/* All that is left of what ranks started is our child, or becomes it. */
static bool leftovers_kill(void)
{
	char path[64];
	FILE *file;
	int pid;
	bool found = false;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	file = fopen(path, "re");
	while (file && fscanf(file, "%d", &pid) == 1) {
		kill(pid, SIGKILL);
		found = true;
	}
	if (file)
		fclose(file);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		continue;
	return found;
}

static void all_end(struct serve *serve)
{
	uint64_t until = clock_ns() + GRACE_MS * CLOCK_MS;

	if (serve->left)
		ranks_signal(serve, SIGTERM);
	while (serve->left && clock_ns() < until) {
		poll(NULL, 0, SLICE_MS);
		children_reap(serve);
	}
	ranks_signal(serve, SIGKILL);
	for (int i = 0; i < SWEEPS && leftovers_kill(); i++)
		poll(NULL, 0, SLICE_MS / 4);
}

/* ---- fences ---- */

static void fence_look(struct serve *serve)
{
	for (uint32_t i = 0; i < serve->job.host_ranks; i++)
		if (!serve->ranks[i].pmi.is_in_fence)
			return;
	if (serve->is_in_fence)
		return;
	serve->is_in_fence = true;
	tell(serve, RUN_FENCE, 0, &serve->pmi.news);
	serve->pmi.news.count = 0;
}

static void fence_end(struct serve *serve, const char *data, size_t bytes)
{
	run_pmi_learn(&serve->pmi, data, bytes);
	serve->is_in_fence = false;
	for (uint32_t i = 0; i < serve->job.host_ranks; i++)
		run_pmi_release(&serve->ranks[i].pmi);
}

/* ---- what weft run says ---- */

static void frame_take(
	struct serve *serve, const struct run_frame *frame, const char *data)
{
	int number = 0;

	switch (frame->kind) {
	case RUN_INPUT:
		run_bytes_add(&serve->input, data, frame->bytes);
		serve->is_input_all = !frame->bytes;
		input_pass(serve);
		break;
	case RUN_SIGNAL:
		if (frame->bytes == sizeof(number))
			memcpy(&number, data, sizeof(number));
		ranks_signal(serve, number);
		break;
	case RUN_FENCE:
		fence_end(serve, data, frame->bytes);
		break;
	default:
		break;
	}
}

static void frames_take(struct serve *serve)
{
	struct run_frame frame;
	bool is_bad = false;

	while (run_frame_first(&serve->in, &frame, &is_bad)) {
		frame_take(serve, &frame, serve->in.data + sizeof(frame));
		run_bytes_drop(&serve->in, sizeof(frame) + frame.bytes);
	}
	serve->is_over = serve->is_over || is_bad;
}

/* ---- the loop ---- */

static void waits_fill(struct serve *serve)
{
	serve->waits[0] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
	serve->waits[1] = (struct pollfd){.fd = serve->children, .events = POLLIN};
	for (uint32_t i = 0; i < serve->job.host_ranks; i++) {
		struct pollfd *wait = &serve->waits[2 + (size_t)i * FDS_PER_RANK];
		const struct run_rank *rank = &serve->ranks[i];
		bool has_input = !i && serve->input.count;

		wait[0] = (struct pollfd){.fd = rank->output, .events = POLLIN};
		wait[1] = (struct pollfd){.fd = rank->errors, .events = POLLIN};
		wait[2] = (struct pollfd){.fd = rank->pmi.fd, .events = POLLIN};
		wait[3] = (struct pollfd){
			.fd = has_input ? rank->input : -1, .events = POLLOUT};
	}
}

static void serve_once(struct serve *serve)
{
	nfds_t count = 2 + (nfds_t)serve->job.host_ranks * FDS_PER_RANK;

	waits_fill(serve);
	if (poll(serve->waits, count, -1) < 0)
		return;
	for (uint32_t i = 0; i < serve->job.host_ranks; i++) {
		const struct pollfd *wait = &serve->waits[2 + (size_t)i * FDS_PER_RANK];

		if (wait[0].revents)
			stream_pass(serve, i, RUN_OUTPUT);
		if (wait[1].revents)
			stream_pass(serve, i, RUN_ERRORS);
		if (wait[2].revents)
			run_pmi_hear(&serve->pmi, &serve->ranks[i].pmi);
		if (wait[3].revents)
			input_pass(serve);
	}
	fence_look(serve);
	if (serve->waits[1].revents)
		children_reap(serve);
	if (serve->waits[0].revents && run_some_read(STDIN_FILENO, &serve->in) < 0)
		serve->is_over = true;
	frames_take(serve);
}

/* ---- the beginning ---- */

/* Read the job, which comes first. */
static bool job_read(struct serve *serve, struct run_bytes *bytes)
{
	struct run_frame frame;
	bool is_bad = false;

	while (!run_frame_first(&serve->in, &frame, &is_bad))
		if (is_bad || run_some_read(STDIN_FILENO, &serve->in) < 0)
			return false;
	if (frame.kind != RUN_JOB)
		return false;
	run_bytes_add(bytes, serve->in.data + sizeof(frame), frame.bytes);
	run_bytes_drop(&serve->in, sizeof(frame) + frame.bytes);
	return run_job_unpack(bytes, &serve->job);
}

/* Where ranks are, as programs of MPICH ask: so many hosts with so many ranks each. */
static void mapping_put(struct serve *serve)
{
	char text[64];

	if (!serve->job.is_even)
		return;
	snprintf(text, sizeof(text), "(vector,(0,%u,%u))", serve->job.host_count,
		(serve->job.rank_count + serve->job.host_count - 1) /
			serve->job.host_count);
	run_bytes_add_text(&serve->pmi.values, "PMI_process_mapping");
	run_bytes_add_text(&serve->pmi.values, text);
}

static bool ranks_start(struct serve *serve)
{
	uint32_t count = serve->job.host_ranks;

	serve->ranks = calloc(count, sizeof(*serve->ranks));
	serve->waits = calloc(2 + (size_t)count * FDS_PER_RANK, sizeof(*serve->waits));
	if (!serve->ranks || !serve->waits)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		struct run_rank *rank = &serve->ranks[i];
		struct run_bytes bytes = {0};
		char why[WHY_BYTES];

		if (run_rank_start(&serve->job, i, rank, why, sizeof(why))) {
			serve->left++;
			continue;
		}
		run_bytes_add_text(&bytes, why);
		tell(serve, RUN_FAILED, serve->job.first_rank + i, &bytes);
		run_bytes_fini(&bytes);
		serve->job.host_ranks = i; /* those that there are */
		return true;
	}
	return true;
}

static bool children_watch(struct serve *serve)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_SETMASK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	serve->children = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return serve->children >= 0;
}

static void serve_fini(struct serve *serve)
{
	free(serve->ranks);
	free(serve->waits);
	free(serve->job.settings);
	free(serve->job.argv);
	run_bytes_fini(&serve->in);
	run_bytes_fini(&serve->input);
	run_bytes_fini(&serve->pmi.values);
	run_bytes_fini(&serve->pmi.news);
}

int run_host_serve(void)
{
	struct serve serve = {0};
	struct run_bytes job = {0};

	setsid();
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	run_rank_more_files();
	if (write(STDOUT_FILENO, RUN_MAGIC, strlen(RUN_MAGIC)) < 0 ||
		!children_watch(&serve))
		return EXIT_WRONG;
	if (!job_read(&serve, &job)) {
		fprintf(stderr,
			"weft run --serve is what weft run starts on every host; it is "
			"of no use by itself\n");
		return EXIT_USAGE;
	}
	serve.pmi.rank_count = serve.job.rank_count;
	mapping_put(&serve);
	if (!ranks_start(&serve)) {
		serve_fini(&serve);
		return EXIT_WRONG;
	}
	frames_take(&serve); /* what came with the job */
	while (serve.left && !serve.is_over)
		serve_once(&serve);
	all_end(&serve);
	serve_fini(&serve);
	run_bytes_fini(&job);
	return EXIT_GOOD;
}
