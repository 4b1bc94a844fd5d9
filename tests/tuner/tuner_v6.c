/* Wants Tree LL for all but the largest calls; has no opinion on chunks. */
#include "tuner.h"

static int init(void **context, uint64_t comm, size_t ranks, size_t nodes, logger *log,
	void *domains, double *constants)
{
	(void)comm;
	(void)ranks;
	(void)nodes;
	(void)domains;
	(void)constants;
	*context = (void *)log;
	return SUCCESS;
}

static int get(void *context, int func, size_t bytes, int pipe_ops, float **costs,
	int algos, int protos, int registered, int *channels)
{
	(void)func;
	(void)pipe_ops;
	(void)algos;
	(void)protos;
	(void)registered;
	(void)channels;
	if (!context)
		return INTERNAL_ERROR;
	if (bytes < (size_t)1 << 30 && *cell(costs, TREE, LL) != -1.0f)
		*cell(costs, TREE, LL) = 0.0f;
	return SUCCESS;
}

static int finalize(void *context)
{
	return context ? SUCCESS : INTERNAL_ERROR;
}

EXPORT const struct {
	const char *name;
	int (*init)(void **, uint64_t, size_t, size_t, logger *, void *, double *);
	int (*get)(void *, int, size_t, int, float **, int, int, int, int *);
	int (*finalize)(void *);
	int (*chunk)(void *, int, size_t, int, int, int, size_t *);
} ncclTunerPlugin_v6 = {"six", init, get, finalize, NULL};
