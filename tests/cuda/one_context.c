#include "one_context.h"

#include <stddef.h>

enum { DONE = 0, INVALID = 1, NO_CONTEXT = 201 };

char one_context;
static _Thread_local void *current;

int cuCtxGetCurrent(void **context)
{
	*context = current;
	return DONE;
}

int cuCtxSetCurrent(void *context)
{
	current = context;
	return DONE;
}

int cuCtxGetDevice(int *device)
{
	*device = 0;
	return current ? DONE : NO_CONTEXT;
}

int cuCtxEnablePeerAccess(void *peer, unsigned flags)
{
	return peer && !flags ? DONE : INVALID;
}

bool is_beside(void)
{
	return current && current != &one_context;
}

int cuCtxCreate_v2(void **context, unsigned flags, int device)
{
	static char beside;

	*context = current = &beside;
	return flags || device ? INVALID : DONE;
}

int cuCtxDestroy_v2(void *context)
{
	if (current == context)
		current = NULL;
	return context == &one_context ? INVALID : DONE;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
	*context = &one_context;
	return device ? INVALID : DONE;
}
