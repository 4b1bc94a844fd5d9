/* Names Tree Simple on three channels for every AllReduce, and checks what it is told. */
#include "tuner.h"

static int context_value = 7;

static int init(size_t ranks, size_t nodes, logger *log, void **context)
{
	log(LEVEL_INFO, SUBSYSTEM_TUNING, __FILE__, __LINE__, "v2: %zu ranks, %zu nodes",
		ranks, nodes);
	*context = &context_value;
	return SUCCESS;
}

static int get(void *context, int func, size_t bytes, int collnet, int nvls, int pipe_ops,
	int *algo, int *proto, int *channels)
{
	if (context != &context_value || collnet != 0 || pipe_ops != 1 || *algo != -1 ||
		*proto != -1)
		return INTERNAL_ERROR;
	if (func == FUNC_ALL_REDUCE && bytes > 1024 && nvls) {
		*algo = TREE;
		*proto = SIMPLE;
		*channels = 3;
	}
	return SUCCESS;
}

static int destroy(void *context)
{
	return context == &context_value ? SUCCESS : INTERNAL_ERROR;
}

EXPORT const struct {
	const char *name;
	int (*init)(size_t, size_t, logger *, void **);
	int (*get)(void *, int, size_t, int, int, int, int *, int *, int *);
	int (*destroy)(void *);
} ncclTunerPlugin_v2 = {"two", init, get, destroy};
