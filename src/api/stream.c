/*
 * stream.c - weft.h's host streams.
 */
#include "api/check.h"
#include "api/live.h"

static enum err not_ours(cudaStream_t handle, const char *function)
{
	return err_set(ERR_ARGUMENT,
		"%s: %p was not made by weftStreamCreate, or was destroyed", function,
		(void *)handle);
}

static enum err check_stream_handle(cudaStream_t handle, const char *function)
{
	return live_is(LIVE_STREAM, (const void *)handle) ? OK
							  : not_ours(handle, function);
}

ncclResult_t weftStreamCreate(cudaStream_t *stream)
{
	struct stream *made;
	enum err e = check_pointer(stream, "weftStreamCreate", "stream");

	if (!e)
		e = stream_create(&made);
	if (e)
		return result_of(e);
	e = live_add(LIVE_STREAM, made);
	if (e)
		stream_destroy(made);
	else
		*stream = (cudaStream_t)made;
	return result_of(e);
}

/* Of two threads that destroy it, one gets it. */
ncclResult_t weftStreamDestroy(cudaStream_t stream)
{
	if (!stream)
		return ncclSuccess;
	if (live_take(LIVE_STREAM, (const void *)stream))
		return result_of(not_ours(stream, "weftStreamDestroy"));
	return result_of(stream_destroy((struct stream *)stream));
}

ncclResult_t weftStreamSynchronize(cudaStream_t stream)
{
	enum err e;

	if (!stream)
		return ncclSuccess;
	e = check_stream_handle(stream, "weftStreamSynchronize");
	return result_of(e ? e : stream_synchronize((struct stream *)stream));
}

ncclResult_t weftStreamQuery(cudaStream_t stream)
{
	enum err e;

	if (!stream)
		return ncclSuccess;
	e = check_stream_handle(stream, "weftStreamQuery");
	return result_of(e ? e : stream_query((struct stream *)stream));
}
