#include "topo/gpu_name.h"

#include <stdlib.h>

#include "topo/instance_table.h"

enum { NVIDIA = 0x10de };

/* GPUs that no machine of the instance table has. */
static const struct {
	uint16_t device;
	int sm;
	const char *name;
} others[] = {
	{0x15f8, 60, "P100"},
	{0x15f9, 60, "P100"},
	{0x1db4, 70, "V100"},
	{0x1db5, 70, "V100"},
	{0x1db6, 70, "V100"},
	{0x20b5, 80, "A100-80GB"},
	{0x20b7, 80, "A30"},
	{0x20f1, 80, "A100-40GB"},
	{0x20f3, 80, "A800"},
	{0x2204, 86, "RTX 3090"},
	{0x2230, 86, "RTX A6000"},
	{0x2235, 86, "A40"},
	{0x2236, 86, "A10"},
	{0x2321, 90, "H100 NVL"},
	{0x2322, 90, "H800"},
	{0x2324, 90, "H800"},
	{0x2329, 90, "H20"},
	{0x2331, 90, "H100"},
	{0x2342, 90, "GH200"},
	{0x233b, 90, "H200 NVL"},
	{0x2684, 89, "RTX 4090"},
	{0x26b5, 89, "L40"},
	{0x2b85, 120, "RTX 5090"},
	{0x31c2, 103, "GB300"},
};

static const struct {
	int first, last; /* compute capabilities */
	const char *name;
} generations[] = {
	{60, 69, "Pascal"},
	{70, 72, "Volta"},
	{75, 75, "Turing"},
	{80, 87, "Ampere"},
	{89, 89, "Ada"},
	{90, 99, "Hopper"},
	{100, 129, "Blackwell"},
};

static const char *name_of_device(uint16_t device, int sm)
{
	for (uint32_t i = 0; i < instance_row_count(); i++) {
		const struct part_gpu *gpu = instance_rows[i].gpu;

		if (strtoul(gpu->device, NULL, 16) == device && gpu->sm == sm)
			return gpu->model;
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (others[i].device == device && others[i].sm == sm)
			return others[i].name;
	return NULL;
}

const char *gpu_name(uint32_t device, int sm)
{
	const char *name = device >> 16 == NVIDIA
				   ? name_of_device((uint16_t)(device & 0xffff), sm)
				   : NULL;

	for (size_t i = 0; !name && i < sizeof(generations) / sizeof(generations[0]); i++)
		if (sm >= generations[i].first && sm <= generations[i].last &&
			(device >> 16 == NVIDIA || !device))
			name = generations[i].name;
	return name ? name : "GPU";
}
