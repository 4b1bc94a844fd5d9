/* What the vendors' own tools say, asked all at once and with little patience: NVLinks
 * and their errors, peer-to-peer, the fabric, libfabric's providers; and whether the
 * network's plugin can be loaded at all. */
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "weft/doctor/host_facts.h"

enum { OUTPUT_BYTES = 1 << 16, PATIENCE_MS = 1200, WORDS_MAX = 5 };

static const char *const asked[HOST_TOOLS][WORDS_MAX + 1] = {
	[HOST_TOOL_NVLINK] = {"nvidia-smi", "nvlink", "-s"},
	[HOST_TOOL_ERRORS] = {"nvidia-smi", "nvlink", "-e"},
	[HOST_TOOL_P2P] = {"nvidia-smi", "topo", "-p2p", "r"},
	[HOST_TOOL_FABRIC] = {"nvidia-smi", "-q"},
	[HOST_TOOL_PROVIDERS] = {"fi_info", "-l"},
	[HOST_TOOL_PLUGIN] = {NULL}, /* loaded in a child of ours */
	[HOST_TOOL_MASTER] = {NULL}, /* as name services may take minutes */
};

/* Links of each GPU: those that are up against those that are not. */
static void take_links(struct host_facts *facts, const char *text)
{
	int up = 0, down = 0;

	facts->links_up = facts->links_down = 0;
	for (const char *line = text; line && *line;) {
		const char *end = strchr(line, '\n');
		const char *link = strstr(line, "Link ");

		if (!strncmp(line, "GPU ", 4)) {
			/* cards without bridges have none up, which is right */
			facts->links_down += up ? down : 0;
			up = down = 0;
		} else if (link && (!end || link < end)) {
			const char *inactive = strstr(link, "<inactive>");

			if (inactive && (!end || inactive < end))
				down++;
			else
				up++, facts->links_up++;
		}
		line = end ? end + 1 : NULL;
	}
	facts->links_down += up ? down : 0;
}

/* Replays are corrected by the link itself. */
static void take_errors(struct host_facts *facts, const char *text)
{
	facts->link_errors = 0;
	for (const char *at = text; (at = strstr(at, "Errors:")); at += 7) {
		const char *word = at;

		while (word > text && word[-1] != ':' && word[-1] != '\n')
			word--;
		if (!memmem(word, (size_t)(at - word), "Replay", 6))
			facts->link_errors += strtoll(at + 7, NULL, 10);
	}
}

/* " GPU0\tX\tOK\tCNS\t": what is neither is a refusal. */
static void take_p2p(struct host_facts *facts, const char *text)
{
	facts->p2p_refused = 0;
	for (const char *line = text; line && *line;) {
		const char *at = line + strspn(line, " \t\033[0123456789;m");
		const char *end = strchr(line, '\n');

		at += strncmp(at, "GPU", 3) ? 0 : strcspn(at, " \t\n");
		while (at > line && *at && *at != '\n') {
			size_t bytes;

			at += strspn(at, " \t");
			bytes = strcspn(at, " \t\n");
			if (bytes >= 2 && bytes <= 3 && strncmp(at, "OK", 2) != 0 &&
				isupper((unsigned char)at[1]) &&
				isupper((unsigned char)at[0])) {
				snprintf(facts->p2p_why, sizeof(facts->p2p_why), "%.*s",
					(int)bytes, at);
				facts->p2p_refused++;
			}
			at += bytes;
		}
		if (!strncmp(line, "Legend", 6))
			return;
		line = end ? end + 1 : NULL;
	}
}

/* The value of "State : Completed" below "Fabric". */
static void take_fabric(struct host_facts *facts, const char *text)
{
	const char *fabric = strstr(text, "\n    Fabric");
	const char *state = fabric ? strstr(fabric, "State") : NULL;
	const char *colon = state ? strchr(state, ':') : NULL;

	if (!colon)
		return;
	colon += 1 + strspn(colon + 1, " ");
	snprintf(facts->fabric_state, sizeof(facts->fabric_state), "%.*s",
		(int)strcspn(colon, "\n\r"), colon);
}

/* "efa:" at the beginning of a line is a provider. */
static void take_providers(struct host_facts *facts, const char *text)
{
	size_t used = 0;

	facts->providers[0] = 0;
	for (const char *line = text; line && *line;) {
		size_t bytes = strcspn(line, "\n");

		if (bytes > 1 && line[bytes - 1] == ':' &&
			!isspace((unsigned char)*line) &&
			used + bytes + 2 < sizeof(facts->providers))
			used += (size_t)snprintf(facts->providers + used,
				sizeof(facts->providers) - used, "%s%.*s",
				used ? " " : "", (int)bytes - 1, line);
		line += bytes + (line[bytes] == '\n');
	}
}

