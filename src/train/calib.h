/*
 * calib.h - what GPUs and software make of the work: the calibration, as data.
 *
 * A number of step.h is a product: of the one for all, of the GPU's kind and precision,
 * of the family that the software stack is of, of the stack, and of the stack on that
 * GPU. What has no row counts as 1, so a stack that nobody measured on a GPU is the stack
 * as it is elsewhere on the GPU as others use it. Nothing is fitted to single
 * measurements.
 */
#ifndef TRAIN_CALIB_H
#define TRAIN_CALIB_H

#include "train/memory.h"
#include "train/step.h"

enum calib_level { LEVEL_ALL, LEVEL_GPU, LEVEL_FAMILY, LEVEL_STACK, LEVEL_CELL, LEVELS };

enum { CALIB_KEY_BYTES = 64, CALIB_ROWS_MAX = 256 };

struct calib_row {
	enum calib_level level;
	char key[CALIB_KEY_BYTES];
	double value[TRAIN_PARAMS]; /* factors; of LEVEL_ALL the numbers themselves */
	double spread;		    /* half width of the 90 % interval, as a logarithm */
	double memory_factor,
		memory_base_gb; /* of stacks, and their mean of all; 0: not known */
	uint32_t rows, sources;
};

struct train_calib {
	struct calib_row rows[CALIB_ROWS_MAX];
	uint32_t count;
};

/* The table in the tree. */
extern const struct calib_row calib_table[];
extern const uint32_t calib_table_count;
void calib_load(struct train_calib *calib);

/* Who asks. */
struct calib_who {
	const char *stack; /* "" for none in particular */
	const struct train_gpu *gpu;
	enum train_precision precision;
	bool is_moe;
};

/* "nvidia" for Megatron-Core and what is built on it, "megatron" for what was before,
 * "fsdp" for PyTorch's own, "deepspeed" for that without Megatron; "" for others. */
const char *stack_family(const char *stack);

/* The attention that a stack was built with. */
enum train_kernel stack_kernel(const char *stack);

void calib_key(
	const struct calib_who *who, enum calib_level level, char key[CALIB_KEY_BYTES]);
int calib_row_find(
	const struct train_calib *calib, enum calib_level level, const char *key);

struct calib_answer {
	struct train_params params;
	struct memory_habit habit;
	double spread;
	uint32_t rows, sources; /* of the most special row */
	enum calib_level level; /* that row's */
};

void calib_ask(const struct train_calib *calib, const struct calib_who *who,
	struct calib_answer *answer);

/* The start of all fits. */
void calib_default(struct train_params *params);
const char *calib_param_name(enum train_param param);

#endif
