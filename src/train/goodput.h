/*
 * goodput.h - what share of the time a job gets on with its work when GPUs fail.
 *
 * 419 stops in 54 days on 16,384 GPUs (the Llama 3 report) make 50,700 GPU-hours between
 * two. A checkpoint every sqrt(2 C MTBF) is Young's best; lost are the checkpoints, half
 * an interval at each stop, and the time to notice and start again.
 */
#ifndef TRAIN_GOODPUT_H
#define TRAIN_GOODPUT_H

#include <stdint.h>

static const double GOODPUT_GPU_HOURS = 50700;

struct train_goodput {
	double mtbf_s, interval_s, share;
};

void goodput_make(uint32_t gpus, double checkpoint_s, double restart_s,
	struct train_goodput *goodput);

#endif
