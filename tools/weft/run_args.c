#include "weft/run_args.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/units.h"
#include "weft/option.h"

enum { LINE_BYTES = 4096, EXPORTS_MAX = 1024 };

enum { FLAG_HOSTS = OPTION_LONG, FLAG_HOSTFILE, FLAG_AGENT, FLAG_PATH, FLAG_NO_PREFIX };

static const struct option options[] = {
	{"ranks", required_argument, 0, 'n'},
	{"hosts", required_argument, 0, FLAG_HOSTS},
	{"hostfile", required_argument, 0, FLAG_HOSTFILE},
	{"agent", required_argument, 0, FLAG_AGENT},
	{"path", required_argument, 0, FLAG_PATH},
	{"env", required_argument, 0, 'x'},
	{"no-prefix", no_argument, 0, FLAG_NO_PREFIX},
	{"help", no_argument, 0, 'h'},
	{0, 0, 0, 0},
};

/* A plus: the first word that is no option is the program, and the rest is its own. */
static const struct option_set set = {"run", "+:n:x:h", options};

/* ---- hosts ---- */

/* With colons it is an IPv6 address, perhaps with a user in front and a scope behind. */
static bool is_v6(const char *text, size_t bytes)
{
	const char *at = memchr(text, '@', bytes);
	const char *from = at ? at + 1 : text;
	char address[RUN_NAME_BYTES];
	struct in6_addr addr;

	snprintf(address, sizeof(address), "%.*s", (int)(text + bytes - from), from);
	address[strcspn(address, "%")] = '\0';
	return inet_pton(AF_INET6, address, &addr) == 1;
}

/* What a name or an address is made of. It goes to an agent as a word of its command
 * line, so it must not look like an option. */
static bool is_name(const char *text, size_t bytes)
{
	static const char marks[] = "-._:@%";

	for (size_t i = 0; i < bytes; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr(marks, text[i]))
			return false;
	return bytes > 0 && bytes < RUN_NAME_BYTES && text[0] != '-' &&
	       (!memchr(text, ':', bytes) || is_v6(text, bytes));
}

/* A word for a sentence: not too long, and nothing in it that a terminal obeys. */
struct quoted {
	char text[48];
};

static struct quoted quote(const char *word)
{
	struct quoted quoted = {{0}};
	size_t room = sizeof(quoted.text) - 3, i = 0;

	for (; i < room && word[i]; i++)
		quoted.text[i] = isprint((unsigned char)word[i]) ? word[i] : '?';
	if (word[i])
		memcpy(quoted.text + i, "..", 3);
	return quoted;
}

static bool is_here(const char *name)
{
	char own[RUN_NAME_BYTES] = "";

	gethostname(own, sizeof(own) - 1);
	return !strcmp(name, "localhost") || !strcmp(name, own);
}

/* A host that is named again has more slots. */
static bool host_add(
	struct run_args *args, const char *name, size_t bytes, uint32_t slots)
{
	struct run_host *host = NULL;

	for (uint32_t i = 0; i < args->host_count && !host; i++)
		if (strlen(args->hosts[i].name) == bytes &&
			!memcmp(args->hosts[i].name, name, bytes))
			host = &args->hosts[i];
	if (!host && args->host_count == RUN_HOSTS_MAX) {
		fprintf(stderr, "weft run: more than %d hosts\n", RUN_HOSTS_MAX);
		return false;
	}
	if (!host) {
		host = &args->hosts[args->host_count++];
		*host = (struct run_host){0};
		memcpy(host->name, name, bytes);
		host->is_here = is_here(host->name);
	}
	host->slots += slots;
	return true;
}

/* `name`, `name:4`, `[fd77::1]:4`; an address with colons alone has no slots behind it.
 */
