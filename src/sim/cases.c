#include "sim/cases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/resolve.h"

enum { KEPT = 16, NODES_MAX = 65536, GPUS_MAX = 1 << 20 };
static const double BYTES_MAX = 0x1p50;

struct columns {
	int platform, nodes, gpus, coll, bytes, version, net, time, busbw, source;
};

struct reading {
	struct sim_cases *cases;
	struct columns at;
	struct {
		struct sim_scene scene;
		uint32_t group;
		bool is_used;
	} kept[KEPT]; /* the newest; rows of several series may take turns */
	uint32_t kept_next;
	const char *name;
};

static enum err row_wrong(const struct reading *r, uint32_t row, const char *what)
{
	return err_set(ERR_USAGE, "%s, row %u: %s", r->name, row + 1, what);
}

static enum err columns_find(struct reading *r)
{
	const struct sim_table *t = &r->cases->table;

	r->at = (struct columns){.platform = table_column(t, "platform"),
		.nodes = table_column(t, "nodes"),
		.gpus = table_column(t, "gpus"),
		.coll = table_column(t, "collective"),
		.bytes = table_column(t, "bytes"),
		.version = table_column(t, "nccl_version"),
		.net = table_column(t, "net"),
		.time = table_column(t, "time_us"),
		.busbw = table_column(t, "busbw_GBps"),
		.source = table_column(t, "source")};
	if (r->at.platform < 0 || r->at.nodes < 0 || r->at.gpus < 0 || r->at.coll < 0 ||
		r->at.bytes < 0 || r->at.net < 0)
		return err_set(ERR_USAGE,
			"%s: the columns platform, nodes, gpus, collective, bytes and "
			"net are needed",
			r->name);
	return OK;
}

static bool number(const char *text, double most, double *value)
{
	char *end;

	*value = strtod(text, &end);
	return end != text && !*end && *value >= 1 && *value <= most;
}

/* Digits, or digits with an exponent: "1048576", "1e6". */
static bool whole(const char *text, double most, double *value)
{
	return number(text, most, value) && *value == floor(*value) &&
	       !strpbrk(text, "xX");
}

static bool is_same_site(const struct reading *r, uint32_t a, uint32_t b)
{
	const int columns[] = {
		r->at.platform, r->at.nodes, r->at.gpus, r->at.version, r->at.net};

	for (int i = 0; i < 5; i++)
		if (strcmp(table_at(&r->cases->table, a, columns[i]),
			    table_at(&r->cases->table, b, columns[i])) != 0)
			return false;
	return true;
}

static enum err words_read(struct reading *r, uint32_t row, struct sim_words *words)
{
	const struct sim_table *t = &r->cases->table;
	double nodes, gpus;

	if (!whole(table_at(t, row, r->at.nodes), NODES_MAX, &nodes) ||
		!whole(table_at(t, row, r->at.gpus), GPUS_MAX, &gpus))
		return row_wrong(r, row, "nodes and gpus are whole numbers from 1");
	*words = (struct sim_words){.platform = table_at(t, row, r->at.platform),
		.net = table_at(t, row, r->at.net),
		.version = table_at(t, row, r->at.version),
		.nodes = (uint32_t)nodes,
		.gpus = (uint32_t)gpus};
	return OK;
}

/* What a deeper room said of a row, with the row. */
static enum err row_named(const struct reading *r, uint32_t row, enum err e)
{
	char said[400];

	snprintf(said, sizeof(said), "%s", err_last());
	return err_set(e, "%s, row %u: %s", r->name, row + 1, said);
}

static void kept_drop(struct reading *r, uint32_t slot)
{
	if (r->kept[slot].is_used)
		sim_scene_free(&r->kept[slot].scene);
	r->kept[slot].is_used = false;
}

static enum err group_begin(struct reading *r, uint32_t row, uint32_t *slot)
{
	struct sim_group *group = &r->cases->groups[r->cases->group_count];
	struct sim_words words;
	enum err e = words_read(r, row, &words);

	*slot = r->kept_next++ % KEPT;
	kept_drop(r, *slot);
	if (e)
		return e;
	e = sim_resolve(&words, &group->site);
	if (!e)
		e = sim_scene_make(&group->site, &r->kept[*slot].scene);
	if (e)
		return row_named(r, row, e);
	r->kept[*slot].is_used = true;
	r->kept[*slot].group = r->cases->group_count++;
	group->first_row = row;
	sim_site_text(&group->site, group->taken);
	return OK;
}

static enum err scene_of(struct reading *r, uint32_t row, uint32_t *slot)
{
	for (*slot = 0; *slot < KEPT; ++*slot)
		if (r->kept[*slot].is_used &&
			is_same_site(
				r, row, r->cases->groups[r->kept[*slot].group].first_row))
			return OK;
	return group_begin(r, row, slot);
}

static uint32_t source_find(struct reading *r, const char *text)
{
	struct sim_cases *cases = r->cases;

	for (uint32_t i = 0; i < cases->source_count; i++)
		if (!strcmp(cases->sources[i], text))
			return i;
	cases->sources[cases->source_count] = text;
	return cases->source_count++;
}

