/*
 * cpu_steps.c - the kernels that go through slots, on the CPU.
 *
 * One thread runs all blocks of a launch in turn, each as far as it gets: what steps.cuh
 * does with positions, and lines.cuh with flags, as steps_abi.h says it.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cpu_kernels.h"
#include "exec/cuda/lists/steps_abi.h"
#include "exec/host/kernel.h"

enum { DONE = 0, NO_MEMORY = 2, NAP_US = 20 };

/* Of a slot with flags: what a unit takes there, and holds. */
static const struct {
	uint32_t slot, data;
} units[STEPS_CODECS] = {
	[STEPS_SIMPLE] = {1, 1}, [STEPS_LL] = {16, 8}, [STEPS_LL128] = {128, 120}};

struct run {
	const struct steps_args *args;
	enum steps_codec codec;
	const struct kernel *kernel; /* NULL: it only copies */
	size_t width;		     /* of an element */
	char *sum, *input;	     /* a tile each */
};

/* A block, and how far it is. */
struct lane {
	uint32_t index, rank, lane, channel;
	uint64_t base;
	uint32_t tile, page, step;
	bool has_begun, is_over;
};

static struct dev_word *word_of(
	const struct run *run, uint32_t rank, uint32_t channel, uint32_t lane)
{
	return (struct dev_word *)touch(run->args->ends[rank].words) +
	       channel * STEPS_LANES + lane;
}

static bool is_reached(
	const struct run *run, const struct lane *lane, const struct dev_step_wait *wait)
{
	uint64_t tiles = lane->tile < wait->back ? 0 : lane->tile - wait->back;
	uint64_t want = tiles * wait->length + wait->position;
	const struct dev_end *end = &run->args->ends[wait->rank];
	const struct dev_word *word = touch(
		wait->kind == STEPS_WAIT_ACK ? end->acks : end->words);

	word += lane->channel * STEPS_LANES + wait->lane;
	if (lane->tile < wait->back)
		want = 0;
	return (int64_t)(__atomic_load_n(&word->position, __ATOMIC_SEQ_CST) -
			 (lane->base + want)) >= 0;
}

static size_t page_of(const struct run *run, const struct lane *lane)
{
	const struct dev_steps *head = &run->args->head;

	return ((size_t)lane->rank * head->lane_count + lane->lane) * head->page_count +
	       lane->page;
}

static const struct dev_step *step_at(const struct run *run, const struct lane *lane)
{
	const struct dev_steps *head = &run->args->head;

	return (const struct dev_step *)(run->args->steps + head->steps_at) +
	       page_of(run, lane) * head->step_stride + lane->step;
}

static const struct dev_step_place *places_at(
	const struct run *run, const struct lane *lane)
{
	const struct dev_steps *head = &run->args->head;

	return (const struct dev_step_place *)(run->args->steps + head->places_at) +
	       page_of(run, lane) * head->place_stride;
}

static bool are_waits_over(
	const struct run *run, const struct lane *lane, const struct dev_step *step)
{
	const struct dev_steps *head = &run->args->head;
	const struct dev_step_wait *waits =
		(const struct dev_step_wait *)(run->args->steps + head->waits_at) +
		page_of(run, lane) * head->wait_stride + step->wait_first;
	uint32_t count = (uint32_t)step->local_count + step->ack_count;

	if (run->codec == STEPS_SIMPLE)
		count += step->data_count;
	for (uint32_t i = 0; i < count; i++)
		if (!is_reached(run, lane, &waits[i]))
			return false;
	return true;
}

/* What this channel has of the step's chunk in this tile. */
static uint64_t step_bytes(
	const struct run *run, const struct lane *lane, const struct dev_step *step)
{
	const struct steps_args *args = run->args;
	uint64_t begin = step->bound * args->chunk_bytes;
	uint64_t from = lane->channel * args->part_bytes;
	uint64_t done = lane->tile * args->tile_bytes;
	uint64_t bytes = args->total_bytes > begin ? args->total_bytes - begin : 0;

	bytes = bytes < args->chunk_bytes ? bytes : args->chunk_bytes;
	bytes = bytes > from ? bytes - from : 0;
	bytes = bytes < args->part_bytes ? bytes : args->part_bytes;
	bytes = bytes > done ? bytes - done : 0;
	return bytes < args->tile_bytes ? bytes : args->tile_bytes;
}

