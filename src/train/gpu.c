/* Peaks and memory are those of NVIDIA's data sheets, without sparsity. Ceilings are the
 * best products measured on them (ml-engineering's table of achievable FLOPS: A100 271 of
 * 312, H100 795 of 989, B200 1745 of 2250, GB200 1822 of 2500); of 8 and 4 bits the same
 * share less what quantising costs; Hopper has no scales by row or block of its own, so
 * such products are little faster there than 16 bits. */
#include "train/gpu.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "topo/instance.h"

#define SHEET "data sheet; ceiling: measured products of the ml-engineering table"
#define KIN   "data sheet; ceiling: taken from its kin, not measured"

#define AMPERE                                                                           \
	{                                                                                \
		.869, .869, .869, .869                                                   \
	}
#define HOPPER                                                                           \
	{                                                                                \
		.803, .72, .5, .6                                                        \
	}
/* Less power is a lower clock: at 500 W of 700 about 0.85 of it. */
#define HOPPER_500W                                                                      \
	{                                                                                \
		.683, .612, .425, .51                                                    \
	}
#define BLACKWELL                                                                        \
	{                                                                                \
		.776, .7, .66, .5                                                        \
	}

static const struct train_gpu gpus[] = {
	{"A100-40GB", "dgx-a100", "a100", {312}, 42.4, 1555, AMPERE, 24, SHEET},
	{"A100-80GB", "dgx-a100", "a100", {312}, 85.1, 2039, AMPERE, 24, SHEET},
	{"H100", "dgx-h100", "h100", {989, 1979, 1979}, 85.0, 3350, HOPPER, 50, SHEET},
	{"H100-96-500W", "dgx-h100", "h100-500w", {989, 1979, 1979}, 99.9, 2400,
		HOPPER_500W, 50, KIN},
	{"H200", "dgx-h100", "h200", {989, 1979, 1979}, 150.7, 4800, HOPPER, 50, KIN},
	{"B200", "dgx-b200", "b200", {2250, 4500, 4500, 9000}, 191.5, 8000, BLACKWELL, 50,
		SHEET},
	{"B300", "dgx-b200-800g", "b300", {2250, 4500, 4500, 13500}, 288, 8000, BLACKWELL,
		100, KIN},
	{"GB200", "p6e-gb200.36xlarge", "gb200", {2500, 5000, 5000, 10000}, 197.8, 8000,
		BLACKWELL, 180, SHEET},
	{"GB300", "p6e-gb200.36xlarge", "gb300", {2500, 5000, 5000, 15000}, 298, 8000,
		BLACKWELL, 180, KIN},
	{"V100", "dgx-1v", "v100", {125}, 34.1, 900, {.8, .8, .8, .8}, 12, KIN},
	{"A10G", "g5.48xlarge", "a10g", {70}, 24.1, 600, {.8, .8, .8, .8}, 24, KIN},
	{"L4", "g6.48xlarge", "l4", {121, 242, 242}, 24.1, 300, {.6, .6, .6, .6}, 24,
		KIN},
	{"L40S", "g6e.48xlarge", "l40s", {362, 733, 733}, 48.3, 864, {.7, .7, .7, .7}, 24,
		KIN},
	{"RTX PRO 6000", "g7e.48xlarge", "rtxpro", {252, 504, 504, 1008}, 102, 1597,
		{.8, .75, .7, .6}, 50, KIN},
	{"T4", "g4dn.metal", "t4", {65}, 16.1, 320, {.5, .5, .5, .5}, 12, KIN},
};
enum { GPU_COUNT = sizeof(gpus) / sizeof(gpus[0]) };

/* Other words for the same. */
static const struct {
	const char *word, *name;
} words[] = {
	{"A100-40", "A100-40GB"},
	{"A100-40-p4d", "A100-40GB"},
	{"A100-80", "A100-80GB"},
	{"A100", "A100-80GB"},
	{"H100-80", "H100"},
	{"H100-p5", "H100"},
	{"H100-95-lowTDP", "H100-96-500W"},
	{"H200-141", "H200"},
};

const struct train_gpu *gpu_named(const char *name)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcasecmp(name, words[i].word))
			name = words[i].name;
	for (int i = 0; i < GPU_COUNT; i++)
		if (!strcasecmp(name, gpus[i].name))
			return &gpus[i];
	return NULL;
}

/* The first GPU whose name the summary has: "8 x H100, NVSwitch, ..". */
static const struct train_gpu *in_summary(const char *summary)
{
	for (int i = 0; i < GPU_COUNT; i++) {
		const char *at = strstr(summary, gpus[i].name);
		char after = at ? at[strlen(gpus[i].name)] : 0;

		if (at && (at == summary || at[-1] == ' ') && (after == ',' || !after))
			return &gpus[i];
	}
	return NULL;
}

enum err gpu_of_machine(const char *machine, const struct train_gpu **gpu)
{
	static const struct {
		const char *part, *name;
	} parts[] = {{"1v", "V100"}, {"a100", "A100"}, {"h100", "H100"}, {"b200", "B200"},
		{"l40s", "L40S"}};
	const struct instance_info *info = instance_find(machine);
	const struct train_gpu *found = info ? in_summary(info->summary) : NULL;

	for (size_t i = 0; info && !found && i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strstr(info->name, parts[i].part))
			found = gpu_named(parts[i].name);
	if (!found)
		return err_set(ERR_USAGE,
			"no figures for the GPU of machine '%s'; name one with --gpu, "
			"such as --gpu H100",
			machine);
	*gpu = found;
	return OK;
}

/* As the authors of FlashAttention measured them: the first 25 to 40 % of an A100, the
 * second 50 to 70 % there and 35 % of an H100, the third 75 % forward of an H100. */
double gpu_attention_share(
	const struct train_gpu *gpu, bool flash, enum train_kernel kernel)
{
	static const double ampere[KERNELS] = {.5, .5, .33},
			    later[KERNELS] = {.5, .35, .2};

	if (!flash)
		return .4;
	return gpu->tflops[PRECISION_FP8] > 0 ? later[kernel] : ampere[kernel];
}

double gpu_shape_share(double m, double n, double k, double half)
{
	return m / (m + half) * (n / (n + half)) * (k / (k + half));
}