static bool host_read(struct run_args *args, const char *word, const char *where)
{
	const char *colon = strrchr(word, ':');
	bool has_slots = colon &&
			 (word[0] == '[' ? colon[-1] == ']' : strchr(word, ':') == colon);
	size_t bytes = has_slots ? (size_t)(colon - word) : strlen(word);
	int64_t slots = 1;

	if (has_slots && !units_int(colon + 1, 1, RUN_RANKS_MAX, &slots)) {
		fprintf(stderr,
			"weft run: %s: '%s': give the ranks of a host as in name:4\n",
			where, quote(word).text);
		return false;
	}
	if (word[0] == '[' && bytes > 2 && word[bytes - 1] == ']') {
		word++;
		bytes -= 2;
	}
	if (!is_name(word, bytes)) {
		fprintf(stderr, "weft run: %s: '%s' is no name of a host\n", where,
			quote(word).text);
		return false;
	}
	return host_add(args, word, bytes, (uint32_t)slots);
}

static bool hosts_read(struct run_args *args, const char *text)
{
	char *copy = strdup(text), *rest = copy, *word;
	bool is_good = copy;

	while (is_good && (word = strsep(&rest, ",")))
		is_good = host_read(args, word, "--hosts");
	free(copy);
	return is_good;
}

/* mpirun's files may have them; a host is never given more than its slots here. */
static bool is_limit(const char *word)
{
	return !strncmp(word, "max_slots=", 10) || !strncmp(word, "max-slots=", 10);
}

/* `name`, `name:4`, `name slots=4`; # begins a comment. */
static bool line_read(struct run_args *args, char *line, const char *where)
{
	static const char blanks[] = " \t\r\n";
	char *name, *word, *rest = NULL, *slots = NULL, joined[RUN_NAME_BYTES + 32];

	line[strcspn(line, "#")] = '\0';
	name = strtok_r(line, blanks, &rest);
	if (!name)
		return true;
	while ((word = strtok_r(NULL, blanks, &rest))) {
		if (!slots && !strncmp(word, "slots=", 6)) {
			slots = word + 6;
		} else if (!is_limit(word)) {
			fprintf(stderr,
				"weft run: %s: '%s' behind '%s': a host is name, name:4 "
				"or name slots=4\n",
				where, quote(word).text, quote(name).text);
			return false;
		}
	}
	if (!slots)
		return host_read(args, name, where);
	if (!is_name(name, strlen(name)) || strlen(slots) > 16) {
		fprintf(stderr, "weft run: %s: '%s slots=%s': a host is name slots=4\n",
			where, quote(name).text, quote(slots).text);
		return false;
	}
	snprintf(joined, sizeof(joined), strchr(name, ':') ? "[%s]:%s" : "%s:%s", name,
		slots);
	return host_read(args, joined, where);
}

static bool lines_read(struct run_args *args, FILE *file, const char *path)
{
	char line[LINE_BYTES], where[PATH_MAX + 16];

	for (uint32_t number = 1; fgets(line, sizeof(line), file); number++) {
		snprintf(where, sizeof(where), "%s:%u", path, number);
		if (!*line || (!strchr(line, '\n') && !feof(file))) {
			fprintf(stderr,
				"weft run: %s: a line of more than %d bytes, or no text: "
				"give one host on each\n",
				where, LINE_BYTES - 2);
			return false;
		}
		if (!line_read(args, line, where))
			return false;
	}
	return true;
}

static bool hostfile_read(struct run_args *args, const char *path)
{
	FILE *file = fopen(path, "re");
	uint32_t before = args->host_count;
	bool is_good = true, is_readable = file;

	if (file) {
		is_good = lines_read(args, file, path);
		is_readable = !ferror(file);
	}
	if (!is_readable)
		fprintf(stderr, "weft run: cannot read %s: %m\n", path);
	else if (is_good && args->host_count == before)
		fprintf(stderr, "weft run: %s names no host: give one on each line\n",
			path);
	if (file)
		fclose(file);
	return is_good && is_readable && args->host_count > before;
}

/* ---- ranks ---- */

