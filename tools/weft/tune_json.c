#include "base/dtype.h"
#include "weft/graph_json.h"
#include "weft/tune.h"
#include "weft/tune_net.h"
#include "weft/tune_rows.h"

static json_t *row_json(const struct tune_row *row)
{
	json_t *object = json_object();

	json_object_set_new(object, "size", json_integer((json_int_t)row->bytes));
	if (!row->usable) {
		json_object_set_new(object, "algo", json_null());
		return object;
	}
	json_object_set_new(object, "algo", json_string(algo_name(row->choice.algo)));
	json_object_set_new(object, "proto", json_string(proto_name(row->choice.proto)));
	json_object_set_new(object, "nChannels", json_integer(row->choice.channels));
	json_object_set_new(
		object, "channelsUsed", json_integer(row->choice.channels_used));
	json_object_set_new(object, "nThreads", json_integer(row->choice.threads));
	json_object_set_new(object, "timeUs", graph_json_float(row->choice.time_us));
	json_object_set_new(object, "algbw", graph_json_float((float)row->algbw));
	json_object_set_new(object, "busbw", graph_json_float((float)row->busbw));
	return object;
}

static json_t *runs_json(const struct tune_rows *rows)
{
	json_t *list = json_array();

	for (int i = 0; i < rows->run_count; i++) {
		const struct tune_run *run = &rows->runs[i];
		json_t *object = json_object();

		json_object_set_new(object, "algo", json_string(algo_name(run->algo)));
		json_object_set_new(object, "proto", json_string(proto_name(run->proto)));
		json_object_set_new(object, "upTo", json_integer((json_int_t)run->last));
		json_array_append_new(list, object);
	}
	return list;
}

static json_t *collective_json(const struct model *model, const struct model_call *call,
	const struct tune_net *net)
{
	json_t *object = json_object(), *sizes = json_array();
	struct tune_rows rows;

	tune_rows_fill(model, call, net, &rows);
	for (int i = 0; i < TUNE_ROWS; i++)
		json_array_append_new(sizes, row_json(&rows.rows[i]));
	json_object_set_new(object, "switches", runs_json(&rows));
	json_object_set_new(object, "sizes", sizes);
	return object;
}

static json_t *choices_json(const struct model *model, const struct tune_args *args,
	const struct tune_net *net)
{
	json_t *choices = json_object();

	for (int f = 0; f < MODEL_FUNCS; f++) {
		const char *name = model_func_name((enum model_func)f);
		struct model_call call = {
			.func = (enum model_func)f, .type = args->type, .op = args->op};

		if (tune_args_want(args, name))
			json_object_set_new(
				choices, name, collective_json(model, &call, net));
	}
	return choices;
}

enum err tune_json(const struct graph_job *job, const struct tune_args *args)
{
	const struct tune_net net = tune_net_find(args);
	json_t *top = json_object();
	int bad = 0;

	bad |= json_object_set_new(top, "net",
		json_string(net.is_socket ? "socket"
			    : net.type	  ? "ofi"
					  : "plain"));
	bad |= json_object_set_new(top, "run", graph_json_run(job));
	bad |= json_object_set_new(top, "comm", graph_json_comm(job->decision->cluster));
	bad |= json_object_set_new(
		top, "type", json_string(dtype_name((enum dtype)args->type)));
	bad |= json_object_set_new(
		top, "op", json_string(redop_name((enum redop)args->op)));
	if (args->table)
		bad |= json_object_set_new(top, "tuning", graph_json_tuning(&job->model));
	bad |= json_object_set_new(top, "choices", choices_json(&job->model, args, &net));
	if (!bad)
		return graph_json_print(top);
	json_decref(top);
	return err_set(ERR_SYSTEM, "no memory for the choices as JSON");
}
