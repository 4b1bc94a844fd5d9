/* Any bytes are a log: it is read and diagnosed, and drawn. */
#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "weft/doctor/diagnose.h"
#include "weft/doctor/harvest.h"
#include "weft/doctor/log_view.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* The words to look for are the same for all inputs, and take longest to prepare. */
static bool begin(struct harvest *harvest)
{
	if (!harvest->words)
		return !harvest_init(harvest);
	if (jobs_init(&harvest->jobs))
		return false;
	harvest->facts = harvest->jobs.facts[0];
	harvest->is_hooked = false;
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct diagnosis diagnosis;
	static struct log_view view;
	static struct harvest harvest;
	static char picture[1 << 20];
	FILE *drawn = fmemopen(picture, sizeof(picture), "w");
	const char *text = (const char *)data, *end = text + bytes;
	uint64_t number = 0;

	if (!drawn || !begin(&harvest) || jobs_file(&harvest.jobs, "fuzz"))
		return 0;
	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		size_t length = (size_t)((newline ? newline : end) - text);
		struct line line = {text, length, ++number};

		harvest_line(&harvest, &line);
		text += length + 1;
	}
	harvest_end(&harvest);
	assert(harvest.jobs.count >= 1 && harvest.jobs.count <= JOBS_MAX);
	for (uint32_t job = 0; job < harvest.jobs.count; job++) {
		diagnose(harvest.jobs.facts[job], &diagnosis);
		assert(diagnosis.count <= FINDINGS_MAX);
		for (uint32_t i = 0; i < diagnosis.count; i++) {
			assert(diagnosis.findings[i].id < FIND_COUNT);
			assert(diagnosis.findings[i].evidence.line <= number);
		}
		log_view_make(harvest.jobs.facts[job], &view);
		assert(view.cells <= LOG_VIEW_CELLS);
		log_view_print(drawn, harvest.jobs.facts[job], &view);
		log_view_svg(drawn, harvest.jobs.facts[job], &view);
	}
	fclose(drawn);
	jobs_fini(&harvest.jobs);
	return 0;
}
