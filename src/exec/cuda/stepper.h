/*
 * stepper.h - the kernels that run steps (lists/steps.h), and the steps they have been
 * given: what every launch through slots needs, whoever makes it.
 */
#ifndef EXEC_CUDA_STEPPER_H
#define EXEC_CUDA_STEPPER_H

#include "base/dtype.h"
#include "exec/cuda/driver/driver.h"
#include "exec/cuda/lists/steps.h"
#include "plan/device.h"

/* A schedule's steps, here and on the device. */
struct kept_steps {
	struct dev_steps *steps; /* owned; NULL: not yet */
	size_t bytes;
	cu_ptr address; /* owned; 0: not yet */
};

struct stepper {
	cu_module modules[STEPS_CODECS];
	struct kept_steps *kept; /* owned: by number of the plan's program */
	uint32_t kept_count;
};

/* The kernel for a type and an operator ("sum"); without one (NULL) that which copies. */
enum err stepper_function(struct stepper *stepper, enum steps_codec codec,
	enum dtype type, const char *op, cu_function *function);

/* .. and for a call. */
enum err stepper_fold(struct stepper *stepper, enum steps_codec codec,
	const struct plan_key *key, enum redop op, cu_function *function);

/* All kernels of a codec. The driver loads one when it is first asked for, and that can
 * wait for kernels of the same process that run, one of which may wait for the kernel
 * that is to be loaded. */
enum err stepper_load(struct stepper *stepper, enum steps_codec codec);

/* A program's steps as they are here; when it comes first they are written. */
enum err stepper_flat(struct stepper *stepper, const struct device_program *program,
	const struct kept_steps **found);

/* .. and on the device: when it comes first they are copied on the stream `side`, which
 * is waited for. */
enum err stepper_steps(struct stepper *stepper, const struct device_program *program,
	cu_stream side, const struct kept_steps **found);

/* What one launch is: as many channels of each of args->rank_count ranks. */
struct stepper_launch {
	cu_function function;
	enum steps_codec codec;
	uint32_t channels;
	cu_stream stream;
};
enum err stepper_run(const struct stepper_launch *launch, struct steps_args *args);

void stepper_free(struct stepper *stepper);

#endif
