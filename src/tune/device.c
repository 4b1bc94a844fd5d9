#include "tune/device.h"

#include "base/param.h"
#include "tune/choose.h"

/* Up to so many bytes the first, the second order of protocols is best. */
enum { SMALL = 64 << 10, MIDDLE = 4 << 20, SLOTS_DEPTH = 4 };

/* From there on kernels were faster than copies to host memory and back (design/14). */
enum { HAUL_LEAST = 256 << 10 };

/* May this protocol be used? For collectives the model does not know, any. */
static bool is_allowed(const struct device_question *question, enum proto proto)
{
	enum model_func func;

	return !question->limits || !limits_func(question->call.coll, &func) ||
	       limits_rules(question->limits)->proto[func][proto];
}

/* The best for a call of that size among those that the environment and the call allow.
 */
static enum proto proto_choose(const struct device_question *question)
{
	static const enum proto orders[][3] = {{PROTO_LL, PROTO_LL128, PROTO_SIMPLE},
		{PROTO_LL128, PROTO_SIMPLE, PROTO_LL},
		{PROTO_SIMPLE, PROTO_LL128, PROTO_LL}};
	size_t bytes = question->call.bytes;
	const enum proto *order = orders[(bytes > SMALL) + (bytes > MIDDLE)];
	unsigned wanted = question->protos ? question->protos : ~0u;

	for (uint32_t i = 0; i < 3; i++)
		/* lines of 128 bytes do not arrive whole in host memory */
		if (is_allowed(question, order[i]) && wanted & 1u << order[i] &&
			(order[i] != PROTO_LL128 || !question->is_apart))
			return order[i];
	return PROTO_SIMPLE;
}

static enum err choose_slots(
	const struct device_question *question, struct device_choice *choice)
{
	enum coll coll = question->call.coll;
	const char *name = NULL;
	enum err e = limits_schedule(question->limits, &question->call, &name);

	if (e)
		return e;
	/* a selection of the direct schedule has no protocols */
	if (!name && question->protos)
		name = question->schedule;
	if (!name && !question->is_apart && is_allowed(question, PROTO_SIMPLE))
		return OK;
	if (catalog_find(coll, name ? name : "ring"))
		choice->kind = catalog_find(coll, name ? name : "ring");
	choice->is_staged = true;
	choice->proto = proto_choose(question);
	choice->depth = SLOTS_DEPTH;
	return OK;
}

/* The schedule is the one that the host would run, so that results are the same to the
 * bit. Flags in slots do not travel. */
static enum err choose_hauled(
	const struct device_question *question, struct device_choice *choice)
{
	const struct choose_args args = {.coll = question->call.coll,
		.type = question->call.type,
		.rank_count = question->call.rank_count,
		.hosts = question->hosts,
		.bytes = question->call.bytes,
		.limits = question->limits,
		.asked = question->schedule};
	struct choice made;
	enum err e = choose(&args, &made);

	*choice = (struct device_choice){.kind = made.staged,
		.is_staged = true,
		.proto = PROTO_SIMPLE,
		.depth = SLOTS_DEPTH};
	return e;
}

size_t device_haul_least(void)
{
	int64_t asked = param_int(PARAM_GPU_HAUL);

	return asked < 0 ? HAUL_LEAST : (size_t)asked;
}

enum err device_choose(
	const struct device_question *question, struct device_choice *choice)
{
	if (question->hosts)
		return choose_hauled(question, choice);
	*choice = (struct device_choice){
		.kind = catalog_find(question->call.coll, "direct"),
		.proto = PROTO_SIMPLE,
		.depth = 1};
	if (!question->has_slots || question->call.rank_count == 1)
		return OK;
	return choose_slots(question, choice);
}

/*
 * What is not hidden behind the network is the first part on its way in and the last on
 * its way out, and one copy more of every chunk costs as much as COPY_BYTES do: on an
 * H200 about 7 us at 28 GB/s, where two processes copy at once (alone at 55).
 */
enum { COPY_BYTES = 192 << 10, PARTS_MAX = 16 };

static uint32_t parts_count(const struct device_copy *copy)
{
	size_t cost = (size_t)COPY_BYTES * copy->chunks;
	uint32_t parts = 1;

	while (parts < PARTS_MAX && (parts + 1) * (parts + 1) <= 2 * (copy->bytes / cost))
		parts++;
	return parts;
}

size_t device_part(const struct device_copy *copy)
{
	size_t asked = (size_t)param_int(PARAM_GPU_PART), tile = copy->tile_bytes;
	size_t part = asked ? asked : copy->chunk_bytes / parts_count(copy) + 1;

	if (!asked && parts_count(copy) == 1)
		return copy->chunk_bytes;
	part = (part + tile - 1) / tile * tile;
	return part < copy->chunk_bytes ? part : copy->chunk_bytes;
}
