#include "net/rma_speak.h"

#include "net/plugin_abi.h"
#include "net/plugin_speak.h"

/* The only context of a communicator, and nothing wished of how a put travels. */
enum { CONTEXT = 0, WISHES = 0, RANK_STRIDE = 1, QUEUE_DEPTH = 64 };

void rma_speak_at(struct rma_file *file, const void *symbol, int version)
{
	const struct rma_abi_v13 *old = symbol;
	const struct rma_abi_v16 *fresh = symbol;

	file->version = version;
	file->head = &old->head;
	file->tail = version >= 16 ? &fresh->tail : &old->tail;
}

bool rma_speak_is_whole(const struct rma_file *file)
{
	const struct rma_abi_tail *abi = file->tail;

	return file->head->init && file->head->devices && abi->properties &&
	       abi->listen && abi->connect && abi->create_context.v13 && abi->reg.v13 &&
	       abi->dereg && abi->destroy_context && abi->close_group &&
	       abi->close_listen && abi->put.v13 && abi->put_signal.v13 && abi->test &&
	       abi->finalize;
}

int rma_speak_device(const struct rma_file *file, int index, struct plugin_device *device,
	int *device_type)
{
	/* a plugin may be built for properties that have grown since */
	union {
		struct plugin_props_v12 v12;
		char spare[1024];
	} props = {.spare = {0}};
	int result = file->tail->properties(index, &props);

	if (result)
		return result;
	speak_device_keep(&props.v12, device);
	*device_type = props.v12.device_type;
	return 0;
}

int rma_speak_context(const struct rma_file *file, void *group, void **context)
{
	struct rma_config_v13 old = {.contexts = 1,
		.queue_depth = QUEUE_DEPTH,
		.traffic_class = PLUGIN_TRAFFIC_ANY};
	struct rma_config_v14 config = {.contexts = 1,
		.traffic_class = PLUGIN_TRAFFIC_ANY,
		.rank_stride = RANK_STRIDE};
	void *in_gpu = NULL;

	if (file->version <= 13)
		return file->tail->create_context.v13(group, &old, context, &in_gpu);
	return file->tail->create_context.v14(group, &config, context);
}

int rma_speak_reg(const struct rma_file *file, void *group,
	const struct rma_memory *memory, void **known)
{
	uint64_t flags = memory->is_signals   ? RMA_ORDERED | RMA_NEVER_RESET
			 : memory->is_ordered ? RMA_ORDERED
					      : 0;
	void *in_gpu = NULL;

	if (file->version <= 13)
		return file->tail->reg.v13(group, memory->data, memory->bytes,
			PLUGIN_HOST, flags, known, &in_gpu);
	return file->tail->reg.v14(
		group, memory->data, memory->bytes, PLUGIN_HOST, flags, known);
}

static int speak_put_plain(const struct rma_file *file, void *context,
	const struct rma_put *put, void **request)
{
	const struct rma_abi_tail *abi = file->tail;

	if (file->version >= 15)
		return abi->put.v15(context, CONTEXT, put->from, put->from_known,
			put->bytes, put->to, put->to_known, put->rank, WISHES, request);
	return abi->put.v13(context, CONTEXT, put->from, put->from_known, put->bytes,
		put->to, put->to_known, put->rank, request);
}

/* Strong: whoever sees it sees all that was put before. In version 13 all are. */
int rma_speak_put(const struct rma_file *file, void *context, const struct rma_put *put,
	void **request)
{
	const struct rma_abi_tail *abi = file->tail;

	*request = NULL;
	if (!put->signal_known)
		return speak_put_plain(file, context, put, request);
	if (file->version >= 15)
		return abi->put_signal.v15(context, CONTEXT, put->from, put->from_known,
			put->bytes, put->to, put->to_known, put->rank, put->signal,
			put->signal_known, 1, RMA_SIGNAL_ADD, true, WISHES, request);
	if (file->version == 14)
		return abi->put_signal.v14(context, CONTEXT, put->from, put->from_known,
			put->bytes, put->to, put->to_known, put->rank, put->signal,
			put->signal_known, 1, RMA_SIGNAL_ADD, true, request);
	return abi->put_signal.v13(context, CONTEXT, put->from, put->from_known,
		put->bytes, put->to, put->to_known, put->rank, put->signal,
		put->signal_known, 1, RMA_SIGNAL_ADD, request);
}
