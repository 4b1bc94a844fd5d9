/*
 * calib.h - what a class of wire makes of an ideal: the calibration, as data.
 *
 * For a call the scene gives three things: the latency of its method by NCCL's model
 * without a network's own, L, how often it waits for the network, N, and the time that
 * the busiest link needs at full rate, I. Six numbers turn them into
 *
 *     A = k (L + h N) (1 + r w s / (1 + s))    X = I / e,   s = sqrt(bytes / (c z))
 *     T = (A^q + X^q)^(1/q)
 *
 * A is latency with a ramp: chunks grow with the call until they reach their largest
 * size; c and w are the cut and the width of struct sim_load. X is transfer; the two
 * overlap the more the larger q is.
 *
 * Each number is a product: what holds for everything, what a method adds, what each
 * class of the wire's line adds (efa is rdma is any), and what a method adds on that
 * class. A row of the table is one such part. So a class that nobody measured has its
 * parent's numbers, and nothing is kept for a single measurement. spread is the half
 * width of the 90 % interval, as a logarithm, for calls under 1 MiB and above.
 */
#ifndef SIM_CALIB_H
#define SIM_CALIB_H

#include "sim/scene.h"

enum sim_param { SIM_K, SIM_H, SIM_R, SIM_Z, SIM_E, SIM_Q, SIM_PARAMS };
enum { SIM_SIZE_CLASSES = 2 };

/* Fewer rows are no series: a class with so few has its parent's name to stand on. */
enum { SIM_SERIES = 3 };

/* In the place of a method: what holds for all of them. */
enum { SIM_ALL_METHODS = SIM_METHODS };

/* One part: a logarithm for each number. */
struct sim_effect {
	double log[SIM_PARAMS];
	double spread[SIM_SIZE_CLASSES]; /* 0: not known */
	uint32_t rows, sources;		 /* that it rests on; 0: there is none */
};

struct sim_calib {
	struct sim_effect effects[SIM_WIRES][SIM_METHODS + 1];
};

/* What holds for one class and method. */
struct sim_params {
	double value[SIM_PARAMS]; /* us for h and z */
	double spread[SIM_SIZE_CLASSES];
	uint32_t rows, sources; /* of the nearest part that has any */
	int steps;		/* from the class itself to that part; 0: its own */
};

/* One row of the table in the tree; "any" is a wire and a method, too. */
struct sim_calib_row {
	const char *wire, *method;
	double factor[SIM_PARAMS], spread[SIM_SIZE_CLASSES];
	uint32_t rows, sources;
	const char *origin; /* whose measurements */
};
extern const struct sim_calib_row sim_calib_rows[];
extern const uint32_t sim_calib_row_count;

void sim_calib_load(struct sim_calib *calib);

/* `net` is what the hops go over: `wire` itself, except where trays that NVLink joins
 * have a network between them. */
void sim_calib_find(const struct sim_calib *calib, enum sim_wire wire, enum sim_wire net,
	enum sim_method method, struct sim_params *params);

/* A tree with a protocol is like a ring with it, but for what is its own; others stand
 * for themselves. */
enum sim_method sim_method_kin(enum sim_method method);

/* The start of all fits, as logarithms. */
void sim_params_default(enum sim_method method, double logs[SIM_PARAMS]);

/* What a call brings, and what becomes of it. Into how many parts it is cut decides at
 * which size its chunks are full, and how many of them are under way at once how long it
 * takes to fill the pipeline; both are 1 for the eight GPUs of a node. */
struct sim_load {
	double latency_us, hops, ideal_us, bytes, width, cut;
};
struct sim_time {
	double latency_us, ramp_us, transfer_us; /* of which some overlap */
	double time_us;
};
void sim_params_time(const struct sim_params *params, const struct sim_load *load,
	struct sim_time *time);

#endif
