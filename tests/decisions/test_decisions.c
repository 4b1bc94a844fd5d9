/*
 * Do we decide what NCCL decides? Every recorded decision is computed again from its
 * machines and compared, area by area.
 *
 * usage: test_decisions [--self] [FOLDER BASE [NAME...]]
 *
 * FOLDER holds the decisions, BASE is what the files they name are relative to, NAMEs
 * keep the decisions whose name contains one of them. --self compares each record with
 * itself and with a broken copy: a test of the comparison.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compare.h"
#include "test.h"
#include "weft/graph_job.h"
#include "weft/graph_json.h"

enum { PATH_BYTES = 4096, XMLS_MAX = 64 };

struct session {
	const char *folder, *base;
	char **only; /* NULL-terminated */
	bool self;
	struct tally totals[AREA_COUNT];
	int decisions, whole, failed; /* compared; equal in all; could not be computed */
	int joined_badly;	      /* same graphs, other rings or trees */
};

static int number(const json_t *run, const char *name)
{
	return (int)json_integer_value(json_object_get(run, name));
}

/* The files of `run.xml`, split at commas, below the base folder. */
static int xml_paths(const struct session *session, const json_t *run, char **paths)
{
	const char *text = json_string_value(json_object_get(run, "xml"));
	char *copy = strdup(text ? text : ""), *rest = copy;
	int count = 0;

	for (char *word; count < XMLS_MAX && (word = strsep(&rest, ", "));)
		if (*word && asprintf(&paths[count], "%s/%s", session->base, word) > 0)
			count++;
	free(copy);
	return count;
}

static json_t *decide_again(const struct session *session, const json_t *run)
{
	char *paths[XMLS_MAX] = {0};
	int count = xml_paths(session, run, paths);
	json_t *got = NULL;
	struct graph_job job;

	graph_job_init(&job);
	job.args.host_count = (uint32_t)number(run, "machines");
	job.args.mnnvl_hosts = (uint32_t)number(run, "mnnvlHostsPerDomain");
	job.args.collnet = number(run, "collnet");
	job.args.rules.merge_nics = number(run, "vnicMerge");
	job.args.rules.nvml_p2p_ok = number(run, "nvmlP2p");
	TRUE(nccl_rules_named(
		json_string_value(json_object_get(run, "nccl")), &job.args.rules.nccl));
	if (!graph_job_load(&job, count, paths)) {
		job.args.has_multicast = number(run, "multicast");
		if (!graph_job_run(&job))
			got = graph_json(&job);
	}
	graph_job_fini(&job);
	for (int i = 0; i < count; i++)
		free(paths[i]);
	return got;
}

static bool is_wanted(const struct session *session, const char *name)
{
	if (!*session->only)
		return true;
	for (char **only = session->only; *only; only++)
		if (strstr(name, *only))
			return true;
	return false;
}

static void print_head(void)
{
	printf("%-52s", "decision");
	for (int a = 0; a < AREA_COUNT; a++)
		printf(" %9s", area_name((enum area)a));
	printf("\n");
}

/* Equal items; and of how many, where not all are. */
static void print_row(const char *name, const struct tally *tallies)
{
	printf("%-52s", name);
	for (int a = 0; a < AREA_COUNT; a++) {
		char text[32];

		if (tallies[a].different)
			snprintf(text, sizeof(text), "%ld/%ld", tallies[a].equal,
				tallies[a].equal + tallies[a].different);
		else
			snprintf(text, sizeof(text), "%ld", tallies[a].equal);
		printf(" %9s", text);
	}
	printf("\n");
}

static void add_up(struct session *session, const struct tally *tallies)
{
	bool is_whole = true;

	for (int a = 0; a < AREA_COUNT; a++) {
		session->totals[a].equal += tallies[a].equal;
		session->totals[a].different += tallies[a].different;
		is_whole = is_whole && !tallies[a].different;
	}
	session->decisions++;
	session->whole += is_whole;
	if (!tallies[AREA_GRAPHS].different && !tallies[AREA_ORDERS].different &&
		(tallies[AREA_RINGS].different || tallies[AREA_TREES].different ||
			tallies[AREA_EDGES].different))
		session->joined_badly++;
}

