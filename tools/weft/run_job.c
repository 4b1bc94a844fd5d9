#include "weft/run_job.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "weft/command.h"
#include "weft/run_env.h"
#include "weft/run_link.h"
#include "weft/run_output.h"
#include "weft/run_wire.h"

enum {
	GRACE_MS = 5000, /* between asking ranks to end and ending them */
	HARD_MS = 3000,	 /* then for the helpers */
	SLICE_MS = 100,
	AGENT_MS = 500, /* for an agent to end that says no more */
	WHY_BYTES = 512
};

static const int passed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

struct state {
	const struct run_args *args;
	struct run_link *links;
	struct run_output *output;
	struct pollfd *waits;	      /* signals, input, then one per link */
	unsigned char *has_ended;     /* by rank */
	struct run_bytes values;      /* of the fence that is under way */
	uint64_t began_ns, ending_ns; /* 0: not ending */
	bool is_killing;
	bool can_send_input, is_input_over;
	int signals;	     /* signalfd */
	int status;	     /* of the exit */
	uint32_t stopped;    /* ranks that did not end by themselves */
	int failed_rank;     /* -1: none */
	char why[WHY_BYTES]; /* how it failed */
};

static void all_tell(
	struct state *state, enum run_kind kind, const struct run_bytes *bytes)
{
	for (uint32_t i = 0; i < state->args->host_count; i++)
		if (state->links[i].to >= 0)
			run_frame_send(
				state->links[i].to, kind, 0, bytes->data, bytes->count);
}

static void all_signal(struct state *state, int number)
{
	struct run_bytes bytes = {0};

	run_bytes_add_number(&bytes, (uint32_t)number);
	all_tell(state, RUN_SIGNAL, &bytes);
	run_bytes_fini(&bytes);
}

static void end_begin(struct state *state, int number)
{
	if (!state->ending_ns)
		state->ending_ns = clock_ns();
	all_signal(state, number);
}

/* ---- failures ---- */

/* The first one counts: the others follow from it. */
static void failed(struct state *state, int rank, int status, const char *why)
{
	if (state->status)
		return;
	state->status = status;
	state->failed_rank = rank;
	snprintf(state->why, sizeof(state->why), "%s", why);
	end_begin(state, SIGTERM);
}

static const struct run_host *host_of(const struct run_args *args, uint32_t rank)
{
	uint32_t i = 0;

	while (rank >= args->hosts[i].first_rank + args->hosts[i].rank_count)
		i++;
	return &args->hosts[i];
}

static void rank_ended(struct state *state, uint32_t rank, int status)
{
	bool was_ending = state->ending_ns;
	char why[WHY_BYTES];

	run_output_flush(state->output, rank);
	state->has_ended[rank] = 1;
	if (!status)
		return;
	state->stopped += was_ending;
	if (WIFSIGNALED(status)) {
		snprintf(why, sizeof(why), "was ended by signal %d (%s)%s",
			WTERMSIG(status), strsignal(WTERMSIG(status)),
			WCOREDUMP(status) ? " and left a core file" : "");
		failed(state, (int)rank, 128 + WTERMSIG(status), why);
	} else {
		snprintf(
			why, sizeof(why), "ended with exit code %d", WEXITSTATUS(status));
		failed(state, (int)rank, WEXITSTATUS(status), why);
	}
}

