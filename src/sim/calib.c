#include "sim/calib.h"

#include <math.h>
#include <string.h>

enum { K, R, Z, E };
enum { SIM_KIN = 3 };

void sim_params_default(enum sim_method method, struct sim_params *params)
{
	bool is_small = method == SIM_RING_LL || method == SIM_TREE_LL;

	*params = (struct sim_params){
		.value = {1, is_small ? .3 : 2, 300, .85}, .spread = {.6, .5}};
}

double sim_params_time(const struct sim_params *params, double latency, double ideal)
{
	double transfer = ideal / params->value[E];
	double s = sqrt(transfer / params->value[Z]);

	return params->value[K] * latency + transfer +
	       params->value[R] * latency * s / (1 + s);
}

/* Every row is named by classes and methods that there are: a test reads it. */
void sim_calib_load(struct sim_calib *calib)
{
	memset(calib, 0, sizeof(*calib));
	for (uint32_t i = 0; i < sim_calib_row_count; i++) {
		const struct sim_calib_row *row = &sim_calib_rows[i];
		enum sim_wire wire = sim_wire_find(row->wire);
		enum sim_method method = sim_method_find(row->method);
		struct sim_params *cell;

		if (wire == SIM_WIRES || method == SIM_METHODS)
			continue;
		cell = &calib->cells[wire][method];
		memcpy(cell->value, row->value, sizeof(cell->value));
		memcpy(cell->spread, row->spread, sizeof(cell->spread));
		cell->rows = row->rows;
		cell->sources = row->sources;
	}
}

/* Methods of one protocol are most like each other; the nearest first. */
static const enum sim_method kin[SIM_METHODS][SIM_KIN] = {
	[SIM_RING_LL] = {SIM_RING_LL, SIM_TREE_LL, SIM_RING_LL},
	[SIM_TREE_LL] = {SIM_TREE_LL, SIM_RING_LL, SIM_TREE_LL},
	[SIM_RING_LL128] = {SIM_RING_LL128, SIM_TREE_LL128, SIM_RING_SIMPLE},
	[SIM_TREE_LL128] = {SIM_TREE_LL128, SIM_RING_LL128, SIM_TREE_SIMPLE},
	[SIM_RING_SIMPLE] = {SIM_RING_SIMPLE, SIM_TREE_SIMPLE, SIM_NVLS_TREE_SIMPLE},
	[SIM_TREE_SIMPLE] = {SIM_TREE_SIMPLE, SIM_RING_SIMPLE, SIM_NVLS_TREE_SIMPLE},
	[SIM_NVLS_SIMPLE] = {SIM_NVLS_SIMPLE, SIM_NVLS_TREE_SIMPLE, SIM_RING_SIMPLE},
	[SIM_NVLS_TREE_SIMPLE] = {SIM_NVLS_TREE_SIMPLE, SIM_NVLS_SIMPLE, SIM_TREE_SIMPLE},
	[SIM_PAT_SIMPLE] = {SIM_PAT_SIMPLE, SIM_RING_SIMPLE, SIM_TREE_SIMPLE},
	[SIM_COLLNET_SIMPLE] = {SIM_COLLNET_SIMPLE, SIM_NVLS_TREE_SIMPLE,
		SIM_RING_SIMPLE},
	[SIM_P2P] = {SIM_P2P, SIM_RING_SIMPLE, SIM_TREE_SIMPLE},
};

const struct sim_params *sim_calib_find(const struct sim_calib *calib, enum sim_wire wire,
	enum sim_method method, int *depth)
{
	static struct sim_params nothing;
	int steps = 0;

	for (;; wire = sim_wire_parent(wire)) {
		for (int i = 0; i < SIM_KIN; i++, steps++) {
			const struct sim_params *cell =
				&calib->cells[wire][kin[method][i]];

			if (!cell->rows)
				continue;
			if (depth)
				*depth = steps;
			return cell;
		}
		if (wire == SIM_ANY)
			break;
	}
	if (depth)
		*depth = steps;
	sim_params_default(SIM_RING_SIMPLE, &nothing);
	return &nothing;
}
