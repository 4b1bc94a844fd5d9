/* Manifests: whatever is read is checked, and what --fix makes of it is read again, has
 * no more mistakes of form, and is not corrected once more. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "weft/k8s/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static const struct check_options options = {
	.machine = "p4d.24xlarge", .trainer_version = TRAINER_NEWEST};

static void check_places(const struct check_result *result)
{
	for (uint32_t i = 0; i < result->findings.count; i++) {
		const struct finding *one = &result->findings.list[i];

		assert(one->line >= 1 && one->line <= result->file.line_count + 1);
		assert(one->column >= 1);
		for (uint32_t j = 0; j < one->edit_count; j++) {
			assert(one->edits[j].start <= one->edits[j].end);
			assert(one->edits[j].end <= result->file.bytes);
		}
	}
}

static void fix(const struct check_result *result)
{
	struct doc_file again = {0};
	uint32_t fixed;
	char *text = check_fix(&options, result, &fixed);
	char *diff;

	assert(!text == (result->file.fault_count > 0));
	if (!text)
		return;
	diff = edit_diff("fuzz", result->file.text, text);
	assert(diff);
	assert(!fixed == !strcmp(text, result->file.text));
	free(diff);
	assert(!doc_parse("again", text, strlen(text), &again) && !again.fault_count);
	doc_free(&again);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct check_result result = {0};

	if (!doc_parse("fuzz", (const char *)data, bytes, &result.file)) {
		check_file(&options, &result);
		check_places(&result);
		fix(&result);
	}
	check_result_free(&result);
	return 0;
}
