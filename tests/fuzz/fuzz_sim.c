/* A fabric file or a table of cases that is taken can be built and answered: rates are
 * finite, times are above zero. The first byte says which of the two it is. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "sim/cases.h"
#include "sim/traffic.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void fabric_try(const char *text, size_t bytes)
{
	static const struct sim_site site = {
		.nodes = 9, .gpus = 8, .nics = 4, .nic_GBps = 50, .outer = SIM_IB};
	struct fabric_plan plan;
	struct sim_strain strain;
	struct fabric fabric;

	if (fabric_plan_parse(text, bytes, "fuzz", &plan) ||
		fabric_build(&plan, &site, &fabric))
		return;
	if (!traffic_strain(&fabric, &strain))
		for (int i = 0; i < SIM_TRAFFICS; i++)
			assert(isfinite(strain.outer[i]) && strain.outer[i] >= 1);
	fabric_free(&fabric);
}

static void cases_try(const char *text, size_t bytes)
{
	static struct sim_calib calib;
	struct sim_cases cases;

	if (sim_cases_parse(text, bytes, "fuzz", &cases))
		return;
	sim_calib_load(&calib);
	for (uint32_t i = 0; i < cases.count; i++) {
		const struct sim_case *c = &cases.cases[i];
		struct sim_answer answer;

		sim_answer_make(&calib, &c->terms, c->bytes, c->bus_factor, &answer);
		assert(isfinite(answer.time_us) && answer.time_us >= 0);
	}
	sim_cases_free(&cases);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	if (bytes && *data == 'k')
		fabric_try((const char *)data, bytes);
	else
		cases_try((const char *)data, bytes);
	return 0;
}
