/*
 * weft ps - the communicators of this machine's running jobs: ranks, calls, who waits.
 *
 * A communicator's board is a memory file that each of its processes keeps open. It is
 * found and read through /proc, with the rights of the job's own user and without
 * touching the job: nothing is written, nobody is stopped or woken.
 */
#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "common/terminal.h"
#include "exec/host/doing.h"
#include "exec/host/sign.h"
#include "weft/command.h"
#include "weft/json_print.h"

enum { PATH_BYTES = 300, TEXT_BYTES = 160, CALL_COLUMN = 59 };

struct ps {
	bool json;
	int only;      /* a process; 0: all */
	json_t *array; /* of --json */
	uint32_t found, refused;
	uint64_t *tokens; /* owned: of those that were found */
};

/* One rank, in words. */
struct rank_line {
	uint32_t pid;
	char state[TEXT_BYTES], call[TEXT_BYTES];
	double waited_s;
	int waits_for; /* -1: nobody */
};

static void usage(void)
{
	printf("usage: weft ps [--json] [PROCESS]\n\n"
	       "Show the communicators of running jobs, of PROCESS or of all that may be "
	       "looked at:\n"
	       "for each rank its process, the call it is in, how long it has waited and "
	       "for whom.\n"
	       "It needs the rights of the job's user and no others, and does not touch "
	       "the "
	       "job.\n\n"
	       "  --json  for programs\n\n"
	       "example: weft ps\n");
}

static void name_read(uint32_t pid, char text[TEXT_BYTES])
{
	char path[PATH_BYTES];
	FILE *file;

	text[0] = '\0';
	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	file = fopen(path, "re");
	if (!file)
		return;
	if (fgets(text, TEXT_BYTES, file))
		text[strcspn(text, "\n")] = '\0';
	fclose(file);
}

static void state_fill(const struct rank_status *status, struct rank_line *line)
{
	static const char *const names[] = {"coming", "runs", "has left", "failed"};
	uint32_t state = atomic_load(&status->state);
	const char *process = doing_process(status->pid);

	if (state == RANK_FAILED)
		snprintf(line->state, sizeof(line->state), "failed: %.*s", 140,
			status->sentence);
	else if (state == RANK_LIVE && pulse_has_stopped(&status->pulse))
		snprintf(line->state, sizeof(line->state), "died");
	else if (state == RANK_LIVE && process[0])
		snprintf(line->state, sizeof(line->state), "%s", process);
	else
		snprintf(line->state, sizeof(line->state), "%s",
			state < RANK_FAILED ? names[state] : "?");
}

static void rank_look(const struct peers *peers, uint32_t rank, struct rank_line *line)
{
	const struct rank_status *status = peer_status(peers, rank);
	struct call_sign sign;
	struct doing doing;
	uint64_t last;

	*line = (struct rank_line){.pid = status->pid, .waits_for = -1};
	state_fill(status, line);
	if (doing_read(peers, rank, &doing) && doing_holds(peers, rank, &doing)) {
		char text[DOING_TEXT_BYTES];

		doing_print(&doing, text);
		snprintf(line->call, sizeof(line->call), "%s", text);
		line->waited_s = (double)(clock_ns() - doing.since_ns) * 1e-9;
		line->waits_for = (int)doing.rank;
		if (!strcmp(line->state, "runs"))
			snprintf(line->state, sizeof(line->state), "waits");
		return;
	}
	last = doing_last(peers, rank, &sign);
	if (last) {
		char text[SIGN_TEXT_BYTES];

		sign_print(&sign, text);
		snprintf(line->call, sizeof(line->call), "last %s (call %lu)", text,
			(unsigned long)last);
	}
}

static enum terminal_look look_of(const struct rank_line *line)
{
	if (!strcmp(line->state, "runs") || !strcmp(line->state, "coming"))
		return LOOK_PLAIN;
	return !strcmp(line->state, "waits") || !strcmp(line->state, "has left")
		       ? LOOK_FAIR
		       : LOOK_BAD;
}

static void board_text(const struct peers *peers, const struct board_header *header)
{
	char program[TEXT_BYTES];

	name_read(header->created_pid, program);
	printf("communicator %08lx%s%.*s%s of %u ranks, made %.1f s ago by process %u "
	       "(%s)\n",
		(unsigned long)(header->token >> 32), header->name[0] ? " \"" : "",
		BOARD_NAME_BYTES - 1, header->name, header->name[0] ? "\"" : "",
		peers->rank_count, (double)(clock_ns() - header->created_ns) * 1e-9,
		header->created_pid, program);
	printf("%6s %8s  %-20s %8s %10s  %s\n", "rank", "process", "state", "waited",
		"for rank", "call");
	for (uint32_t i = 0; i < peers->local_count; i++) {
		char waited[32] = "", whom[16] = "";
		uint32_t rank = peers->locals[i];
		struct rank_line line;

		rank_look(peers, rank, &line);
		if (line.waits_for >= 0) {
			snprintf(waited, sizeof(waited), "%.1f s", line.waited_s);
			snprintf(whom, sizeof(whom), "%d", line.waits_for);
		}
		printf("%6u %8u  %s%-20s%s %8s %10s  ", rank, line.pid,
			terminal_look(look_of(&line)), line.state,
			terminal_look(LOOK_PLAIN), waited, whom);
		terminal_fold(stdout, line.call, CALL_COLUMN, CALL_COLUMN);
	}
}

