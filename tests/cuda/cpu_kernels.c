#include "cpu_kernels.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cpu_streams.h"
#include "exec/cuda/lists/ferry_abi.h"
#include "exec/cuda/lists/steps_abi.h"
#include "perf/gpu_data_abi.h"

enum { DONE = 0, NOT_SUPPORTED = 801, NAP_US = 20 };

static _Thread_local const struct context *running;

void *touch(uint64_t address)
{
	if (device_count() == 1 || memory_is_reached(running, address))
		return (void *)(uintptr_t)address;
	fprintf(stderr,
		"cpu_cuda: a kernel on device %d touches %#llx, which it does not "
		"reach\n",
		running->device, (unsigned long long)address);
	abort();
}

static void fold_sum(void *to, const void *from, size_t bytes)
{
	for (size_t i = 0; i < bytes / 4; i++)
		((uint32_t *)to)[i] += ((const uint32_t *)from)[i];
}

static void fold_sum_float(void *to, const void *from, size_t bytes)
{
	for (size_t i = 0; i < bytes / 4; i++)
		((float *)to)[i] += ((const float *)from)[i];
}

static void fold_max(void *to, const void *from, size_t bytes)
{
	int32_t *mine = to;
	const int32_t *other = from;

	for (size_t i = 0; i < bytes / 4; i++)
		mine[i] = mine[i] > other[i] ? mine[i] : other[i];
}

static const struct {
	const char *name;
	fold_of *fold;
} folds[] = {{"_int32_sum", fold_sum}, {"_uint32_sum", fold_sum},
	{"_int32_max", fold_max}, {"_float_sum", fold_sum_float}};
enum { FOLDS = sizeof(folds) / sizeof(*folds) };

static bool ends_with(const char *name, const char *end)
{
	size_t length = strlen(name), part = strlen(end);

	return length >= part && !strcmp(name + length - part, end);
}

fold_of *fold_find(const char *name)
{
	for (int i = 0; i < FOLDS; i++)
		if (ends_with(name, folds[i].name))
			return folds[i].fold;
	return NULL;
}

/* Everybody's buffers. */
struct posts {
	uint64_t in[MOVES_RANKS_MAX], out[MOVES_RANKS_MAX];
};

static uint32_t word_get(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static void word_set(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_SEQ_CST);
}

/* Until all ranks' words have the number; false: told to stop. */
static bool words_wait(
	const struct moves_args *args, const uint32_t *words, uint32_t number)
{
	for (uint32_t r = 0; r < args->rank_count; r++)
		while ((int32_t)(word_get(&words[r]) - number) < 0) {
			if (word_get(args->abort))
				return false;
			usleep(NAP_US);
		}
	return true;
}

/* As mail_read() of meet.cuh. */
static bool mail_read(const struct moves_args *args, struct posts *posts)
{
	for (uint32_t r = 0; r < args->rank_count; r++) {
		const struct dev_mail *mail = &args->mail[r];

		posts->in[r] = args->is_posted ? args->posts[r].in : mail->in;
		posts->out[r] = args->is_posted ? args->posts[r].out : mail->out;
		if (args->is_posted)
			continue;
		if (r && mail->ready != args->call)
			return false;
		if (mail->sign != args->mail->sign) {
			*args->trouble = 1 + r;
			return false;
		}
	}
	return true;
}

/* As lines_post(). */
static void line_post(const struct moves_args *args, uint32_t to, uint32_t call)
{
	struct dev_hall *hall = touch((uintptr_t)args->posts[to].hall);
	uint64_t *line = hall->lines[args->rank];
	const uint64_t values[LINE_WORDS / 2] = {args->posts[to].in, args->posts[to].out,
		args->posts[to].scalar, args->sign};

	for (uint32_t i = 0; i < LINE_WORDS; i++)
		__atomic_store_n(&line[i],
			(uint64_t)call << 32 |
				(i % 2 ? values[i / 2] >> 32 : (uint32_t)values[i / 2]),
			__ATOMIC_SEQ_CST);
}

