/* weft sim --explain: one size in sentences: where its time goes, over which links, what
 * bounds it, and what would change that. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/param.h"
#include "common/units.h"
#include "sim/tiles.h"
#include "weft/command.h"
#include "weft/sim.h"

static const char *wire_bound(const struct sim_run *run, const struct sim_answer *a)
{
	enum sim_traffic kind = sim_traffic_of(run->args->coll, a->terms.method);

	if (a->terms.outer_us <= a->terms.inner_us)
		return run->scene.site.domain > 1
			       ? "the links between the GPUs of an NVLink domain"
			       : "the links between the GPUs of a node";
	if (run->strain.outer[kind] > 1.01)
		return "the network between nodes";
	switch (sim_outer_bound(&run->scene)) {
	case SIM_BOUND_PCI:
		return "the PCI links between the GPUs and the NICs";
	case SIM_BOUND_THREADS:
		return "the threads of the host that carry its sockets, not the wire";
	default:
		return "the network between nodes";
	}
}

static const char *bound_name(const struct sim_run *run, const struct sim_answer *a)
{
	if (a->latency_us > a->transfer_us && a->latency_us > a->ramp_us)
		return "latency: the steps of the algorithm, not the bytes";
	if (a->ramp_us > a->transfer_us)
		return "the filling of its pipeline: the call is too small for the wires";
	return wire_bound(run, a);
}

static void parts_print(const struct sim_answer *a)
{
	const struct {
		const char *name;
		double us;
	} parts[] = {{"latency", a->latency_us}, {"filling the pipeline", a->ramp_us},
		{"moving bytes", a->transfer_us}};

	for (int i = 0; i < 3; i++)
		printf("  %-22s %11.1f us  %3.0f %%\n", parts[i].name, parts[i].us,
			100 * parts[i].us / a->time_us);
	if (a->latency_us + a->ramp_us + a->transfer_us > 1.02 * a->time_us)
		printf("  bytes move while the pipeline fills: together they take less "
		       "than one after the other.\n");
	printf("  the busiest link inside a node alone would need %.1f us",
		a->terms.inner_us);
	if (a->terms.outer_us > 0)
		printf(", the one between nodes %.1f us", a->terms.outer_us);
	printf(".\n");
}

static void links_print(const struct sim_run *run, const struct sim_answer *a)
{
	struct fabric fabric = run->fabric;
	struct traffic_report report;
	struct tiles_report tiles;
	enum sim_traffic kind = sim_traffic_of(run->args->coll, a->terms.method);

	if (a->terms.inner_us > 0)
		printf("Busiest links inside a node: those of every GPU, full for %.0f "
		       "%% of the time.\n",
			100 * fmin(1, a->terms.inner_us / a->time_us));
	if (run->scene.nvl_groups < 2 ||
		traffic_measure(&fabric, kind, 1e9, TRAFFIC_AUTO, &report))
		return;
	printf("Busiest links between nodes (%s, %u flow%s):\n",
		report.was_run ? "run flow by flow" : "counted by symmetry",
		report.flow_count, report.flow_count == 1 ? "" : "s");
	if (!tiles_measure(&fabric, kind, 1e9, &tiles))
		printf("  The library's own %s run in %u tiles, %u of it through each of "
		       "%u NICs, takes %.2f times as long as the flows.\n",
			tiles.schedule, tiles.tiles, tiles.each, tiles.nics,
			tiles.time_us / report.time_us);
	for (uint32_t i = 0; i < report.busiest_count; i++) {
		char name[FABRIC_NAME_BYTES];

		fabric_link_name(&fabric, report.busiest[i].link, name);
		printf("  %-28s %3.0f %% of the transfer\n", name,
			100 * report.busiest[i].share);
	}
	if (report.time_us > report.ideal_us * 1.001)
		printf("The fabric makes the transfer %.2f times as long as sound NICs "
		       "on "
		       "one switch would.\n",
			report.time_us / report.ideal_us);
}

/* The same call with something changed, and what that is worth. True when it is. */
static bool change_print(const struct sim_run *run, const struct sim_args *args,
	uint64_t bytes, const char *what)
{
	static struct sim_run other;
	struct sim_answer now, then;
	bool is_worth;

	if (sim_run_ask(run, bytes, &now) || sim_run_make(args, &other))
		return false;
	is_worth = !sim_run_ask(&other, bytes, &then) && then.time_us < now.time_us * .98;
	if (is_worth)
		printf("  %s: %.1f us, %.1f GB/s (%.2f times as fast).\n", what,
			then.time_us, then.busbw, now.time_us / then.time_us);
	sim_run_free(&other);
	return is_worth;
}