static json_t *board_json(const struct peers *peers, const struct board_header *header)
{
	json_t *ranks = json_array();
	char program[TEXT_BYTES], id[32];

	for (uint32_t i = 0; i < peers->local_count; i++) {
		uint32_t rank = peers->locals[i];
		struct rank_line line;
		json_t *object;

		rank_look(peers, rank, &line);
		object = json_pack("{s:i, s:i, s:s, s:s}", "rank", (int)rank, "process",
			(int)line.pid, "state", line.state, "call", line.call);
		if (line.waits_for >= 0) {
			json_object_set_new(object, "waited_s", json_real(line.waited_s));
			json_object_set_new(
				object, "waits_for", json_integer(line.waits_for));
		}
		json_array_append_new(ranks, object);
	}
	name_read(header->created_pid, program);
	snprintf(id, sizeof(id), "%08lx", (unsigned long)(header->token >> 32));
	return json_pack("{s:s, s:s%, s:i, s:s, s:f, s:o}", "id", id, "name",
		header->name, strnlen(header->name, BOARD_NAME_BYTES), "process",
		(int)header->created_pid, "program", program, "age_s",
		(double)(clock_ns() - header->created_ns) * 1e-9, "ranks", ranks);
}

/* Every process of a communicator leads to it; false: it was shown before. */
static bool is_new(struct ps *ps, uint64_t token)
{
	uint64_t *grown;

	for (uint32_t i = 0; i < ps->found; i++)
		if (ps->tokens[i] == token)
			return false;
	grown = realloc(ps->tokens, (ps->found + 1) * sizeof(*grown));
	if (!grown)
		return false;
	ps->tokens = grown;
	ps->tokens[ps->found++] = token;
	return true;
}

/* A board may vanish or be another version's at any time: that is no failure. */
static void board_show(struct ps *ps, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct board board;
	struct peers *peers;
	struct stat info;
	void *base;

	if (fd < 0 || fstat(fd, &info) || !S_ISREG(info.st_mode) || info.st_size <= 0) {
		ps->refused += fd < 0;
		if (fd >= 0)
			close(fd);
		return;
	}
	base = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (base == MAP_FAILED)
		return;
	if (!board_view(base, (size_t)info.st_size, &board) &&
		!peers_view(&board, &peers)) {
		bool is_shown = is_new(ps, board.token);

		if (is_shown && ps->json)
			json_array_append_new(ps->array, board_json(peers, base));
		else if (is_shown)
			board_text(peers, base);
		peers_destroy(peers);
	}
	munmap(base, (size_t)info.st_size);
}

static void process_look(struct ps *ps, const char *pid)
{
	char folder[PATH_BYTES], path[PATH_BYTES], target[64];
	struct dirent *entry;
	DIR *fds;

	snprintf(folder, sizeof(folder), "/proc/%.16s/fd", pid);
	fds = opendir(folder);
	while (fds && (entry = readdir(fds))) {
		ssize_t n;

		snprintf(path, sizeof(path), "%.64s/%.16s", folder, entry->d_name);
		n = readlink(path, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = '\0';
		if (!strncmp(target, "/memfd:weft-comm", 16))
			board_show(ps, path);
	}
	if (fds)
		closedir(fds);
}

static bool parse(struct ps *ps, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		char *end;
		long pid = strtol(argv[i], &end, 10);

		if (!strcmp(argv[i], "--json")) {
			ps->json = true;
		} else if (!*end && pid > 0 && pid <= 1 << 22 && !ps->only) {
			ps->only = (int)pid;
		} else {
			fprintf(stderr, "weft ps: '%s' is neither --json nor a process\n",
				argv[i]);
			return false;
		}
	}
	return true;
}

static int ps_end(struct ps *ps)
{
	if (ps->json)
		return json_print("ps", ps->array);
	if (!ps->found)
		printf("no communicator %s%s\n",
			ps->only ? "is in this process" : "of yours runs on this machine",
			ps->refused ? " that may be looked at" : "");
	return EXIT_GOOD;
}

int command_ps(int argc, char **argv)
{
	struct ps ps = {0};
	struct dirent *entry;
	DIR *processes;

	if (command_wants_help(argc, argv)) {
		usage();
		return EXIT_GOOD;
	}
	if (!parse(&ps, argc, argv))
		return EXIT_USAGE;
	ps.array = ps.json ? json_array() : NULL;
	processes = opendir("/proc");
	while (processes && (entry = readdir(processes)))
		if (atoi(entry->d_name) > 0 &&
			(!ps.only || atoi(entry->d_name) == ps.only))
			process_look(&ps, entry->d_name);
	if (processes)
		closedir(processes);
	free(ps.tokens);
	return ps_end(&ps);
}
