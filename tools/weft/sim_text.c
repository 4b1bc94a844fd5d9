/* weft sim as text: nccl-tests' columns, and two configurations side by side. */
#include <inttypes.h>

#include "weft/sim.h"

/* Elements of each rank's part, as nccl-tests counts them. */
static uint64_t count_of(const struct sim_run *run, uint64_t bytes)
{
	uint64_t elements = bytes / 4;

	switch (run->args->coll) {
	case COLL_ALL_REDUCE:
	case COLL_BROADCAST:
	case COLL_REDUCE:
	case SIM_SENDRECV:
		return elements;
	default:
		return elements / run->scene.ranks;
	}
}

static const char *redop_of(int coll)
{
	return coll == COLL_ALL_REDUCE || coll == COLL_REDUCE ||
			       coll == COLL_REDUCE_SCATTER || coll == SIM_SENDRECV
		       ? "sum"
		       : "none";
}

static int root_of(int coll)
{
	return coll == COLL_BROADCAST || coll == COLL_REDUCE || coll == COLL_GATHER ||
			       coll == COLL_SCATTER
		       ? 0
		       : -1;
}

void sim_table_print(const struct sim_run *run)
{
	char title[200];
	bool is_other = false;

	sim_run_title(run, title);
	printf("# %s\n", title);
	if (run->scene.site.is_aws && run->scene.site.nodes > 1)
		printf("# %s\n",
			run->scene.site.outer == SIM_ENA
				? "over sockets, without AWS's libfabric plugin"
				: "with AWS's libfabric plugin; --net plain: NCCL's own "
				  "choices, --net socket: TCP");
	printf("#%11s %12s %8s %6s %5s %11s %8s %8s %8s %8s  %s\n", "size", "count",
		"type", "redop", "root", "time", "algbw", "busbw", "low", "high", "how");
	printf("#%11s %12s %8s %6s %5s %11s %8s %8s %8s %8s\n", "(B)", "(elements)", "",
		"", "", "(us)", "(GB/s)", "(GB/s)", "(GB/s)", "(GB/s)");
	for (uint32_t i = 0; i < run->count; i++) {
		const struct sim_answer *a = &run->rows[i];

		printf("%12" PRIu64 " %12" PRIu64
		       " %8s %6s %5d %11.2f %8.2f %8.2f %8.2f %8.2f  %s%s\n",
			run->sizes[i], count_of(run, run->sizes[i]), "float",
			redop_of(run->args->coll), root_of(run->args->coll), a->time_us,
			a->algbw, a->busbw, a->low, a->high,
			sim_method_name(a->terms.method), a->is_own_class ? "" : " *");
		is_other |= !a->is_own_class;
	}
	if (is_other)
		printf("# * nobody measured this class; the interval is that of its kin, "
		       "and wider\n");
}

void sim_versus_print(const struct sim_run *run, const struct sim_run *other)
{
	char title[200];

	sim_run_title(run, title);
	printf("# A: %s\n", title);
	sim_run_title(other, title);
	printf("# B: %s\n", title);
	printf("#%11s %12s %9s %12s %9s %9s\n", "size", "time A", "busbw A", "time B",
		"busbw B", "B/A");
	printf("#%11s %12s %9s %12s %9s %9s\n", "(B)", "(us)", "(GB/s)", "(us)", "(GB/s)",
		"(time)");
	for (uint32_t i = 0; i < run->count && i < other->count; i++)
		printf("%12" PRIu64 " %12.2f %9.2f %12.2f %9.2f %9.2f\n", run->sizes[i],
			run->rows[i].time_us, run->rows[i].busbw, other->rows[i].time_us,
			other->rows[i].busbw,
			other->rows[i].time_us / run->rows[i].time_us);
}
