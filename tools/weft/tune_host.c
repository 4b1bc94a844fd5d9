/* Host memory: the measured table of tune/choose.c, as calls of this host would meet it.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "common/machine.h"
#include "link/board.h"
#include "tune/choose.h"
#include "weft/tune.h"
#include "weft/tune_rows.h"

enum { NAME_WIDTH = 20 };

/* What a run of sizes gets. */
struct stretch {
	uint64_t first, last; /* bytes */
	struct choice choice;
};

static bool same(const struct choice *a, const struct choice *b)
{
	return a->eager == b->eager && a->direct == b->direct && a->staged == b->staged &&
	       a->depth == b->depth && a->direct_tile == b->direct_tile &&
	       a->staged_tile == b->staged_tile;
}

/* Ask for every power of two; neighbours that get the same are one. */
static enum err stretches_find(
	struct choose_args *ask, struct stretch stretches[TUNE_ROWS], int *count)
{
	*count = 0;
	for (int bit = TUNE_SIZE_FIRST; bit <= TUNE_SIZE_LAST; bit++) {
		struct stretch *last = stretches + *count - 1;
		struct choice choice;
		enum err e;

		ask->bytes = (size_t)1 << bit;
		e = choose(ask, &choice);
		if (e)
			return e;
		if (!*count || !same(&last->choice, &choice)) {
			last = stretches + (*count)++;
			*last = (struct stretch){.first = ask->bytes, .choice = choice};
		}
		last->last = ask->bytes;
	}
	return OK;
}

static const char *direct_name(const struct choice *choice)
{
	return choice->eager ? "-" : choice->direct->name;
}

/* "-" where there is nothing to cut, "whole" where it is not cut. */
static void print_tile(size_t bytes, bool any)
{
	char text[TUNE_SIZE_TEXT] = "whole";

	if (!any)
		snprintf(text, sizeof(text), "-");
	else if (bytes)
		tune_size_text(bytes, text);
	printf("  %9s", text);
}

static void print_stretches(enum coll coll, const struct stretch *stretches, int count)
{
	for (int i = 0; i < count; i++) {
		const struct stretch *s = &stretches[i];
		char first[TUNE_SIZE_TEXT], last[TUNE_SIZE_TEXT];

		tune_size_text(s->first, first);
		tune_size_text(s->last, last);
		printf("%-14s  %9s to %-9s  %-5s  %-*s", i ? "" : coll_name(coll), first,
			last, s->choice.eager ? "eager" : "-", NAME_WIDTH,
			direct_name(&s->choice));
		print_tile(s->choice.direct_tile, !s->choice.eager);
		printf("  %-*s", NAME_WIDTH, s->choice.staged->name);
		print_tile(s->choice.staged_tile, true);
		printf("\n");
	}
}

static json_t *stretches_json(const struct stretch *stretches, int count)
{
	json_t *list = json_array();

	for (int i = 0; i < count; i++) {
		const struct choice *choice = &stretches[i].choice;
		json_t *object = json_object();

		json_object_set_new(
			object, "from", json_integer((json_int_t)stretches[i].first));
		json_object_set_new(
			object, "upTo", json_integer((json_int_t)stretches[i].last));
		json_object_set_new(object, "eager", json_boolean(choice->eager));
		json_object_set_new(object, "direct",
			choice->eager ? json_null() : json_string(choice->direct->name));
		json_object_set_new(object, "staged", json_string(choice->staged->name));
		json_object_set_new(object, "directTile",
			json_integer((json_int_t)choice->direct_tile));
		json_object_set_new(object, "stagedTile",
			json_integer((json_int_t)choice->staged_tile));
		json_array_append_new(list, object);
	}
	return list;
}

/* The room a card has is the board's to know. */
static enum err eager_room(uint32_t ranks, size_t *bytes)
{
	struct board *board;
	enum err e = board_create(&(struct board_size){ranks, 1, ranks, 1}, "", &board);

	if (e)
		return e;
	*bytes = board->eager_bytes;
	board_release(board);
	return OK;
}

static enum err table_walk(
	const struct tune_args *args, struct choose_args *ask, json_t *colls)
{
	struct stretch stretches[TUNE_ROWS];
	enum err e = OK;
	int count;

	for (int c = 0; c < COLL_COUNT && !e; c++) {
		if (!tune_args_want(args, coll_name((enum coll)c)))
			continue;
		ask->coll = (enum coll)c;
		e = stretches_find(ask, stretches, &count);
		if (e)
			break;
		if (args->json)
			json_object_set_new(colls, coll_name(ask->coll),
				stretches_json(stretches, count));
		else
			print_stretches(ask->coll, stretches, count);
	}
	return e;
}

static void print_head(const struct machine *machine, const struct choose_args *ask)
{
	if (ask->hosts)
		printf("%" PRIu32 " ranks on %" PRIu32 " hosts", ask->rank_count,
			ask->hosts->host_count);
	else
		printf("%s, %d cores, %" PRIu32 " ranks", machine->host, machine->cores,
			ask->rank_count);
	printf(" on host memory\n\n%-14s  %-22s  %-5s  %-*s  %9s  %-*s  %9s\n",
		"collective", "bytes of a block", "eager", NAME_WIDTH, "in place", "tile",
		NAME_WIDTH, "staged", "tile");
}

/* How many ranks, where, and what room the cards of the largest host have. */
static enum err ask_begin(const struct tune_args *args, const struct machine *machine,
	struct choose_args *ask, struct sched_hosts **hosts)
{
	enum err e = args->hosts ? sched_hosts_read(args->hosts, hosts) : OK;

	if (e)
		return e;
	ask->hosts = *hosts;
	ask->rank_count = *hosts ? (*hosts)->rank_count : args->ranks;
	if (!ask->rank_count)
		ask->rank_count = machine->cores > 1 ? (uint32_t)machine->cores : 2;
	return eager_room(
		*hosts ? (*hosts)->local_max : ask->rank_count, &ask->eager_bytes);
}

enum err tune_host(const struct tune_args *args)
{
	json_t *top = json_object(), *colls = json_object();
	struct choose_args ask = {0};
	struct sched_hosts *hosts = NULL;
	struct machine machine;
	enum err e;

	machine_read(&machine);
	e = ask_begin(args, &machine, &ask, &hosts);
	if (!e && !args->json)
		print_head(&machine, &ask);
	if (!e)
		e = table_walk(args, &ask, colls);
	json_object_set_new(top, "ranks", json_integer(ask.rank_count));
	json_object_set_new(top, "hosts", json_integer(hosts ? hosts->host_count : 1));
	json_object_set_new(top, "collectives", colls);
	if (!e && args->json &&
		(json_dumpf(top, stdout, JSON_COMPACT) || putchar('\n') == EOF))
		e = err_set(ERR_SYSTEM, "cannot write the JSON: %m");
	json_decref(top);
	sched_hosts_destroy(hosts);
	return e;
}
