#include "mistakes.h"

const char *const kind_names[KINDS] = {"all_reduce", "broadcast", "reduce", "all_gather",
	"reduce_scatter", "alltoall", "gather", "scatter", "message"};

const char *const mistake_names[MISTAKES] = {
	"size", "type", "operator", "root", "kind", "order", "sort"};

static ncclResult_t message_call(
	const struct request *request, const struct request_place *place)
{
	int last = place->rank_count - 1;

	if (place->rank == 0)
		return ncclSend(place->in, request->count, request->type, last,
			place->comm, place->stream);
	if (place->rank == last)
		return ncclRecv(place->out, request->count, request->type, 0, place->comm,
			place->stream);
	return ncclSuccess;
}

ncclResult_t request_call(
	const struct request *request, const struct request_place *place)
{
	const struct collective_call made = {.collective = request->kind,
		.in = place->in,
		.out = place->out,
		.count = request->count,
		.type = request->type,
		.op = request->op,
		.root = request->root,
		.comm = place->comm,
		.stream = place->stream};

	return request->kind == MESSAGE ? message_call(request, place)
					: collective_call(&made);
}

bool request_wrong(
	const struct request *right, enum mistake mistake, struct request *wrong)
{
	int kind = right->kind;

	*wrong = *right;
	if (mistake == SIZE)
		wrong->count--;
	else if (mistake == TYPE)
		wrong->type = kind == MESSAGE ? ncclInt8 : ncclFloat32;
	else if (mistake == OPERATOR)
		wrong->op = ncclMax;
	else if (mistake == ROOT)
		wrong->root = 1;
	else
		wrong->kind = mistake == OTHER_SORT ? MESSAGE : (kind + 1) % MESSAGE;
	if (mistake == OPERATOR)
		return kind == ALL_REDUCE || kind == REDUCE || kind == REDUCE_SCATTER;
	if (mistake == ROOT)
		return kind != MESSAGE && collective_has_root(kind);
	return mistake != OTHER_SORT || kind != MESSAGE;
}
