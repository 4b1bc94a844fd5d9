#include "one_context.h"

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

int cuDevicePrimaryCtxRetain(void **context, int device)
{
	*context = &one_context;
	return device ? INVALID : DONE;
}
