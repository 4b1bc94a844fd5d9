/* The latency-bandwidth table, and what it chooses for every size. */
#include "base/dtype.h"
#include "weft/graph_json.h"

/* nccl-tests' sizes: 8 bytes to 8 GiB. */
enum { SIZE_FIRST = 3, SIZE_LAST = 33 };

static json_t *max_threads(const struct model *model)
{
	json_t *object = json_object();

	for (int a = 0; a < ALGO_COUNT; a++)
		json_object_set_new(object, algo_name((enum algo)a),
			graph_json_ints(model->max_threads[a], PROTO_COUNT));
	return object;
}

static json_t *function_table(const struct model *model, int func)
{
	json_t *function = json_object();

	for (int a = 0; a < ALGO_COUNT; a++) {
		json_t *algo = json_object();

		for (int p = 0; p < PROTO_COUNT; p++) {
			json_t *cell = json_object();

			json_object_set_new(cell, "lat",
				graph_json_float(model->latency[func][a][p]));
			json_object_set_new(cell, "bw",
				graph_json_float(model->bandwidth[func][a][p]));
			json_object_set_new(algo, proto_name((enum proto)p), cell);
		}
		json_object_set_new(function, algo_name((enum algo)a), algo);
	}
	return function;
}

json_t *graph_json_tuning(const struct model *model)
{
	json_t *tuning = json_object();

	json_object_set_new(tuning, "units",
		json_string("lat us, bw GB/s (algorithm bandwidth; 0 = disabled)"));
	json_object_set_new(tuning, "maxThreads", max_threads(model));
	for (int f = 0; f < MODEL_FUNCS; f++)
		json_object_set_new(tuning, model_func_name((enum model_func)f),
			function_table(model, f));
	return tuning;
}

static json_t *choice_json(const struct model *model, const struct model_call *call)
{
	struct model_call rounded = *call;
	json_t *object = json_object();
	struct model_choice choice;

	json_object_set_new(object, "size", json_integer((json_int_t)call->bytes));
	rounded.bytes = model_round(model, call);
	if (!rounded.bytes || model_choose(model, &rounded, &choice)) {
		json_object_set_new(object, "algo", json_null());
		return object;
	}
	json_object_set_new(object, "algo", json_string(algo_name(choice.algo)));
	json_object_set_new(object, "proto", json_string(proto_name(choice.proto)));
	json_object_set_new(object, "nChannels", json_integer(choice.channels));
	json_object_set_new(object, "channelsUsed", json_integer(choice.channels_used));
	json_object_set_new(object, "nThreads", json_integer(choice.threads));
	json_object_set_new(object, "timeUs", graph_json_float(choice.time_us));
	return object;
}

json_t *graph_json_choices(const struct model *model)
{
	static const enum model_func order[] = {MODEL_ALL_REDUCE, MODEL_ALL_GATHER,
		MODEL_REDUCE_SCATTER, MODEL_BROADCAST, MODEL_REDUCE};
	json_t *choices = json_object();

	json_object_set_new(choices, "note",
		json_string("size = nccl-tests size (max of send and recv buffer bytes); "
			    "float32 sum; AllGather/Broadcast as int8; nChannels = "
			    "ncclGetAlgoInfo nMaxChannels; channelsUsed = after "
			    "scheduleCollTasksToPlan for a lone op"));
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		struct model_call call = {.func = order[i],
			.pipe_ops = 1,
			.type = DTYPE_FLOAT32,
			.op = REDOP_SUM};
		json_t *list = json_array();

		for (int bit = SIZE_FIRST; bit <= SIZE_LAST; bit++) {
			call.bytes = (uint64_t)1 << bit;
			json_array_append_new(list, choice_json(model, &call));
		}
		json_object_set_new(choices, model_func_name(order[i]), list);
	}
	return choices;
}
