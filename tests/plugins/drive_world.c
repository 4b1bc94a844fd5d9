#include "drive_world.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "test.h"

const ncclNet_t *net;
bool is_quiet;

bool may_fail;
int failure;
char said[SAID_BYTES];

bool went(int result)
{
	if (!may_fail)
		EQ(result, ncclSuccess);
	if (result && !failure)
		failure = result;
	return !result;
}

__attribute__((format(printf, 5, 6))) static void say(int level, unsigned long flags,
	const char *file, int line, const char *format, ...)
{
	va_list args;

	(void)flags;
	(void)file;
	(void)line;
	if (level > 2 || is_quiet)
		return;
	va_start(args, format);
	vsnprintf(said + strlen(said), sizeof(said) - strlen(said), format, args);
	va_end(args);
	if (!may_fail)
		fprintf(stderr, "%s\n", said);
}

/* ---- versions ---- */

struct world world_open(void)
{
	struct world world = {NULL};

#if NET_VERSION >= 11
	ncclNetCommConfig_t config = {-1};

	EQ(net->init(&world.context, 7, &config, say, NULL), ncclSuccess);
#elif NET_VERSION == 10
	EQ(net->init(say, NULL), ncclSuccess);
#else
	EQ(net->init(say), ncclSuccess);
#endif
	return world;
}

void world_close(struct world *world)
{
#if NET_VERSION >= 11
	EQ(net->finalize(world->context), ncclSuccess);
#endif
	world->context = NULL;
}

int net_listen(struct world *world, void *handle, void **comm)
{
#if NET_VERSION >= 11
	return net->listen(world->context, 0, handle, comm);
#else
	(void)world;
	return net->listen(0, handle, comm);
#endif
}

int net_connect(struct world *world, void *handle, void **comm)
{
	void *in_gpu = NULL;

	(void)in_gpu;
#if NET_VERSION >= 11
	return net->connect(world->context, 0, handle, comm, &in_gpu);
#elif NET_VERSION == 10
	ncclNetCommConfig_t config = {-1};

	(void)world;
	return net->connect(0, &config, handle, comm, &in_gpu);
#elif NET_VERSION >= 7
	(void)world;
	return net->connect(0, handle, comm, &in_gpu);
#else
	(void)world;
	return net->connect(0, handle, comm);
#endif
}

int net_accept(void *listener, void **comm)
{
#if NET_VERSION >= 7
	void *in_gpu = NULL;

	return net->accept(listener, comm, &in_gpu);
#else
	return net->accept(listener, comm);
#endif
}

int net_send_tagged(void *comm, const struct place *place, void *known, void **request)
{
#if NET_VERSION >= 10
	return net->isend(
		comm, place->data, place->bytes, place->tag, known, NULL, request);
#else
	return net->isend(
		comm, place->data, (net_size)place->bytes, place->tag, known, request);
#endif
}

int net_recv_group(
	void *comm, const struct place *places, int count, void *known, void **request)
{
	void *data[GROUP_MAX], *knowns[GROUP_MAX];
	net_size sizes[GROUP_MAX];
	int tags[GROUP_MAX];

	for (int i = 0; i < count; i++) {
		data[i] = places[i].data;
		knowns[i] = known;
		sizes[i] = (net_size)places[i].bytes;
		tags[i] = places[i].tag;
	}
#if NET_VERSION >= 10
	void *events[GROUP_MAX] = {NULL};

	*request = (void *)1; /* NCCL's word for: it need not be told when it is there */
	return net->irecv(comm, count, data, sizes, tags, knowns, events, request);
#else
	return net->irecv(comm, count, data, sizes, tags, knowns, request);
#endif
}

int net_send(void *comm, void *data, size_t bytes, void *known, void **request)
{
	return net_send_tagged(
		comm, &(struct place){.data = data, .bytes = bytes}, known, request);
}

int net_recv(void *comm, void *data, size_t bytes, void *known, void **request)
{
	return net_recv_group(
		comm, &(struct place){.data = data, .bytes = bytes}, 1, known, request);
}
