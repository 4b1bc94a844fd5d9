/* Speaks 3 and 2; wants Ring LL whatever the size. Whoever asks version 2 gets an error.
 */
#include "tuner.h"

static int init(size_t ranks, size_t nodes, logger *log, void **context)
{
	(void)log;
	*context = NULL;
	return ranks >= nodes ? SUCCESS : INTERNAL_ERROR;
}

static int get(void *context, int func, size_t bytes, int pipe_ops, float **costs,
	int algos, int protos, int *channels)
{
	(void)context;
	(void)bytes;
	(void)channels;
	if (algos != ALGOS || protos != PROTOS || pipe_ops < 1 || *channels != 0)
		return INTERNAL_ERROR;
	if (func == FUNC_ALL_REDUCE && *cell(costs, RING, LL) != -1.0f)
		*cell(costs, RING, LL) = 0.0f;
	return SUCCESS;
}

static int get_v2(void *context, int func, size_t bytes, int collnet, int nvls,
	int pipe_ops, int *algo, int *proto, int *channels)
{
	(void)context;
	(void)func;
	(void)bytes;
	(void)collnet;
	(void)nvls;
	(void)pipe_ops;
	(void)algo;
	(void)proto;
	(void)channels;
	return SYSTEM_ERROR;
}

static int destroy(void *context)
{
	(void)context;
	return SUCCESS;
}

EXPORT const struct {
	const char *name;
	int (*init)(size_t, size_t, logger *, void **);
	int (*get)(void *, int, size_t, int, float **, int, int, int *);
	int (*destroy)(void *);
} ncclTunerPlugin_v3 = {"three", init, get, destroy};

EXPORT const struct {
	const char *name;
	int (*init)(size_t, size_t, logger *, void **);
	int (*get)(void *, int, size_t, int, int, int, int *, int *, int *);
	int (*destroy)(void *);
} ncclTunerPlugin_v2 = {"three as two", init, get_v2, destroy};