void host_take_output(struct host_facts *facts, enum host_tool tool, const char *text)
{
	switch (tool) {
	case HOST_TOOL_NVLINK:
		take_links(facts, text);
		break;
	case HOST_TOOL_ERRORS:
		take_errors(facts, text);
		break;
	case HOST_TOOL_P2P:
		take_p2p(facts, text);
		break;
	case HOST_TOOL_FABRIC:
		take_fabric(facts, text);
		break;
	case HOST_TOOL_PROVIDERS:
		take_providers(facts, text);
		break;
	case HOST_TOOL_PLUGIN:
		snprintf(
			facts->plugin_error, sizeof(facts->plugin_error), "%.255s", text);
		break;
	case HOST_TOOL_MASTER:
		facts->master = (enum host_master)(
			(unsigned)atoi(text) % (MASTER_SILENT + 1));
		break;
	case HOST_TOOLS:
		break;
	}
}

struct child {
	pid_t pid;
	int fd;
	size_t bytes;
	char *text; /* owned; OUTPUT_BYTES */
};

static void load_plugin(const char *path)
{
	const char *why;

	if (dlopen(path, RTLD_LAZY | RTLD_LOCAL))
		return;
	why = dlerror();
	if (why && write(1, why, strlen(why)) < 0)
		_exit(1);
}

static void try_master(const struct host_facts *facts)
{
	char digit = (char)('0' + host_try_master(facts));

	if (write(1, &digit, 1) < 0)
		_exit(1);
}

static void start(
	struct child *child, enum host_tool tool, const struct host_facts *facts)
{
	int ends[2];

	*child = (struct child){.fd = -1, .text = calloc(1, OUTPUT_BYTES)};
	if (!child->text || pipe2(ends, O_CLOEXEC))
		return;
	child->pid = fork();
	if (!child->pid) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		dup2(null, 0);
		dup2(ends[1], 1);
		dup2(null, 2);
		if (asked[tool][0])
			execvp(asked[tool][0], (char *const *)asked[tool]);
		else if (tool == HOST_TOOL_MASTER)
			try_master(facts);
		else
			load_plugin(facts->plugin);
		_exit(asked[tool][0] ? 127 : 0);
	}
	close(ends[1]);
	if (child->pid > 0)
		child->fd = ends[0];
	else
		close(ends[0]);
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Read until the child ends or the time is over; true: it ended, and well. */
static bool finish(struct child *child, int64_t end_ms)
{
	bool is_over = false;
	int status = -1;

	while (child->fd >= 0 && !is_over) {
		struct pollfd wait = {.fd = child->fd, .events = POLLIN};
		int64_t left = end_ms - now_ms();
		ssize_t got;

		if (poll(&wait, 1, left > 0 ? (int)left : 0) != 1)
			break;
		got = read(child->fd, child->text + child->bytes,
			OUTPUT_BYTES - 1 - child->bytes);
		is_over = got <= 0;
		child->bytes += got > 0 ? (size_t)got : 0;
	}
	if (child->fd >= 0)
		close(child->fd);
	if (child->pid <= 0)
		return false;
	if (!is_over)
		kill(child->pid, SIGKILL);
	return waitpid(child->pid, &status, 0) == child->pid && is_over &&
	       WIFEXITED(status) && !WEXITSTATUS(status);
}

void host_ask_tools(struct host_facts *facts)
{
	struct child children[HOST_TOOLS];
	int64_t end_ms = now_ms() + PATIENCE_MS;

	facts->master = host_env(facts, "MASTER_ADDR") ? MASTER_SILENT : MASTER_UNSET;
	for (int i = 0; i < HOST_TOOLS; i++) {
		bool is_asked = i == HOST_TOOL_PLUGIN	   ? facts->plugin[0] != 0
				: i == HOST_TOOL_MASTER	   ? facts->master != MASTER_UNSET
				: i == HOST_TOOL_PROVIDERS ? facts->nic_count > 0
							   : facts->gpu_files > 0;

		children[i] = (struct child){.fd = -1};
		if (is_asked)
			start(&children[i], (enum host_tool)i, facts);
	}
	for (int i = 0; i < HOST_TOOLS; i++) {
		if (finish(&children[i], end_ms))
			host_take_output(facts, (enum host_tool)i, children[i].text);
		free(children[i].text);
	}
}
