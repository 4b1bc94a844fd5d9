/*
 * stream.c - weft.h's host streams.
 */
#include "api/check.h"

static enum err check_stream_handle(cudaStream_t handle, const char *function)
{
	if (!stream_is_valid((const struct stream *)handle))
		return err_set(ERR_ARGUMENT, "%s: %p was not made by weftStreamCreate",
			function, (void *)handle);
	return OK;
}

ncclResult_t weftStreamCreate(cudaStream_t *stream)
{
	struct stream *made;
	enum err e = check_pointer(stream, "weftStreamCreate", "stream");

	if (!e)
		e = stream_create(&made);
	if (!e)
		*stream = (cudaStream_t)made;
	return result_of(e);
}

ncclResult_t weftStreamDestroy(cudaStream_t stream)
{
	enum err e;

	if (!stream)
		return ncclSuccess;
	e = check_stream_handle(stream, "weftStreamDestroy");
	return result_of(e ? e : stream_destroy((struct stream *)stream));
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