/* The record against itself is equal; against a copy with one ring and one number of the
 * model changed it differs in just these. */
static void compare_self(const json_t *wanted, const char *name)
{
	struct comparison clean = {.name = name}, broken = {.name = NULL};
	json_t *copy = json_deep_copy(wanted), *cell;

	compare_decisions(wanted, copy, &clean);
	for (int a = 0; a < AREA_COUNT; a++)
		EQ(clean.tallies[a].different, 0);
	TRUE(clean.tallies[AREA_PATHS].equal > 0 && clean.tallies[AREA_MODEL].equal > 0);
	json_object_del(json_array_get(json_object_get(copy, "channels"), 0), "ringPrev");
	cell = json_object_get(
		json_object_get(
			json_object_get(json_object_get(copy, "tuning"), "AllReduce"),
			"Ring"),
		"LL");
	json_object_set_new(cell, "lat", json_real(-1));
	compare_decisions(wanted, copy, &broken);
	for (int a = 0; a < AREA_COUNT; a++)
		EQ(broken.tallies[a].different, a == AREA_RINGS || a == AREA_MODEL);
	json_decref(copy);
}

static void compare_file(struct session *session, const char *file)
{
	struct comparison comparison = {0};
	char path[PATH_BYTES], name[PATH_BYTES];
	json_t *wanted, *got;
	json_error_t error;

	snprintf(name, sizeof(name), "%.*s", (int)(strlen(file) - strlen(".json")), file);
	snprintf(path, sizeof(path), "%s/%s", session->folder, file);
	wanted = json_load_file(path, 0, &error);
	if (!wanted) {
		printf("%s: %s\n", path, error.text);
		session->failed++;
		return;
	}
	if (session->self) {
		compare_self(wanted, name);
		session->decisions++;
		json_decref(wanted);
		return;
	}
	comparison.name = name;
	got = decide_again(session, json_object_get(wanted, "run"));
	if (got) {
		compare_decisions(wanted, got, &comparison);
		print_row(name, comparison.tallies);
		add_up(session, comparison.tallies);
	} else {
		printf("%-52s could not be decided: %s\n", name, err_last());
		session->failed++;
	}
	fflush(stdout);
	json_decref(got);
	json_decref(wanted);
}

static int is_json(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name);

	return length > 5 && !strcmp(entry->d_name + length - 5, ".json");
}

static bool summary(const struct session *session)
{
	bool good = !session->failed;

	printf("\n%-10s %10s %10s %9s\n", "area", "equal", "different", "per cent");
	for (int a = 0; a < AREA_COUNT; a++) {
		const struct tally *tally = &session->totals[a];
		long all = tally->equal + tally->different;
		double share = all ? 100.0 * (double)tally->equal / (double)all : 100;

		printf("%-10s %10ld %10ld %9.3f\n", area_name((enum area)a), tally->equal,
			tally->different, share);
		good = good && !tally->different;
	}
	printf("%d decisions, %d equal in everything, %d with the same graphs joined "
	       "otherwise, %d not decided\n",
		session->decisions, session->whole, session->joined_badly,
		session->failed);
	return good;
}

int main(int argc, char **argv)
{
	static char folder[PATH_BYTES];
	struct session session = {.folder = folder};
	const char *data = getenv("WEFT_DATA");
	struct dirent **entries;
	int count;

	if (argc > 1 && !strcmp(argv[1], "--self")) {
		session.self = true;
		argc--, argv++;
	}
	session.base = data && *data ? data : WEFT_SHARED_DATA;
	snprintf(folder, sizeof(folder), "%s/nccl-decisions", session.base);
	if (argc > 2) {
		session.folder = argv[1];
		session.base = argv[2];
	}
	session.only = argc > 2 ? argv + 3 : argv + argc;
	count = scandir(session.folder, &entries, is_json, alphasort);
	if (count <= 0) {
		printf("no decisions in %s; skipped\n", session.folder);
		return TEST_SKIP;
	}
	print_head();
	for (int i = 0; i < count; i++) {
		if (is_wanted(&session, entries[i]->d_name))
			compare_file(&session, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	if (session.self)
		return session.failed || !session.decisions;
	return summary(&session) ? 0 : 1;
}
