/*
 * Every case of tests/doctor/cases.txt is diagnosed as it says; every entry of the
 * catalogue that a log can show is in a case, and has its words.
 */
#include <unistd.h>

#include "test.h"
#include "weft/doctor/diagnose.h"
#include "weft/doctor/harvest.h"

#ifndef WEFT_TEST_DOCTOR
#define WEFT_TEST_DOCTOR "."
#endif

enum { TEXT_BYTES = 4096 };

static bool shown[FIND_COUNT];

static void describe(const struct diagnosis *diagnosis, char *text)
{
	size_t used = 0;

	text[0] = 0;
	for (uint32_t i = 0; i < diagnosis->count; i++) {
		const struct finding *finding = &diagnosis->findings[i];

		shown[finding->id] = true;
		used += (size_t)snprintf(text + used, TEXT_BYTES - used, "%s%s %s",
			i ? ", " : "", severity_name(finding->severity),
			catalogue_info(finding->id)->name);
	}
	if (!diagnosis->count)
		snprintf(text, TEXT_BYTES, "nothing");
}

/* The findings of each job, with " / " between. */
static int check_case(
	struct harvest *harvest, const char *name, const char *wanted, bool is_any)
{
	static struct diagnosis diagnosis;
	char found[TEXT_BYTES] = "";

	harvest_end(harvest);
	for (uint32_t i = 0; i < harvest->jobs.count; i++) {
		char one[TEXT_BYTES];

		diagnose(harvest->jobs.facts[i], &diagnosis);
		describe(&diagnosis, one);
		TRUE(strlen(found) + strlen(one) + 4 < sizeof(found));
		strcat(strcat(found, i ? " / " : ""), one);
	}
	harvest_fini(harvest);
	/* marks with a time of their own hide which of two came first */
	if (!strcmp(found, wanted) || (is_any && strlen(found) == strlen(wanted)))
		return 0;
	fprintf(stderr, "%s:\n  found  %s\n  wanted %s\n", name, found, wanted);
	return 1;
}

/* What launchers, collectors and terminals put around each line. */
static const struct mark {
	const char *before, *after;
	bool has_time;
} marks[] = {{"", "", false}, {"[1,3]<stdout>:", "", false}, {"3: ", "", false},
	{"[rank3]:", "", false}, {"[default3]:", "", false}, {"train-0 main ", "", false},
	{"worker-1  | ", "", false}, {"2026-01-02T03:04:05.123456789Z ", "", true},
	{"2026-01-02T03:04:05.123456789Z stdout F ", "", true},
	{"(EngineCore_0 pid=1) ", "", false},
	{"Nov 16 12:00:01 node7 kubelet[812]: ", "", false},
	{"\033[36m(RayWorkerWrapper pid=9)\033[0m ", "", false},
	{"10.0.0.3: 10.0.0.3: ", "", false}, {"[2026-01-02 03:04:05,123] ", "", true},
	{"| 2026-01-02T03:04:05.222-07:00 | ", "", true}, {"", "\r", false},
	{"{\"log\":\"", "\\n\",\"stream\":\"stdout\",\"time\":\"2026-01-02T03:04:05Z\"}",
		true}};

enum { MARKS = sizeof(marks) / sizeof(marks[0]) };

/* A line of NCCL torn open by the beginning of another one of the same process. */
static void tear(const char *text, char *out)
{
	const char *mark = strstr(text, " NCCL INFO ");
	size_t own = mark ? (size_t)(mark - text) : 0;

	/* only where nothing stands before the host, and not a process's first words */
	if (!mark || strstr(text, " Bootstrap") || strcspn(text, " ") >= own ||
		!strchr(text, ':') ||
		strspn(text, "abcdefghijklmnopqrstuvwxyz-0123456789") !=
			strcspn(text, ":"))
		snprintf(out, 2 * TEXT_BYTES, "%s", text);
	else
		snprintf(out, 2 * TEXT_BYTES, "%.*s NCCL INFO Connected all ri%s",
			(int)own, text, text);
}

/* Every case as it stands, behind each mark, and torn (which == MARKS). */
static int check_cases(int which)
{
	FILE *file = fopen(WEFT_TEST_DOCTOR "/cases.txt", "r");
	char text[TEXT_BYTES], name[TEXT_BYTES + 16] = "", wanted[TEXT_BYTES] = "";
	static char marked[2 * TEXT_BYTES];
	struct harvest harvest;
	uint64_t number = 0;
	int bad = 0, count = 0;
	bool has_time = false;

	TRUE(file);
	while (fgets(text, sizeof(text), file)) {
		struct line line = {marked, 0, ++number};

		text[strcspn(text, "\n")] = 0;
		if (strncmp(text, "@@ ", 3) != 0) {
			if (which == MARKS)
				tear(text, marked);
			else
				snprintf(marked, sizeof(marked), "%s%s%s",
					marks[which].before, text, marks[which].after);
			line.bytes = strlen(marked);
			has_time = has_time || strstr(text, "[20");
			if (count)
				harvest_line(&harvest, &line);
			continue;
		}
		if (count++)
			bad += check_case(&harvest, name, wanted,
				which < MARKS && marks[which].has_time && has_time);
		has_time = false;
		EQ(harvest_init(&harvest), OK);
		EQ(jobs_file(&harvest.jobs, "cases.txt"), OK);
		snprintf(wanted, sizeof(wanted), "%s", strstr(text, " | ") + 3);
		*strstr(text, " | ") = 0;
		snprintf(name, sizeof(name), "%s%s", text + 3,
			which == MARKS ? " (torn)"
			: which	       ? " (marked)"
				       : "");
	}
	fclose(file);
	bad += check_case(&harvest, name, wanted, false);
	TRUE(count > 100);
	if (bad)
		fprintf(stderr, "%d of %d with '%s'\n\n", bad, count,
			which < MARKS ? marks[which].before : "torn lines");
	return bad;
}

/* Two sentences, a remedy, a name of its own. */
static void check_catalogue(void)
{
	for (int i = 0; i < FIND_COUNT; i++) {
		const struct finding_info *info = catalogue_info((enum finding_id)i);

		TRUE(info->name && info->name[0]);
		TRUE(info->title && info->explanation && info->remedy);
		TRUE(strstr(info->explanation, ". ") != NULL);
		for (int k = 0; k < i && i < FIND_LIVE_GPU; k++)
			TRUE(strcmp(info->name,
				     catalogue_info((enum finding_id)k)->name) != 0);
	}
}

int main(void)
{
	int bad = 0;

	for (int i = 0; i <= MARKS; i++)
		bad += check_cases(i);

	check_catalogue();
	for (int i = 0; i < FIND_LIVE_GPU; i++)
		if (!shown[i] && i != FIND_BELOW_EXPECTATION) {
			fprintf(stderr, "no case shows %s\n",
				catalogue_info((enum finding_id)i)->name);
			bad++;
		}
	return bad > 0;
}