/* As lines_read() for one rank; false: told to stop. */
static bool line_read(const struct moves_args *args, uint32_t from, uint32_t call,
	uint64_t values[LINE_WORDS / 2])
{
	const uint64_t *line = args->posts[args->rank].hall->lines[from];

	memset(values, 0, LINE_WORDS / 2 * sizeof(*values));
	for (uint32_t i = 0; i < LINE_WORDS; i++) {
		uint64_t word;

		while ((int32_t)((word = __atomic_load_n(&line[i], __ATOMIC_SEQ_CST)) >>
				 32) -
				(int32_t)call <
			0) {
			if (word_get(args->abort))
				return false;
			usleep(NAP_US);
		}
		values[i / 2] |= (word & UINT32_MAX) << 32 * (i % 2);
	}
	return true;
}

enum meeting_end { MEETING_EQUAL, MEETING_UNEQUAL, MEETING_STOPPED };

/* As ranks_meet() of a resident launch. */
static enum meeting_end ranks_meet(
	const struct moves_args *args, uint32_t call, struct posts *posts)
{
	enum meeting_end end = MEETING_EQUAL;

	for (uint32_t r = 0; r < args->rank_count; r++)
		line_post(args, r, call);
	for (uint32_t r = 0; r < args->rank_count; r++) {
		uint64_t values[LINE_WORDS / 2];

		if (!line_read(args, r, call, values))
			return MEETING_STOPPED;
		posts->in[r] = values[0];
		posts->out[r] = values[1];
		if (values[3] != args->sign) {
			*args->trouble = 1 + r;
			end = MEETING_UNEQUAL;
		}
	}
	return end;
}

/* As ranks_part(). */
static void ranks_part(const struct moves_args *args, uint32_t call)
{
	struct dev_hall *own = args->posts[args->rank].hall;

	for (uint32_t r = 0; r < args->rank_count; r++) {
		struct dev_hall *hall = touch((uintptr_t)args->posts[r].hall);

		word_set(&hall->gone[0][args->rank], call);
	}
	words_wait(args, own->gone[0], call);
	word_set(&own->call, call);
}

static char *place_at(const struct moves_args *args, const struct posts *posts,
	const struct dev_place *place)
{
	const uint64_t *buffers = place->space == 0 ? posts->in : posts->out;

	return touch(buffers[place->rank] + place->chunk * args->chunk_bytes);
}

/* What there is of a move's chunks. */
static uint64_t chunks_bytes(const struct moves_args *args, const struct dev_move *move)
{
	uint64_t begin = move->chunk * args->chunk_bytes;
	uint64_t all = move->count * args->chunk_bytes;
	uint64_t left = args->total_bytes > begin ? args->total_bytes - begin : 0;

	return left < all ? left : all;
}

static int move_do(const struct moves_args *args, const struct posts *posts,
	const struct dev_move *move, const struct dev_place *places, fold_of *fold)
{
	uint32_t all = (uint32_t)move->input_count + move->output_count;
	uint64_t bytes = chunks_bytes(args, move);
	char *at[2 * MOVES_RANKS_MAX + 2], *sum;

	for (uint32_t i = 0; i < all; i++)
		at[i] = place_at(args, posts, &places[move->first + i]);
	sum = malloc(bytes + 1);
	if (!sum || (move->input_count > 1 && !fold))
		return NOT_SUPPORTED;
	memcpy(sum, at[0], bytes);
	for (uint32_t i = 1; i < move->input_count; i++)
		fold(sum, at[i], bytes);
	for (uint32_t i = move->input_count; i < all; i++)
		memcpy(at[i], sum, bytes);
	free(sum);
	return DONE;
}

static int page_do(const struct moves_args *args, uint32_t rank,
	const struct posts *posts, fold_of *fold)
{
	const struct dev_page *page =
		(const void *)(args->pages + rank * args->page_bytes);
	const struct dev_move *moves = (const void *)(page + 1);
	const struct dev_place *places = (const void *)(moves + page->move_count);
	int code = DONE;

	for (uint32_t m = 0; m < page->move_count && !code; m++)
		code = move_do(args, posts, &moves[m], places, fold);
	return code;
}