/* How the agent has ended: "exit code 255". Its output has, so it will soon. */
static int agent_end(struct run_link *link, char *text, size_t room)
{
	int status = 0;
	pid_t ended = 0;

	for (int i = 0; i < AGENT_MS && !ended; i++) {
		ended = waitpid(link->pid, &status, WNOHANG);
		if (!ended)
			poll(NULL, 0, 1);
	}
	if (ended)
		link->pid = 0;
	if (ended <= 0)
		snprintf(text, room, "hung up");
	else if (WIFSIGNALED(status))
		snprintf(text, room, "ended by signal %d", WTERMSIG(status));
	else
		snprintf(text, room, "ended with exit code %d", WEXITSTATUS(status));
	return ended > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* 255 is how ssh ends when it is ssh itself that failed. */
static void agent_judge(
	const struct state *state, struct run_link *link, char why[WHY_BYTES])
{
	const char *name = link->host->name, *agent = state->args->agent;
	const char *path = state->args->path;
	char end[64];
	int code = agent_end(link, end, sizeof(end));

	if (link->host->is_here)
		snprintf(why, WHY_BYTES,
			"weft could not be started on host %.100s: it %s", name, end);
	else if (code == RUN_LINK_NO_AGENT)
		snprintf(why, WHY_BYTES,
			"host %.100s was not called: there is no program '%.100s'; give "
			"another (--agent)",
			name, agent);
	else if (code == 255)
		snprintf(why, WHY_BYTES,
			"weft could not be started on host %.100s by '%.100s', which %s: "
			"can one log in there with nothing being asked?",
			name, agent, end);
	else
		snprintf(why, WHY_BYTES,
			"weft could not be started on host %.100s by '%.100s', which %s: "
			"is it at %.100s there (--path)?",
			name, agent, end, path ? path : "the same place");
}

/* A helper goes when its ranks have ended, and not before. */
static void link_ended(struct state *state, struct run_link *link)
{
	const struct run_host *host = link->host;
	uint32_t left = 0;
	char why[WHY_BYTES];

	run_link_close(link);
	for (uint32_t i = 0; i < host->rank_count; i++)
		left += !state->has_ended[host->first_rank + i];
	if (!left || state->ending_ns)
		return;
	if (link->is_greeted)
		snprintf(why, sizeof(why),
			"the connection to host %.100s was lost with %u rank%s running "
			"there",
			host->name, left, left == 1 ? "" : "s");
	else
		agent_judge(state, link, why);
	failed(state, -1, EXIT_WRONG, why);
}

/* ---- what helpers say ---- */

/* All hosts' ranks are in a fence: everybody gets what all have put. */
static void fence_add(
	struct state *state, struct run_link *link, const char *data, size_t bytes)
{
	uint32_t count = state->args->host_count;

	run_bytes_add(&state->values, data, bytes);
	link->is_in_fence = true;
	for (uint32_t i = 0; i < count; i++)
		if (!state->links[i].is_in_fence)
			return;
	all_tell(state, RUN_FENCE, &state->values);
	state->values.count = 0;
	for (uint32_t i = 0; i < count; i++)
		state->links[i].is_in_fence = false;
}

static void frame_take(struct state *state, struct run_link *link,
	const struct run_frame *frame, const char *data)
{
	const struct run_host *host = link->host;
	bool is_its_own = frame->rank - host->first_rank < host->rank_count;
	int status = 0;
	char why[WHY_BYTES];

	switch (frame->kind) {
	case RUN_OUTPUT:
	case RUN_ERRORS:
		if (is_its_own)
			run_output_add(state->output, frame->rank,
				frame->kind == RUN_ERRORS, data, frame->bytes);
		break;
	case RUN_EXIT:
		if (frame->bytes == sizeof(status))
			memcpy(&status, data, sizeof(status));
		if (is_its_own)
			rank_ended(state, frame->rank, status);
		break;
	case RUN_FAILED:
		snprintf(why, sizeof(why), "rank %u on %.100s %.*s", frame->rank,
			host->name, (int)frame->bytes, data);
		failed(state, -1, 127, why);
		break;
	case RUN_FENCE:
		fence_add(state, link, data, frame->bytes);
		break;
	case RUN_INPUT:
		state->can_send_input = true;
		break;
	default:
		break;
	}
}

static void link_hear(struct state *state, struct run_link *link)
{
	int well = run_some_read(link->from, &link->in);
	struct run_frame frame;
	bool is_bad = false;

	while (run_link_is_greeted(link) && run_frame_first(&link->in, &frame, &is_bad)) {
		frame_take(state, link, &frame, link->in.data + sizeof(frame));
		run_bytes_drop(&link->in, sizeof(frame) + frame.bytes);
	}
	if (well < 0 || is_bad)
		link_ended(state, link);
}

/* ---- what the user says ---- */

static void signal_take(struct state *state)
{
	struct signalfd_siginfo info;
	bool is_end;

	if (read(state->signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	is_end = info.ssi_signo != SIGUSR1 && info.ssi_signo != SIGUSR2;
	if (is_end && !state->status)
		state->status = 128 + (int)info.ssi_signo;
	if (is_end && state->ending_ns) /* asked again: at once */
		state->ending_ns = 1;
	if (is_end)
		end_begin(state, (int)info.ssi_signo);
	else
		all_signal(state, (int)info.ssi_signo);
}

static void input_take(struct state *state)
{
	static char data[RUN_INPUT_MAX];
	ssize_t n = read(STDIN_FILENO, data, sizeof(data));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	state->can_send_input = false;
	state->is_input_over = n <= 0;
	if (state->links[0].to >= 0)
		run_frame_send(
			state->links[0].to, RUN_INPUT, 0, data, n > 0 ? (size_t)n : 0);
}

/* In the background of a terminal nobody types for us. */
static bool is_input_ours(void)
{
	return !isatty(STDIN_FILENO) || tcgetpgrp(STDIN_FILENO) == getpgrp();
}

/* ---- the loop ---- */

static void time_look(struct state *state)
{
	uint64_t now = clock_ns();

	if (!state->ending_ns)
		return;
	if (!state->is_killing && now - state->ending_ns > GRACE_MS * CLOCK_MS) {
		state->is_killing = true;
		state->ending_ns = now;
		all_signal(state, SIGKILL);
	} else if (state->is_killing && now - state->ending_ns > HARD_MS * CLOCK_MS) {
		for (uint32_t i = 0; i < state->args->host_count; i++)
			run_link_close(&state->links[i]);
	}
}

static bool watch_once(struct state *state)
{
	uint32_t count = state->args->host_count, open = 0;
	bool has_input = state->can_send_input && !state->is_input_over &&
			 !state->has_ended[0] && is_input_ours();

	state->waits[0] = (struct pollfd){.fd = state->signals, .events = POLLIN};
	state->waits[1] = (struct pollfd){
		.fd = has_input ? STDIN_FILENO : -1, .events = POLLIN};
	for (uint32_t i = 0; i < count; i++) {
		state->waits[2 + i] = (struct pollfd){
			.fd = state->links[i].from, .events = POLLIN};
		open += state->links[i].from >= 0;
	}
	if (!open)
		return false;
	poll(state->waits, 2 + count, state->ending_ns ? SLICE_MS : -1);
	for (uint32_t i = 0; i < count; i++)
		if (state->waits[2 + i].revents)
			link_hear(state, &state->links[i]);
	if (state->waits[1].revents)
		input_take(state);
	if (state->waits[0].revents)
		signal_take(state);
	time_look(state);
	return true;
}

/* ---- begin and end ---- */

static bool is_even(const struct run_args *args)
{
	for (uint32_t i = 0; i + 1 < args->host_count; i++)
		if (args->hosts[i].rank_count != args->hosts[0].rank_count)
			return false;
	return args->hosts[args->host_count - 1].rank_count <= args->hosts[0].rank_count;
}

static void job_send(const struct state *state, uint32_t index, struct run_job *job)
{
	const struct run_link *link = &state->links[index];
	struct run_bytes bytes = {0};

	job->host = index;
	job->first_rank = link->host->first_rank;
	job->host_ranks = link->host->rank_count;
	run_job_pack(job, &bytes);
	run_frame_send(link->to, RUN_JOB, 0, bytes.data, bytes.count);
	run_bytes_fini(&bytes);
}

static bool links_open(struct state *state)
{
	const struct run_args *args = state->args;
	char *folder = getcwd(NULL, 0);
	struct run_job job = {.rank_count = args->rank_count,
		.host_count = args->host_count,
		.is_even = is_even(args),
		.folder = folder ? folder : "/",
		.settings = run_env_settings(args),
		.argv = args->argv};
	bool is_good = true;

	for (uint32_t i = 0; i < args->host_count; i++)
		state->links[i] = (struct run_link){.to = -1, .from = -1};
	for (uint32_t i = 0; i < args->host_count && is_good; i++) {
		is_good = run_link_open(&state->links[i], &args->hosts[i], args);
		if (is_good)
			job_send(state, i, &job);
	}
	free(folder);
	run_env_forget(job.settings);
	return is_good;
}

static void agents_wait(const struct state *state)
{
	uint64_t until = clock_ns() + HARD_MS * CLOCK_MS;

	for (uint32_t i = 0; i < state->args->host_count; i++) {
		pid_t pid = state->links[i].pid;

		while (pid > 0 && !waitpid(pid, NULL, WNOHANG)) {
			if (clock_ns() > until)
				kill(pid, SIGKILL);
			poll(NULL, 0, 1);
		}
	}
}

static void verdict(const struct state *state)
{
	const struct run_args *args = state->args;
	double seconds = (double)(clock_ns() - state->began_ns) * 1e-9;
	uint32_t rank = (uint32_t)state->failed_rank;

	fflush(stdout);
	if (!state->why[0])
		return;
	if (state->failed_rank < 0) {
		fprintf(stderr, "weft run: %s\n", state->why);
		return;
	}
	fprintf(stderr, "weft run: rank %u of %u on %s %s after %.1f s", rank,
		args->rank_count, host_of(args, rank)->name, state->why, seconds);
	if (state->stopped)
		fprintf(stderr, "; %u other rank%s stopped then", state->stopped,
			state->stopped == 1 ? " was" : "s were");
	if (!run_output_last(state->output, rank, NULL)) {
		fprintf(stderr, "; it has printed nothing\n");
		return;
	}
	fprintf(stderr, ". Its last lines:\n");
	run_output_last(state->output, rank, stderr);
}

static int signals_watch(void)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++)
		sigaddset(&set, passed_on[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void state_fini(struct state *state)
{
	free(state->links);
	free(state->waits);
	free(state->has_ended);
	run_bytes_fini(&state->values);
	run_output_destroy(state->output);
}

int run_job_run(const struct run_args *args)
{
	struct state state = {.args = args,
		.began_ns = clock_ns(),
		.can_send_input = true,
		.failed_rank = -1,
		.signals = signals_watch()};

	state.links = calloc(args->host_count, sizeof(*state.links));
	state.waits = calloc(args->host_count + 2, sizeof(*state.waits));
	state.has_ended = calloc(args->rank_count, 1);
	state.output = run_output_create(args->rank_count, args->is_plain);
	if (!state.links || !state.waits || !state.has_ended || !state.output ||
		state.signals < 0) {
		fprintf(stderr, "weft run: no memory, or no descriptors: %m\n");
		state_fini(&state);
		return EXIT_WRONG;
	}
	if (!links_open(&state)) {
		for (uint32_t i = 0; i < args->host_count; i++)
			run_link_close(&state.links[i]);
		state.status = EXIT_WRONG;
	}
	while (watch_once(&state))
		continue;
	agents_wait(&state);
	verdict(&state);
	state_fini(&state);
	return state.status;
}
