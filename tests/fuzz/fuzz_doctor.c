/* Any bytes are a log: it is read and diagnosed, and drawn. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "weft/doctor/diagnose.h"
#include "weft/doctor/harvest.h"
#include "weft/doctor/log_view.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct diagnosis diagnosis;
	static struct log_view view;
	struct harvest harvest;
	const char *text = (const char *)data, *end = text + bytes;
	uint64_t number = 0;

	if (harvest_init(&harvest) || jobs_file(&harvest.jobs, "fuzz"))
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
	}
	harvest_fini(&harvest);
	return 0;
}