/* Fill one host after the other. */
static bool ranks_place(struct run_args *args)
{
	uint64_t slots = 0;
	uint32_t placed = 0, used = 0;

	if (!args->host_count) {
		uint32_t count = args->rank_count ? args->rank_count : 1;

		host_add(args, "localhost", strlen("localhost"), count);
	}
	for (uint32_t i = 0; i < args->host_count; i++)
		slots += args->hosts[i].slots;
	if (!args->rank_count && slots <= RUN_RANKS_MAX)
		args->rank_count = (uint32_t)slots;
	if (args->rank_count > slots || slots > RUN_RANKS_MAX) {
		fprintf(stderr,
			"weft run: %u ranks and the hosts have room for %llu: give more "
			"hosts, or more ranks to one as in name:8\n",
			args->rank_count, (unsigned long long)slots);
		return false;
	}
	for (; placed < args->rank_count; used++) {
		struct run_host *host = &args->hosts[used];
		uint32_t left = args->rank_count - placed;

		host->first_rank = placed;
		host->rank_count = host->slots < left ? host->slots : left;
		placed += host->rank_count;
	}
	args->host_count = used;
	return true;
}

/* ---- flags ---- */

static bool export_add(struct run_args *args, char *text)
{
	uint32_t count = 0;

	while (args->exports[count])
		count++;
	if (count == EXPORTS_MAX || !*text || *text == '=') {
		fprintf(stderr, "weft run: --env '%s': give NAME or NAME=VALUE\n", text);
		return false;
	}
	args->exports[count] = text;
	return true;
}

static bool parse_flag(struct run_args *args, int flag)
{
	int64_t number;

	switch (flag) {
	case 'n':
		if (!units_int(optarg, 1, RUN_RANKS_MAX, &number)) {
			fprintf(stderr,
				"weft run: -n '%s': give a number of ranks, 1 to %d\n",
				optarg, RUN_RANKS_MAX);
			return false;
		}
		args->rank_count = (uint32_t)number;
		return true;
	case FLAG_HOSTS:
		return hosts_read(args, optarg);
	case FLAG_HOSTFILE:
		return hostfile_read(args, optarg);
	case FLAG_AGENT:
		if (!optarg[strspn(optarg, " \t")]) {
			fprintf(stderr,
				"weft run: --agent '%s': give a command, as in "
				"--agent 'ssh -x'\n",
				optarg);
			return false;
		}
		args->agent = optarg;
		return true;
	case FLAG_PATH:
		args->path = optarg;
		return true;
	case 'x':
		return export_add(args, optarg);
	case FLAG_NO_PREFIX:
		args->is_plain = true;
		return true;
	default:
		args->wants_help = true;
		return true;
	}
}

bool run_args_parse(struct run_args *args, int argc, char **argv)
{
	int flag;

	/* a host that is cut off is no end of the connection until ssh has asked for it
	 */
	*args = (struct run_args){.agent = "ssh -x -o ServerAliveInterval=10"};
	args->hosts = calloc(RUN_HOSTS_MAX, sizeof(*args->hosts));
	args->exports = calloc(EXPORTS_MAX + 1, sizeof(*args->exports));
	if (!args->hosts || !args->exports) {
		fprintf(stderr, "weft run: no memory\n");
		return false;
	}
	option_start();
	while ((flag = option_next(&set, argc, argv)) != -1) {
		if (flag == '?' || flag == ':')
			return option_refuse(&set, flag, argv);
		if (!parse_flag(args, flag))
			return false;
		if (args->wants_help)
			return true;
	}
	args->argv = argv + optind;
	if (optind == argc) {
		fprintf(stderr, "weft run: which program? As in weft run -n 4 "
				"all_reduce_perf -b 8 -e 64M -f 2\n");
		return false;
	}
	return ranks_place(args);
}

void run_args_fini(struct run_args *args)
{
	free(args->hosts);
	free(args->exports);
	*args = (struct run_args){0};
}
