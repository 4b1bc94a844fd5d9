/* Does not start. */
#include "tuner.h"

static int init(void **context, uint64_t comm, size_t ranks, size_t nodes, logger *log,
	void *domains, double *constants)
{
	(void)context;
	(void)comm;
	(void)ranks;
	(void)nodes;
	(void)log;
	(void)domains;
	constants[0] = 1e9;
	return SYSTEM_ERROR;
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
	int (*init)(void **, uint64_t, size_t, size_t, logger *, void *, double *);
	int (*get)(void *, int, size_t, int, float **, int, int, int, int *);
	int (*finalize)(void *);
} ncclTunerPlugin_v5 = {"refuses", init, get, finalize};