static bool is_slot(const struct dev_step_place *place)
{
	return place->space == STEPS_SPACE_STAGE;
}

static char *place_at(const struct run *run, const struct lane *lane,
	const struct dev_step_place *place)
{
	const struct steps_args *args = run->args;
	uint64_t in = args->is_posted ? args->posts[lane->index].in
				      : args->mail[lane->index].in;
	uint64_t out = args->is_posted ? args->posts[lane->index].out
				       : args->mail[lane->index].out;
	uint64_t message = (lane->tile * place->period + place->chunk) &
			   (args->head.depth - 1);

	if (is_slot(place))
		return touch(args->ends[place->rank].stage +
			     lane->channel * args->stage_bytes +
			     (place->slot + message) * args->slot_bytes +
			     place->part * args->stride_bytes);
	if (place->space == SPACE_TMP)
		return touch(args->ends[lane->rank].scratch +
			     lane->channel * args->scratch_bytes +
			     place->chunk * args->tile_bytes);
	return touch((place->space == SPACE_IN ? in : out) +
		     place->chunk * args->chunk_bytes + lane->channel * args->part_bytes +
		     lane->tile * args->tile_bytes);
}

static uint64_t flag_of(const struct lane *lane, const struct dev_step_place *place)
{
	return lane->base + (uint64_t)lane->tile * place->length + place->position;
}

/* ---- slots with flags ---- */

/* False: a unit's flag has not come. */
static bool slot_read(
	enum steps_codec codec, const char *slot, uint64_t flag, char *to, uint64_t bytes)
{
	for (uint64_t at = 0; at < bytes; at += units[codec].data) {
		const uint64_t *words =
			(const uint64_t *)(slot +
					   at / units[codec].data * units[codec].slot);
		uint64_t left = bytes - at, low, high;

		left = left < units[codec].data ? left : units[codec].data;
		if (codec == STEPS_LL128) {
			if (__atomic_load_n(&words[15], __ATOMIC_SEQ_CST) != flag)
				return false;
			memcpy(to + at, words, left);
			continue;
		}
		low = __atomic_load_n(&words[0], __ATOMIC_SEQ_CST);
		high = __atomic_load_n(&words[1], __ATOMIC_SEQ_CST);
		if (low >> 32 != (uint32_t)flag || high >> 32 != (uint32_t)flag)
			return false;
		low = (uint32_t)low | high << 32;
		memcpy(to + at, &low, left);
	}
	return true;
}

static void slot_write(enum steps_codec codec, char *slot, uint64_t flag,
	const char *from, uint64_t bytes)
{
	for (uint64_t at = 0; at < bytes; at += units[codec].data) {
		uint64_t *words =
			(uint64_t *)(slot + at / units[codec].data * units[codec].slot);
		uint64_t left = bytes - at, data = 0;

		left = left < units[codec].data ? left : units[codec].data;
		if (codec == STEPS_LL128) {
			memcpy(words, from + at, left);
			__atomic_store_n(&words[15], flag, __ATOMIC_SEQ_CST);
			continue;
		}
		memcpy(&data, from + at, left);
		__atomic_store_n(
			&words[0], flag << 32 | (uint32_t)data, __ATOMIC_SEQ_CST);
		__atomic_store_n(&words[1], flag << 32 | data >> 32, __ATOMIC_SEQ_CST);
	}
}

/* ---- steps ---- */

/* False: it has not come. */
static bool input_read(const struct run *run, const struct lane *lane,
	const struct dev_step_place *place, char *to, uint64_t bytes)
{
	const char *from = place_at(run, lane, place);

	if (is_slot(place) && run->codec != STEPS_SIMPLE)
		return slot_read(run->codec, from, flag_of(lane, place), to, bytes);
	memcpy(to, from, bytes);
	return true;
}