/* CPU_CUDA_SPOIL="RANK:BYTE,..": a bit of that byte of what the rank has got is wrong. */
static void spoil(const struct moves_args *args, uint32_t rank, uint64_t out)
{
	const char *wanted = getenv("CPU_CUDA_SPOIL");
	unsigned long long byte;
	unsigned who;

	for (; wanted && sscanf(wanted, "%u:%llu", &who, &byte) == 2;
		wanted = strchr(wanted, ',') ? strchr(wanted, ',') + 1 : NULL)
		if (who == rank && byte < args->total_bytes)
			*((char *)touch(out) + byte) ^= 1;
}

static int fused_do(const struct moves_args *args, uint32_t ranks, fold_of *fold)
{
	struct posts posts;
	int code = DONE;

	if (!mail_read(args, &posts))
		return DONE;
	for (uint32_t r = 0; r < ranks && !code; r++)
		code = page_do(args, r, &posts, fold);
	for (uint32_t r = 0; r < ranks && !code; r++)
		spoil(args, r, posts.out[r]);
	return code;
}

static int resident_do(const struct moves_args *args, fold_of *fold)
{
	uint32_t call = args->call ? args->call : args->posts[args->rank].hall->call + 1;
	struct posts posts;
	enum meeting_end end = ranks_meet(args, call, &posts);
	int code = DONE;

	if (end == MEETING_STOPPED)
		return DONE;
	if (end == MEETING_EQUAL)
		code = page_do(args, args->rank, &posts, fold);
	ranks_part(args, call);
	spoil(args, args->rank, posts.out[args->rank]);
	return code;
}

static int moves_do(const struct moves_args *args, uint32_t ranks, fold_of *fold)
{
	if (args->is_scaled)
		return NOT_SUPPORTED;
	return args->is_resident ? resident_do(args, fold) : fused_do(args, ranks, fold);
}

static int pairs_do(const struct pairs_args *args)
{
	for (uint32_t i = 0; i < args->count; i++) {
		const struct dev_pair *pair = &args->pairs[i];
		struct dev_slot slot = {pair->from, pair->bytes, 1, {0}};

		if (pair->is_send)
			return NOT_SUPPORTED;
		if (!pair->from)
			slot = args->hall->boxes[pair->peer][pair->ordinal];
		if (slot.posted != 1 || (pair->is_put && word_get(args->abort)))
			return DONE; /* let go by an abort */
		if (slot.bytes != pair->bytes)
			*args->trouble = 1u + pair->peer;
		memmove(touch(pair->data), touch(slot.from),
			slot.bytes < pair->bytes ? slot.bytes : pair->bytes);
	}
	return DONE;
}

/* One step of a send or receive whose other side runs at the same time: true when it is
 * complete. See pairs.cuh. */
static bool send_step(const struct pairs_args *args, uint32_t i, bool *is_posted)
{
	const struct dev_pair *pair = &args->pairs[i];
	uint32_t number = args->hall->sent[pair->peer] + 1 + pair->ordinal;
	const uint32_t *taken = &args->hall->taken[pair->peer][number % BOX_SLOTS];
	struct dev_hall *peer = touch((uintptr_t)args->peers[i]);
	struct dev_slot *slot = &peer->boxes[args->rank][number % BOX_SLOTS];

	if (!*is_posted && (int32_t)(word_get(taken) - (number - BOX_SLOTS)) >= 0) {
		slot->from = pair->data;
		slot->bytes = pair->bytes;
		word_set(&slot->posted, number);
		*is_posted = true;
	}
	return *is_posted && word_get(taken) == number;
}

static bool receive_step(const struct pairs_args *args, uint32_t i)
{
	const struct dev_pair *pair = &args->pairs[i];
	uint32_t number = args->hall->got[pair->peer] + 1 + pair->ordinal;
	const struct dev_slot *slot = &args->hall->boxes[pair->peer][number % BOX_SLOTS];
	uint64_t from = pair->from, bytes = pair->bytes;

	if (!from && word_get(&slot->posted) != number)
		return false;
	if (!from && slot->bytes != pair->bytes)
		*args->trouble = 1u + pair->peer;
	bytes = !from && slot->bytes < bytes ? slot->bytes : bytes;
	memmove(touch(pair->data), touch(from ? from : slot->from), bytes);
	if (!from)
		word_set(&args->peers[i]->taken[args->rank][number % BOX_SLOTS], number);
	return true;
}