/* The best of the algorithms that were not taken; NCCL and the plugins choose by models
 * of their own. The protocol stays with them: not every wire keeps what LL128 needs. */
static bool other_algo_print(const struct sim_run *run, uint64_t bytes)
{
	static const char *const algos[] = {"Ring", "Tree", "NVLS", "NVLSTree"};
	static struct sim_run other;
	struct sim_answer now, best;
	const char *what = "";

	if (sim_run_ask(run, bytes, &now))
		return false;
	best = now;
	for (int i = 0; i < 4; i++) {
		struct sim_args args = *run->args;
		struct sim_answer then;

		snprintf(args.site.algo, sizeof(args.site.algo), "%s", algos[i]);
		if (sim_run_make(&args, &other))
			continue;
		if (!sim_run_ask(&other, bytes, &then) && then.time_us < best.time_us) {
			best = then;
			what = algos[i];
		}
		sim_run_free(&other);
	}
	if (!(best.time_us < now.time_us * .95))
		return false;
	printf("  NCCL_ALGO=%s, by %s: %.1f us, %.1f GB/s (%.2f times as "
	       "fast).\n",
		what, sim_method_name(best.terms.method), best.time_us, best.busbw,
		now.time_us / best.time_us);
	return true;
}

static void changes_print(const struct sim_run *run, uint64_t bytes)
{
	struct sim_args args = *run->args;
	const struct sim_site *site = &run->scene.site;
	int found = 0;

	printf("What would change it:\n");
	if (args.plan.harm_count) {
		args.plan.harm_count = 0;
		found += change_print(run, &args, bytes, "repair what is broken or slow");
		args = *run->args;
	}
	if (args.plan.shape != FABRIC_SWITCH) {
		args.plan.shape = FABRIC_SWITCH;
		args.plan.harm_count = 0;
		found += change_print(run, &args, bytes, "a fabric without contention");
		args = *run->args;
	}
	if (args.pods) {
		args.pods = args.pod_gpus = 0;
		found += change_print(
			run, &args, bytes, "one pod with all GPUs of a machine");
		args = *run->args;
	}
	if (run->scene.nvl_groups > 1 && site->outer != SIM_TCP &&
		site->outer != SIM_ENA) {
		args.plan.nic_GBps = 2 * site->nic_GBps;
		found += change_print(run, &args, bytes, "NICs of twice the rate");
		args = *run->args;
	}
	if (args.nics) {
		args.nics = 0;
		found += change_print(run, &args, bytes, "all NICs of the machine");
		args = *run->args;
	}
	if (site->outer == SIM_TCP || site->outer == SIM_ENA) {
		args.net = SIM_NET_MACHINE;
		args.own_choice = true;
		args.plan.wire = SIM_WIRES;
		args.plan.nic_GBps = 0;
		found += change_print(run, &args, bytes,
			"the machine's own network instead of sockets");
		args = *run->args;
	}
	if (*args.site.algo || *args.site.proto || param_text(PARAM_ALGO) ||
		param_text(PARAM_PROTO)) {
		*args.site.algo = *args.site.proto = 0;
		args.own_choice = true;
		found += change_print(
			run, &args, bytes, "NCCL's own choice of algorithm");
	} else if (run->scene.ranks > 1) {
		found += other_algo_print(run, bytes);
	}
	printf("  nothing %sthat this model knows of.\n", found ? "else " : "");
}

int sim_explain(const struct sim_run *run, uint64_t bytes)
{
	struct sim_answer a;
	enum err e = sim_run_ask(run, bytes, &a);
	char title[200], size[24];

	if (e)
		return sim_failed(e);
	sim_run_title(run, title);
	units_print_size(bytes, size, sizeof(size));
	printf("%s, %s: %.1f us, busbw %.2f GB/s (9 of 10 measure %.2f to %.2f).\n",
		title, size, a.time_us, a.busbw, a.low, a.high);
	printf("It goes by %s over %s, and is bound by %s.\n",
		sim_method_name(a.terms.method), sim_wire_name(a.terms.wire),
		bound_name(run, &a));
	parts_print(&a);
	links_print(run, &a);
	changes_print(run, bytes);
	printf("The calibration rests on %u measurement%s of %u source%s%s.\n", a.rows,
		a.rows == 1 ? "" : "s", a.sources, a.sources == 1 ? "" : "s",
		a.is_own_class ? " of this class"
			       : " of kin: nobody measured this class");
	return EXIT_GOOD;
}
