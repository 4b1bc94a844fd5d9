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
static int check_case(struct harvest *harvest, const char *name, const char *wanted)
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
	if (!strcmp(found, wanted))
		return 0;
	fprintf(stderr, "%s:\n  found  %s\n  wanted %s\n", name, found, wanted);
	return 1;
}

static int check_cases(void)
{
	FILE *file = fopen(WEFT_TEST_DOCTOR "/cases.txt", "r");
	char text[TEXT_BYTES], name[TEXT_BYTES] = "", wanted[TEXT_BYTES] = "";
	struct harvest harvest;
	uint64_t number = 0;
	int bad = 0, count = 0;

	TRUE(file);
	while (fgets(text, sizeof(text), file)) {
		size_t bytes = strcspn(text, "\n");
		struct line line = {text, bytes, ++number};

		text[bytes] = 0;
		if (strncmp(text, "@@ ", 3) != 0) {
			if (count)
				harvest_line(&harvest, &line);
			continue;
		}
		if (count++)
			bad += check_case(&harvest, name, wanted);
		EQ(harvest_init(&harvest), OK);
		EQ(jobs_file(&harvest.jobs, "cases.txt"), OK);
		snprintf(wanted, sizeof(wanted), "%s", strstr(text, " | ") + 3);
		*strstr(text, " | ") = 0;
		snprintf(name, sizeof(name), "%s", text + 3);
	}
	fclose(file);
	bad += check_case(&harvest, name, wanted);
	TRUE(count > 60);
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
	int bad = check_cases();

	check_catalogue();
	for (int i = 0; i < FIND_LIVE_GPU; i++)
		if (!shown[i] && i != FIND_BELOW_EXPECTATION) {
			fprintf(stderr, "no case shows %s\n",
				catalogue_info((enum finding_id)i)->name);
			bad++;
		}
	return bad > 0;
}