/* From the time, or from the bandwidth where there is none or it was rounded away. */
static double measured(const struct reading *r, const struct sim_case *c)
{
	double value;

	if (number(table_at(&r->cases->table, c->row, r->at.time), 1e12, &value))
		return value;
	value = strtod(table_at(&r->cases->table, c->row, r->at.busbw), NULL);
	return value > 0 ? (double)c->bytes * c->bus_factor / value / 1e3 : 0;
}

static const char above_wire[] = "more than the network it names can carry";
static const char same_series[] = "of a series that is above its network elsewhere";

/* Two digits after the point are too few of them under this. */
static const double BUSBW_LEAST = .1;

static const char *why_wrong(const struct reading *r, const struct sim_case *c)
{
	double value;

	if (!c->time_us)
		return NULL;
	if (c->time_us < c->terms.outer_us / SIM_ABOVE_WIRE)
		return above_wire;
	if (!number(table_at(&r->cases->table, c->row, r->at.time), 1e12, &value) &&
		strtod(table_at(&r->cases->table, c->row, r->at.busbw), NULL) <
			BUSBW_LEAST)
		return "rounded to fewer than two digits";
	return NULL;
}

static enum err row_read(struct reading *r, uint32_t row)
{
	struct sim_cases *cases = r->cases;
	const struct sim_table *t = &cases->table;
	struct sim_case *c = &cases->cases[row];
	uint32_t slot;
	double bytes;
	enum err e;

	if (!whole(table_at(t, row, r->at.bytes), BYTES_MAX, &bytes))
		return row_wrong(r, row, "bytes is a whole number from 1");
	*c = (struct sim_case){.row = row,
		.bytes = (uint64_t)bytes,
		.coll = sim_coll_find(table_at(t, row, r->at.coll))};
	if (c->coll < 0)
		return row_wrong(r, row, "that collective is not known");
	e = scene_of(r, row, &slot);
	if (e)
		return e;
	c->group = r->kept[slot].group;
	c->bus_factor = sim_bus_factor(c->coll, r->kept[slot].scene.ranks);
	e = sim_terms_make(&r->kept[slot].scene, c->coll, c->bytes, NULL, &c->terms);
	if (e)
		return row_named(r, row, e);
	c->time_us = measured(r, c);
	c->source = source_find(r, table_at(t, row, r->at.source));
	c->wrong = why_wrong(r, c);
	return OK;
}

/* What names a network that cannot carry it at one size is not believed at another. */
static void series_doubt(struct sim_cases *cases, const struct sim_case *bad)
{
	for (uint32_t i = 0; i < cases->count; i++) {
		struct sim_case *c = &cases->cases[i];

		if (c->group == bad->group && c->source == bad->source &&
			c->coll == bad->coll && !c->wrong)
			c->wrong = same_series;
	}
}

static enum err cases_fill(const char *name, struct sim_cases *cases)
{
	struct reading r = {.cases = cases, .name = name};
	uint32_t count = cases->table.row_count;
	enum err e = columns_find(&r);

	cases->cases = calloc(count + 1, sizeof(*cases->cases));
	cases->groups = calloc(count + 1, sizeof(*cases->groups));
	cases->sources = calloc(count + 1, sizeof(*cases->sources));
	if (!e && (!cases->cases || !cases->groups || !cases->sources))
		e = err_set(ERR_SYSTEM, "no memory for %u cases", count);
	for (uint32_t row = 0; !e && row < count; row++)
		e = row_read(&r, row);
	for (uint32_t slot = 0; slot < KEPT; slot++)
		kept_drop(&r, slot);
	cases->count = count;
	for (uint32_t row = 0; !e && row < count; row++)
		if (cases->cases[row].wrong == above_wire)
			series_doubt(cases, &cases->cases[row]);
	if (e)
		sim_cases_free(cases);
	return e;
}

enum err sim_cases_parse(
	const char *text, size_t bytes, const char *name, struct sim_cases *cases)
{
	enum err e;

	*cases = (struct sim_cases){0};
	e = table_parse(text, bytes, name, &cases->table);
	return e ? e : cases_fill(name, cases);
}

enum err sim_cases_read(const char *path, struct sim_cases *cases)
{
	enum err e;

	*cases = (struct sim_cases){0};
	e = table_read(path, &cases->table);
	return e ? e : cases_fill(path, cases);
}

void sim_cases_free(struct sim_cases *cases)
{
	table_free(&cases->table);
	free(cases->cases);
	free(cases->groups);
	free(cases->sources);
	*cases = (struct sim_cases){0};
}

uint32_t sim_cases_samples(const struct sim_cases *cases, struct sim_sample *samples)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < cases->count; i++) {
		const struct sim_case *c = &cases->cases[i];

		if (!(c->time_us > 0) || c->wrong)
			continue;
		samples[count++] = (struct sim_sample){.wire = c->terms.wire,
			.net = c->terms.net,
			.method = c->terms.method,
			.bytes = c->bytes,
			.load = {c->terms.latency_us, c->terms.hops, c->terms.ideal_us,
				(double)c->bytes, c->terms.width, c->terms.cut},
			.time_us = c->time_us,
			.source = c->source};
	}
	return count;
}