/* A rank's pre-operator: the number itself, or where it is. */
static union kernel_scalar scalar_of(const struct run *run, const struct lane *lane)
{
	const struct steps_args *args = run->args;
	union kernel_scalar scalar = {.bits = args->is_posted
						      ? args->posts[lane->index].scalar
						      : args->mail[lane->index].scalar};

	if (args->scalars_at >> lane->index & 1)
		memcpy(scalar.bytes, touch(scalar.bits), run->width);
	return scalar;
}

static bool step_fold(
	const struct run *run, const struct lane *lane, const struct dev_step *step)
{
	const struct dev_step_place *places = places_at(run, lane) + step->place_first;
	uint64_t bytes = step_bytes(run, lane, step);

	for (uint32_t i = 0; i < step->input_count; i++) {
		char *to = i ? run->input : run->sum;

		if (!input_read(run, lane, &places[i], to, bytes))
			return false;
		if (run->args->is_scaled && places[i].space == SPACE_IN)
			run->kernel->scale(
				to, to, scalar_of(run, lane), bytes / run->width);
		if (i)
			run->kernel->fold(
				run->sum, run->sum, run->input, bytes / run->width);
	}
	if (run->args->divisor && step->op & OP_POST)
		run->kernel->divide(run->sum, run->args->divisor, bytes / run->width);
	for (uint32_t i = 0; i < step->output_count; i++) {
		const struct dev_step_place *place = &places[step->input_count + i];
		char *to = place_at(run, lane, place);

		if (is_slot(place) && run->codec != STEPS_SIMPLE)
			slot_write(run->codec, to, flag_of(lane, place), run->sum, bytes);
		else
			memcpy(to, run->sum, bytes);
	}
	return true;
}

static void lane_tell(const struct run *run, const struct lane *lane, uint64_t position)
{
	struct dev_word *word = word_of(run, lane->rank, lane->channel, lane->lane);

	__atomic_store_n(&word->position, position, __ATOMIC_SEQ_CST);
	if (run->args->head.lane_count == 1 && lane->is_over)
		__atomic_store_n(&word[1].position, position, __ATOMIC_SEQ_CST);
}

/* The next page, the next tile, or the end. */
static void lane_turn(const struct run *run, struct lane *lane)
{
	lane->step = 0;
	if (++lane->page < run->args->head.page_count)
		return;
	lane->page = 0;
	if (++lane->tile < run->args->tile_count)
		return;
	lane->is_over = true;
	lane_tell(run, lane, lane->base + run->args->span);
}

/* Has every rank ended the call before? */
static bool lane_begin(const struct run *run, struct lane *lane)
{
	for (uint32_t r = 0; r < run->args->head.rank_count && !lane->has_begun; r++)
		for (uint32_t l = 0; l < STEPS_LANES; l++) {
			const struct dev_step_wait wait = {.rank = (uint16_t)r,
				.lane = (uint8_t)l,
				.kind = STEPS_WAIT_ACK};

			if (!is_reached(run, lane, &wait))
				return false;
		}
	lane->has_begun = true;
	return true;
}

/* Does anybody wait for the position after it? A move of several chunks is told with its
 * last. */
static bool is_heard(
	const struct run *run, const struct lane *lane, const struct dev_step *step)
{
	uint32_t heard = TELL_ACK | TELL_LOCAL |
			 (run->codec == STEPS_SIMPLE ? TELL_DATA : 0);

	heard |= lane->tile + 1 < run->args->tile_count ? TELL_ACK_LATER : 0;
	return step->tell & heard;
}

