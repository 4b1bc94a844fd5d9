#include "sim/calib.h"

#include <math.h>
#include <string.h>

/* By protocol, since that is what shapes them: LL spends half of its bytes on flags and
 * LL128 a sixteenth; what multicasts ramps longest. */
void sim_params_default(enum sim_method method, double logs[SIM_PARAMS])
{
	static const double start[SIM_PARAMS] = {1, 2, 1, 1 << 20, .93, .3};
	bool is_ll = method == SIM_RING_LL || method == SIM_TREE_LL;
	bool is_ll128 = method == SIM_RING_LL128 || method == SIM_TREE_LL128;
	bool is_nvls = method == SIM_NVLS_SIMPLE || method == SIM_NVLS_TREE_SIMPLE;

	for (int p = 0; p < SIM_PARAMS; p++)
		logs[p] = log(start[p]);
	logs[SIM_E] += log(is_ll ? .5 : is_ll128 ? .9 : 1);
	logs[SIM_R] += log(is_nvls ? 2 : 1);
}

void sim_params_time(const struct sim_params *params, const struct sim_load *load,
	struct sim_time *time)
{
	const double *v = params->value;
	double q = 1 + v[SIM_Q], s, whole;

	time->latency_us = v[SIM_K] * (load->latency_us + v[SIM_H] * load->hops);
	time->transfer_us = load->ideal_us / v[SIM_E];
	s = sqrt(load->bytes / (load->cut * v[SIM_Z]));
	time->ramp_us = time->latency_us * v[SIM_R] * load->width * s / (1 + s);
	whole = time->latency_us + time->ramp_us;
	time->time_us = pow(pow(whole, q) + pow(time->transfer_us, q), 1 / q);
}

/* Every row is named by classes and methods that there are: a test reads it. */
void sim_calib_load(struct sim_calib *calib)
{
	memset(calib, 0, sizeof(*calib));
	for (uint32_t i = 0; i < sim_calib_row_count; i++) {
		const struct sim_calib_row *row = &sim_calib_rows[i];
		enum sim_wire wire = sim_wire_find(row->wire);
		int method = strcmp(row->method, "any")
				     ? (int)sim_method_find(row->method)
				     : SIM_ALL_METHODS;
		struct sim_effect *effect;

		if (wire == SIM_WIRES)
			continue;
		effect = &calib->effects[wire][method];
		for (int p = 0; p < SIM_PARAMS; p++)
			effect->log[p] = log(row->factor[p]);
		memcpy(effect->spread, row->spread, sizeof(effect->spread));
		effect->rows = row->rows;
		effect->sources = row->sources;
	}
}

/* The nearest part that knows something says it. */
static void support(const struct sim_effect *effect, int steps, struct sim_params *params)
{
	if (effect->rows >= SIM_SERIES && !params->rows) {
		params->rows = effect->rows;
		params->sources = effect->sources;
		params->steps = steps;
	}
	for (int size = 0; size < SIM_SIZE_CLASSES; size++)
		if (!(params->spread[size] > 0))
			params->spread[size] = effect->spread[size];
}

enum sim_method sim_method_kin(enum sim_method method)
{
	bool is_tree = method >= SIM_TREE_LL && method <= SIM_TREE_SIMPLE;

	return is_tree ? (enum sim_method)(method - SIM_TREE_LL + SIM_RING_LL) : method;
}

void sim_calib_find(const struct sim_calib *calib, enum sim_wire wire, enum sim_wire net,
	enum sim_method method, struct sim_params *params)
{
	enum sim_method kin = sim_method_kin(method);
	double logs[SIM_PARAMS];

	*params = (struct sim_params){0};
	sim_params_default(method, logs);
	for (int p = 0; p < SIM_PARAMS && kin != method; p++)
		logs[p] += calib->effects[SIM_ANY][kin].log[p];
	for (int steps = 0;; steps += 2, wire = sim_wire_parent(wire)) {
		const struct sim_effect *own = &calib->effects[wire][method];
		const struct sim_effect *all = &calib->effects[wire][SIM_ALL_METHODS];

		for (int p = 0; p < SIM_PARAMS; p++)
			if (p != SIM_H)
				logs[p] += own->log[p] + all->log[p];
		support(own, steps, params);
		support(all, steps + 1, params);
		if (wire == SIM_ANY)
			break;
	}
	for (;; net = sim_wire_parent(net)) {
		logs[SIM_H] += calib->effects[net][SIM_ALL_METHODS].log[SIM_H];
		if (net == SIM_ANY)
			break;
	}
	for (int p = 0; p < SIM_PARAMS; p++)
		params->value[p] = exp(logs[p]);
	for (int size = 0; size < SIM_SIZE_CLASSES; size++)
		if (!(params->spread[size] > 0))
			params->spread[size] = .6;
}
