/* A config.json or a table of runs that is taken can be answered: parameters, memory and
 * times are finite and above zero. The first byte says which of the two it is. */
#include <assert.h>
#include <math.h>

#include "train/cases.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void config_try(const char *text, size_t bytes)
{
	static const struct memory_habit plain = {1, 0};
	struct train_memory memory;
	struct train_layout layout;
	struct train_model model;

	if (model_config_parse(text, bytes, "fuzz", &model))
		return;
	assert(isfinite(model_params(&model)) && model_params(&model) > 0);
	assert(isfinite(model_flops(&model, 4096)) && model_flops(&model, 4096) > 0);
	layout_default(8, &layout);
	if (layout_complete(&layout) || layout_check(&model, &layout))
		return;
	memory_make(&model, &layout, &plain, &memory);
	assert(isfinite(memory.total) && memory.total > 0);
}

static void cases_try(const char *text, size_t bytes)
{
	static struct train_calib calib;
	struct train_cases cases;

	if (train_cases_parse(text, bytes, "fuzz", &cases))
		return;
	calib_load(&calib);
	for (uint32_t i = 0; i < cases.count; i++) {
		struct calib_answer answer;
		double seconds;

		calib_ask(&calib, &cases.cases[i].who, &answer);
		seconds = step_seconds(&cases.cases[i].work, &answer.params);
		assert(isfinite(seconds) && seconds > 0);
	}
	train_cases_free(&cases);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	if (bytes && *data == '{')
		config_try((const char *)data, bytes);
	else
		cases_try((const char *)data, bytes);
	return 0;
}