/* As far as it gets; false: not a step. */
static bool lane_run(const struct run *run, struct lane *lane)
{
	bool has_moved = false;

	if (!lane_begin(run, lane))
		return false;
	while (!lane->is_over) {
		const struct dev_step *step = step_at(run, lane);

		if (lane->step == run->args->head.step_stride || !step->op) {
			lane_turn(run, lane);
			has_moved = true;
			continue;
		}
		if (!are_waits_over(run, lane, step) || !step_fold(run, lane, step))
			return has_moved;
		if (is_heard(run, lane, step))
			lane_tell(run, lane,
				lane->base + (uint64_t)lane->tile * step->length +
					step->position);
		lane->step++;
		has_moved = true;
	}
	return has_moved;
}

/* As mail_read() of meet.cuh. */
static bool mail_is_alike(const struct steps_args *args)
{
	for (uint32_t r = 0; r < args->rank_count && !args->is_posted; r++) {
		if (r && args->mail[r].ready != args->call)
			return false;
		if (args->mail[r].sign != args->mail->sign) {
			*args->trouble = 1 + r;
			return false;
		}
	}
	return true;
}

static void lanes_make(
	const struct run *run, const struct cpu_grid *grid, struct lane *lanes)
{
	const struct steps_args *args = run->args;

	for (uint32_t i = 0; i < grid->blocks * grid->ranks; i++) {
		uint32_t x = i % grid->blocks;

		lanes[i] = (struct lane){.index = i / grid->blocks,
			.rank = args->ranks[i / grid->blocks],
			.lane = x % args->head.lane_count,
			.channel = x / args->head.lane_count};
		lanes[i].base = __atomic_load_n(
			&word_of(run, lanes[i].rank, lanes[i].channel, lanes[i].lane)
				 ->position,
			__ATOMIC_SEQ_CST);
		if (args->is_followed && !x)
			__atomic_store_n(&word_of(run, lanes[i].rank, 0, 0)->cleaned,
				lanes[i].base + 1, __ATOMIC_SEQ_CST);
	}
}

static void lanes_run(const struct run *run, struct lane *lanes, uint32_t count)
{
	for (uint32_t left = count; left;) {
		bool has_moved = false;

		left = 0;
		for (uint32_t i = 0; i < count; i++) {
			if (!lanes[i].is_over)
				has_moved |= lane_run(run, &lanes[i]);
			left += !lanes[i].is_over;
		}
		if (__atomic_load_n(run->args->abort, __ATOMIC_SEQ_CST))
			return;
		usleep(has_moved ? 0 : NAP_US);
	}
}

static enum steps_codec codec_of(const char *name)
{
	if (!strncmp(name, "steps_ll128_", strlen("steps_ll128_")))
		return STEPS_LL128;
	return strncmp(name, "steps_ll_", strlen("steps_ll_")) ? STEPS_SIMPLE : STEPS_LL;
}

/* What it folds by, from steps_<codec>_<type>_<op>. */
static void run_arith(struct run *run, const char *name)
{
	char end[64];

	for (int t = 0; t < DTYPE_COUNT; t++)
		for (int o = REDOP_SUM; o <= REDOP_MIN; o++) {
			size_t length = (size_t)snprintf(end, sizeof(end), "_%s_%s",
				dtype_name((enum dtype)t), redop_name((enum redop)o));

			if (strlen(name) < length ||
				strcmp(name + strlen(name) - length, end))
				continue;
			run->kernel = kernel_get((enum dtype)t, (enum redop)o);
			run->width = dtype_size((enum dtype)t);
		}
}

int steps_do(const struct cpu_grid *grid, const char *name, void *arguments)
{
	const struct steps_args *args = arguments;
	struct run run = {.args = args,
		.codec = codec_of(name),
		.width = 1,
		.sum = malloc(args->tile_bytes + 1),
		.input = malloc(args->tile_bytes + 1)};
	struct lane *lanes = calloc(grid->blocks * grid->ranks, sizeof(*lanes));
	int code = DONE;

	run_arith(&run, name);
	if (!run.sum || !run.input || !lanes)
		code = NO_MEMORY;
	if (!code && mail_is_alike(args)) {
		lanes_make(&run, grid, lanes);
		lanes_run(&run, lanes, grid->blocks * grid->ranks);
	}
	free(lanes);
	free(run.sum);
	free(run.input);
	return code;
}
