/* weft run's command line: ranks fill hosts in order, and names that are none are
 * refused. */
#include "weft/run_args.h"

#include <stdlib.h>
#include <unistd.h>

#include "test.h"
#include "weft/run_bytes.h"
#include "weft/run_wire.h"

enum { WORDS_MAX = 16 };

static bool parse(struct run_args *args, const char *line)
{
	static char copy[512];
	static char *words[WORDS_MAX + 1];
	int count = 0;
	char *rest = NULL;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *word = strtok_r(copy, " ", &rest); word && count < WORDS_MAX;
		word = strtok_r(NULL, " ", &rest))
		words[count++] = word;
	words[count] = NULL;
	return run_args_parse(args, count, words);
}

static void good(const char *line, uint32_t ranks, uint32_t hosts)
{
	struct run_args args;

	if (!parse(&args, line))
		EQ_STR(line, "taken");
	EQ(args.rank_count, ranks);
	EQ(args.host_count, hosts);
	for (uint32_t i = 0, rank = 0; i < hosts; i++) {
		EQ(args.hosts[i].first_rank, rank);
		rank += args.hosts[i].rank_count;
		EQ(i + 1 < hosts || rank == ranks, 1);
	}
	run_args_fini(&args);
}

static void bad(const char *line)
{
	struct run_args args;

	if (parse(&args, line))
		EQ_STR(line, "refused");
	run_args_fini(&args);
}

static void test_words(void)
{
	struct run_args args;

	/* what follows the program is its own */
	TRUE(parse(&args, "run -n 2 prog -n 5 --hosts x --help"));
	EQ(args.rank_count, 2);
	EQ_STR(args.argv[0], "prog");
	EQ_STR(args.argv[1], "-n");
	TRUE(!args.wants_help);
	TRUE(args.hosts[0].is_here);
	run_args_fini(&args);
	TRUE(parse(&args, "run --hosts [fd77::1]:3,b -x A=1 --env B prog"));
	EQ_STR(args.hosts[0].name, "fd77::1");
	EQ(args.hosts[0].rank_count, 3);
	EQ_STR(args.exports[0], "A=1");
	EQ_STR(args.exports[1], "B");
	TRUE(!args.hosts[1].is_here);
	run_args_fini(&args);
}

/* What a hostfile with this text comes to: so many ranks, or a sentence with this part.
 */
static void hostfile(const char *text, uint32_t ranks, const char *part)
{
	char path[] = "/tmp/weft-hostfile.XXXXXX", line[64], said[1024] = "";
	int fd = mkstemp(path), pipes[2], before = dup(STDERR_FILENO);
	struct run_args args;
	bool is_good;

	TRUE(fd >= 0 && before >= 0 && !pipe(pipes));
	EQ(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	snprintf(line, sizeof(line), "run --hostfile %s prog", path);
	fflush(stderr);
	EQ(dup2(pipes[1], STDERR_FILENO), STDERR_FILENO);
	is_good = parse(&args, line);
	fflush(stderr);
	EQ(dup2(before, STDERR_FILENO), STDERR_FILENO);
	close(before);
	close(pipes[1]);
	TRUE(read(pipes[0], said, sizeof(said) - 1) >= 0);
	close(pipes[0]);
	EQ(is_good, !part);
	if (is_good)
		EQ(args.rank_count, ranks);
	else if (!strstr(said, part))
		EQ_STR(said, part);
	for (const char *at = said; *at; at++)
		TRUE(*at == '\n' || (*at >= ' ' && *at <= '~'));
	run_args_fini(&args);
	unlink(path);
}

static void test_hostfiles(void)
{
	static char endless[5000];

	memset(endless, 'a', sizeof(endless) - 1);
	hostfile("# mine\n\na slots=2 max_slots=4\nfd77::1 slots=3\r\n[fd77::2]:1 # x\nb",
		7, NULL);
	hostfile("a\nb slots=2 what\n", 0, ":2: 'what' behind 'b': a host is name,");
	hostfile("a slots=1 slots=2\n", 0, ":1: 'slots=2' behind 'a'");
	hostfile("a 4\n", 0, ":1: '4' behind 'a'");
	hostfile("a:1 slots=2\n", 0, ":1: 'a:1 slots=2': a host is name slots=4");
	hostfile("a slots=x\n", 0, "give the ranks of a host as in name:4");
	hostfile("a\n\033]0;evil\007\n", 0, ":2: '?]0;evil?' is no name of a host");
	hostfile(endless, 0, ":1: a line of more than");
	hostfile("# none\n", 0, "names no host");
}

/* A job survives its way; bytes that were cut off do not become one. */
static void test_wire(void)
{
	char *settings[] = {(char[]){"A=1"}, (char[]){"B="}, NULL};
	char *argv[] = {(char[]){"prog"}, (char[]){""}, (char[]){"x y"}, NULL};
	struct run_job job = {.rank_count = 8,
		.first_rank = 4,
		.host_ranks = 4,
		.host = 1,
		.host_count = 2,
		.folder = "/tmp",
		.settings = settings,
		.argv = argv};
	struct run_bytes bytes = {0};
	struct run_job again = {0};

	run_job_pack(&job, &bytes);
	TRUE(run_job_unpack(&bytes, &again));
	EQ(again.first_rank, 4);
	EQ_STR(again.folder, "/tmp");
	EQ_STR(again.settings[1], "B=");
	EQ_STR(again.argv[2], "x y");
	EQ(again.argv[3] == NULL, 1);
	free(again.settings);
	free(again.argv);
	for (size_t cut = 0; cut < bytes.count; cut++) {
		struct run_bytes part = {0};

		run_bytes_add(&part, bytes.data, cut);
		again = (struct run_job){0};
		TRUE(!run_job_unpack(&part, &again));
		free(again.settings);
		free(again.argv);
		run_bytes_fini(&part);
	}
	run_bytes_fini(&bytes);
}

int main(void)
{
	if (!freopen("/dev/null", "w", stderr))
		return 1;
	good("run prog", 1, 1);
	good("run -n 8 prog", 8, 1);
	good("run --hosts a:4,b:4 prog", 8, 2);
	good("run -n 5 --hosts a:4,b:4 prog", 5, 2);
	good("run -n 4 --hosts a:4,b:4 prog", 4, 1);
	good("run --hosts a,b,a prog", 3, 2); /* named again: one more */
	bad("run");
	bad("run -n 3");
	bad("run -n x prog");
	bad("run -n 0 prog");
	bad("run -n 9 --hosts a:4,b:4 prog");
	bad("run --hosts a:0 prog");
	bad("run --hosts a:x prog");
	bad("run --hosts a,,b prog");
	bad("run --hosts a$(x) prog");
	bad("run --hosts=-oProxyCommand=x prog");
	bad("run --hosts a:99999 prog");
	bad("run --hosts a:1:2 prog");
	bad("run --hosts [a]:2 --hosts a:b prog");
	bad("run --hostfile /nonexistent prog");
	bad("run --hostfile /tmp prog");
	bad("run --agent= prog");
	bad("run --nothing prog");
	bad("run --env =x prog");
	test_words();
	test_hostfiles();
	test_wire();
	return 0;
}
