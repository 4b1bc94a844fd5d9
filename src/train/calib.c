#include "train/calib.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	double start;
} starts[TRAIN_PARAMS] = {
	[PARAM_SHARE] = {"share", .8},
	[PARAM_HALF] = {"half", 150},
	[PARAM_ATTENTION] = {"attention", 1},
	[PARAM_POINT] = {"point", 1.2},
	[PARAM_SCORE] = {"score", 8},
	[PARAM_UNALIGNED] = {"unaligned", 8},
	[PARAM_TP] = {"tp", .7},
	[PARAM_EP] = {"ep", .8},
	[PARAM_EP_FAR] = {"ep_far", .8},
	[PARAM_CP] = {"cp", .3},
	[PARAM_HOP] = {"hop", .5},
	[PARAM_HIDE] = {"hide", 2},
	[PARAM_LAUNCH] = {"launch_us", 20},
	[PARAM_FIXED] = {"fixed_ms", 20},
	[PARAM_CROWD] = {"crowd_percent", .5},
	[PARAM_DP] = {"dp", 1},
	[PARAM_MOE] = {"moe", .6},
	[PARAM_ROUTE] = {"route_us", 2200},
};

const char *calib_param_name(enum train_param param)
{
	return starts[param].name;
}

void calib_default(struct train_params *params)
{
	for (int i = 0; i < TRAIN_PARAMS; i++)
		params->value[i] = starts[i].start;
}

void calib_load(struct train_calib *calib)
{
	calib->count = 0;
	for (uint32_t i = 0; i < calib_table_count && i < CALIB_ROWS_MAX; i++)
		calib->rows[calib->count++] = calib_table[i];
}

const char *stack_family(const char *stack)
{
	static const struct {
		const char *word, *family;
	} words[] = {
		{"mlperf", "nvidia"},
		{"nemo", "nvidia"},
		{"megatron-bridge", "nvidia"},
		{"megatron-lm-readme-h100", "nvidia"},
		{"megascale", "nvidia"},
		{"megatron", "megatron"},
		{"llm-foundry", "fsdp"},
		{"torchtitan", "fsdp"},
		{"fms-fsdp", "fsdp"},
		{"kempnerforge", "fsdp"},
		{"deepspeed-2021", "deepspeed"},
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(stack, words[i].word))
			return words[i].family;
	return "";
}

enum train_kernel stack_kernel(const char *stack)
{
	if (!strcmp(stack, "llm-foundry"))
		return KERNEL_FLASH1;
	if (!strcmp(stack_family(stack), "fsdp") || !strncmp(stack, "megascale", 9))
		return KERNEL_FLASH2;
	return KERNEL_VENDOR;
}

void calib_key(
	const struct calib_who *who, enum calib_level level, char key[CALIB_KEY_BYTES])
{
	const char *precision = precision_name(who->precision);
	const char *kind = who->is_moe ? " moe" : "";

	switch (level) {
	case LEVEL_ALL:
		key[0] = 0;
		break;
	case LEVEL_GPU:
		snprintf(key, CALIB_KEY_BYTES, "%.20s %s", who->gpu->kind, precision);
		break;
	case LEVEL_FAMILY:
		snprintf(key, CALIB_KEY_BYTES, "%s%s", stack_family(who->stack), kind);
		break;
	case LEVEL_STACK:
		snprintf(key, CALIB_KEY_BYTES, "%.40s%s", who->stack, kind);
		break;
	default:
		snprintf(key, CALIB_KEY_BYTES, "%.30s %.12s %s%s", who->stack,
			who->gpu->kind, precision, kind);
	}
}

int calib_row_find(
	const struct train_calib *calib, enum calib_level level, const char *key)
{
	for (uint32_t i = 0; i < calib->count; i++)
		if (calib->rows[i].level == level && !strcmp(calib->rows[i].key, key))
			return (int)i;
	return -1;
}

void calib_ask(const struct train_calib *calib, const struct calib_who *who,
	struct calib_answer *answer)
{
	*answer = (struct calib_answer){.habit = {1.1, 4e9}, .spread = .4};
	calib_default(&answer->params);
	for (int level = 0; level < LEVELS; level++) {
		char key[CALIB_KEY_BYTES];
		const struct calib_row *row;
		int found;

		calib_key(who, (enum calib_level)level, key);
		found = calib_row_find(calib, (enum calib_level)level, key);
		if (found < 0)
			continue;
		row = &calib->rows[found];
		for (int i = 0; i < TRAIN_PARAMS; i++)
			answer->params.value[i] = level == LEVEL_ALL
							  ? row->value[i]
							  : answer->params.value[i] *
								    row->value[i];
		if (row->spread > 0)
			answer->spread = row->spread;
		if (row->memory_factor > 0)
			answer->habit = (struct memory_habit){
				row->memory_factor, row->memory_base_gb * 1e9};
		answer->rows = row->rows;
		answer->sources = row->sources;
		answer->level = (enum calib_level)level;
	}
}
