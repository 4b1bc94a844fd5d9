/*
 * The perf programs' kernels write what their functions write on the host, to the bit,
 * and nothing around it; and they count what those count. All types, operators and kinds
 * of parts.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu.h"
#include "perf/device.h"
#include "perf/gpu_data.h"
#include "test.h"

enum { COUNT = 5000, COUNT_LARGE = 3000001, AROUND = 7, FILLER = 0x5a };

static const struct data_stride all = {0, 1};

/* Room for a part with something before and behind it. */
struct room {
	size_t bytes;
	char *host, *back; /* owned; what the host wrote, what came from the GPU */
	char *device;	   /* owned */
	void *stream;
	struct gpu_data data;
};

static struct room room_open(void)
{
	struct room room = {.bytes = (COUNT_LARGE + 2 * AROUND) * sizeof(uint64_t)};

	room.host = malloc(room.bytes);
	room.back = malloc(room.bytes);
	EQ(room.host && room.back, true);
	gpu_begin();
	EQ(device_open(0), true);
	room.device = gpu_alloc(room.bytes);
	room.stream = device_stream_open();
	EQ(room.stream != NULL, true);
	EQ(gpu_data_open(&room.data) == NULL, true);
	return room;
}

static void room_close(struct room *room)
{
	gpu_data_close(&room->data);
	device_stream_close(room->stream);
	gpu_free(room->device);
	free(room->back);
	free(room->host);
}

/* Of what lies on the device. */
static uint64_t counted(
	struct room *room, const struct data_rule *rule, const struct data_part *part)
{
	uint64_t wrong = UINT64_MAX;

	EQ(gpu_data_count(&room->data, room->stream), true);
	EQ(gpu_data_check(&room->data, rule, part, room->device, room->stream), true);
	EQ(gpu_data_counted(&room->data, room->stream, &wrong), true);
	return wrong;
}

static void one(
	struct room *room, const struct data_rule *rule, const struct data_part *part)
{
	size_t size = element_info(rule->type)->bytes;
	size_t bytes = (part->offset + part->count + AROUND) * size;
	size_t first = part->offset * size,
	       last = (part->offset + part->count) * size - 1;

	memset(room->host, FILLER, bytes);
	EQ(device_write(room->device, room->host, bytes, room->stream), true);
	data_fill(rule, part, room->host, all);
	EQ(gpu_data_fill(&room->data, rule, part, room->device, room->stream), true);
	EQ(device_read(room->back, room->device, bytes, room->stream), true);
	EQ(memcmp(room->host, room->back, bytes), 0);
	EQ(counted(room, rule, part), 0);

	/* far from what it was, also where an average may be near */
	room->host[first] ^= 0x10;
	room->host[last] ^= 0x10;
	room->host[last + 1] ^= 0x10; /* not of the part */
	EQ(device_write(room->device, room->host, bytes, room->stream), true);
	EQ(data_count_wrong(rule, part, room->host, all), 2);
	EQ(counted(room, rule, part), 2);
}

int main(void)
{
	static const uint32_t counts[] = {1, 2, 3, 8, 33};
	struct room room;

	gpu_need();
	room = room_open();
	for (int cell = 0; cell < ELEMENT_COUNT * DATA_OP_COUNT * 5; cell++) {
		uint32_t ranks = counts[cell % 5];
		struct data_rule rule = {(enum element)(cell / 5 % ELEMENT_COUNT),
			(enum data_op)(cell / 5 / ELEMENT_COUNT), ranks, 11};

		for (int kind = PART_COPY; kind <= PART_REDUCED; kind++) {
			struct data_part part = {(enum part_kind)kind, ranks / 2, AROUND,
				COUNT, 123456789};

			one(&room, &rule, &part);
		}
	}
	/* more than a launch has threads */
	one(&room, &(struct data_rule){ELEMENT_BFLOAT16, DATA_SUM, 4, 1},
		&(struct data_part){PART_REDUCED, 0, 1, COUNT_LARGE, 0});
	room_close(&room);
	return 0;
}
