/* Makes NVLink dear to NVLS through the model's constants, and asks for nothing else.
 * Exports version 4 too, which must not be chosen. */
#include "tuner.h"

struct domains {
	int count, least, most;
};

/* 144 doubles: base latency [7][3], latency [3][7][3], then five tables [4][3]. */
enum { CONSTANTS = 144, NVLINK_NVLS_SIMPLE = 21 + NVLS * PROTOS + SIMPLE };

static int init(void **context, uint64_t comm, size_t ranks, size_t nodes, logger *log,
	struct domains *domains, double *constants)
{
	*context = NULL;
	log(LEVEL_INFO, SUBSYSTEM_TUNING, __FILE__, __LINE__,
		"v5: comm %llx, %zu ranks, %zu nodes, %d domains of %d to %d",
		(unsigned long long)comm, ranks, nodes, domains->count, domains->least,
		domains->most);
	if (constants[NVLINK_NVLS_SIMPLE] != 25.0 || constants[CONSTANTS - 1] != 80.0)
		return INTERNAL_ERROR;
	constants[NVLINK_NVLS_SIMPLE] = 1e6;
	return SUCCESS;
}

static int get(void *context, int func, size_t bytes, int pipe_ops, float **costs,
	int algos, int protos, int registered, int *channels)
{
	(void)context;
	(void)func;
	(void)bytes;
	(void)pipe_ops;
	(void)costs;
	(void)algos;
	(void)protos;
	(void)registered;
	(void)channels;
	return SUCCESS;
}

static int finalize(void *context)
{
	(void)context;
	return SUCCESS;
}

EXPORT const struct {
	const char *name;
	int (*init)(
		void **, uint64_t, size_t, size_t, logger *, struct domains *, double *);
	int (*get)(void *, int, size_t, int, float **, int, int, int, int *);
	int (*finalize)(void *);
} ncclTunerPlugin_v5 = {"five", init, get, finalize};

EXPORT const struct {
	const char *name;
	void *init, *get, *destroy;
} ncclTunerPlugin_v4 = {"five as four", NULL, NULL, NULL};