static void numbers_count(const struct pairs_args *args)
{
	for (uint32_t i = 0; i < args->count; i++) {
		const struct dev_pair *pair = &args->pairs[i];

		if (pair->is_last && pair->is_send)
			args->hall->sent[pair->peer] += 1 + pair->ordinal;
		else if (pair->is_last && !pair->from)
			args->hall->got[pair->peer] += 1 + pair->ordinal;
	}
}

static int pairs_do_resident(const struct pairs_args *args)
{
	bool is_done[PAIRS_MAX] = {false}, is_posted[PAIRS_MAX] = {false};

	for (uint32_t left = args->count; left && !word_get(args->abort);) {
		for (uint32_t i = 0; i < args->count; i++) {
			if (is_done[i])
				continue;
			is_done[i] = args->pairs[i].is_send
					     ? send_step(args, i, &is_posted[i])
					     : receive_step(args, i);
			left -= is_done[i];
		}
		usleep(left ? NAP_US : 0);
	}
	numbers_count(args);
	return DONE;
}

/* As ferry.cu. */
static int ferry_do(const struct ferry_args *args)
{
	for (uint32_t i = 0; i < args->count; i++)
		if (args->trips[i].in_bytes)
			memcpy(touch(args->trips[i].in_berth), touch(args->trips[i].in),
				args->trips[i].in_bytes);
	for (uint32_t i = 0; i < args->count; i++)
		word_set(touch(args->trips[i].ready_at), args->trips[i].ready);
	for (uint32_t i = 0; i < args->count; i++) {
		const struct dev_trip *trip = &args->trips[i];

		while ((int32_t)(word_get(touch(trip->done_at)) - trip->done) < 0)
			usleep(NAP_US);
		if (trip->out_bytes)
			memcpy(touch(trip->out), touch(trip->out_berth), trip->out_bytes);
	}
	for (uint32_t i = 0; i < args->count; i++)
		word_set(touch(args->trips[i].gone_at), args->trips[i].gone);
	return DONE;
}

/* As the kernels of gpu_data.cu, one thread after the other. */
static void data_do(
	const char *name, const struct cpu_grid *grid, const struct gpu_data_args *args)
{
	size_t threads = (size_t)grid->blocks * grid->threads;
	uint64_t wrong = 0;

	for (size_t i = 0; i < threads; i++) {
		const struct data_stride stride = {i, threads};

		if (strcmp(name, "perf_check"))
			data_fill(&args->rule, &args->part, touch(args->buffer), stride);
		else
			wrong += data_count_wrong(
				&args->rule, &args->part, touch(args->buffer), stride);
	}
	if (wrong)
		*(uint64_t *)touch(args->wrong) += wrong;
}

static bool begins_with(const char *name, const char *begin)
{
	return !strncmp(name, begin, strlen(begin));
}

size_t cpu_kernel_bytes(const char *name)
{
	if (begins_with(name, "moves_"))
		return sizeof(struct moves_args);
	if (begins_with(name, "steps_"))
		return sizeof(struct steps_args);
	if (!strcmp(name, "ferry"))
		return sizeof(struct ferry_args);
	if (begins_with(name, "perf_"))
		return sizeof(struct gpu_data_args);
	return strcmp(name, "pairs_copy") ? 0 : sizeof(struct pairs_args);
}

int cpu_kernel_do(const char *name, const struct cpu_grid *grid, void *args)
{
	fold_of *fold = fold_find(name);

	running = grid->context;
	if (!strcmp(name, "pairs_copy"))
		return ((const struct pairs_args *)args)->is_resident
			       ? pairs_do_resident(args)
			       : pairs_do(args);
	if (!strcmp(name, "ferry"))
		return ferry_do(args);
	if (begins_with(name, "perf_")) {
		data_do(name, grid, args);
		return DONE;
	}
	if (begins_with(name, "steps_"))
		return steps_do(grid, name, args);
	if (!fold && !ends_with(name, "_copy"))
		return NOT_SUPPORTED;
	return moves_do(args, grid->ranks, fold);
}
