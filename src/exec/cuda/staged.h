/*
 * staged.h - collectives through slots, inside the engine; see steps.h.
 */
#ifndef EXEC_CUDA_STAGED_H
#define EXEC_CUDA_STAGED_H

#include <stdbool.h>

#include "exec/cuda/engine.h"
#include "exec/cuda/stepper.h"

struct staged {
	bool is_on;   /* there are slots */
	bool is_host; /* .. in host memory */
	uint32_t channels;
	cu_ptr memory;			/* of this rank, or of all */
	cu_ptr mapped[MOVES_RANKS_MAX]; /* the others', where they had to be mapped */
	cu_ptr lent[MOVES_RANKS_MAX];	/* .. of this process, and our own */
	void *host[MOVES_RANKS_MAX];	/* the same in host memory */
	cu_ptr ends;
	struct stepper stepper;
};

/* How a plan's slots are laid out. */
enum steps_codec staged_codec(const struct device_plan *plan);

/* `args` are those of the direct way, as far as they say where buffers are. */
enum err staged_launch(struct cuda_engine *engine, const struct cuda_call *call,
	const struct moves_args *args);

void staged_free(struct cuda_engine *engine);

#endif
