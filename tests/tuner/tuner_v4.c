/* Registered buffers get Ring Simple on two channels, others what the model says. It also
 * asks for LL128 where that is ruled out, and for more channels than there are. */
#include "tuner.h"

static int init(size_t ranks, size_t nodes, logger *log, void **context)
{
	(void)ranks;
	(void)nodes;
	(void)log;
	(void)context;
	return SUCCESS;
}

static int get(void *context, int func, size_t bytes, int pipe_ops, float **costs,
	int algos, int protos, int registered, int *channels)
{
	(void)context;
	(void)bytes;
	(void)pipe_ops;
	(void)algos;
	(void)protos;
	if (func == FUNC_ALL_GATHER) {
		*cell(costs, TREE, LL128) = 0.0f;
		*channels = 10000;
	} else if (registered) {
		*cell(costs, RING, SIMPLE) = 0.0f;
		*channels = 2;
	}
	return SUCCESS;
}

static int destroy(void *context)
{
	(void)context;
	return SUCCESS;
}

EXPORT const struct {
	const char *name;
	int (*init)(size_t, size_t, logger *, void **);
	int (*get)(void *, int, size_t, int, float **, int, int, int, int *);
	int (*destroy)(void *);
} ncclTunerPlugin_v4 = {"four", init, get, destroy};
