#include "compare.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LISTED_MAX = 10, PLACE_BYTES = 128, SHOWN_BYTES = 160, DEPTH_MAX = 16 };

static const double printed = 1e-6, modelled = 1e-3;

static const char *const names[AREA_COUNT] = {
	[AREA_SYSTEM] = "system",
	[AREA_PATHS] = "paths",
	[AREA_GDR] = "gdr",
	[AREA_GRAPHS] = "graphs",
	[AREA_ORDERS] = "orders",
	[AREA_AS_IF] = "as-if",
	[AREA_COMM] = "comm",
	[AREA_RINGS] = "rings",
	[AREA_TREES] = "trees",
	[AREA_EDGES] = "edges",
	[AREA_NVLS] = "nvls",
	[AREA_MODEL] = "model",
	[AREA_CHOICES] = "choices",
	[AREA_TIMES] = "times",
};

const char *area_name(enum area area)
{
	return names[area];
}

static bool same(const json_t *a, const json_t *b, double tolerance, int depth)
{
	const char *key;
	json_t *value;

	if (!a || !b)
		return a == b;
	if (json_is_number(a) && json_is_number(b)) {
		double x = json_number_value(a), y = json_number_value(b);

		return fabs(x - y) <= tolerance * fmax(fabs(x), fabs(y));
	}
	if (depth > DEPTH_MAX || json_typeof(a) != json_typeof(b))
		return false;
	if (json_is_array(a)) {
		if (json_array_size(a) != json_array_size(b))
			return false;
		for (size_t i = 0; i < json_array_size(a); i++)
			if (!same(json_array_get(a, i), json_array_get(b, i), tolerance,
				    depth + 1))
				return false;
		return true;
	}
	if (json_is_object(a)) {
		if (json_object_size(a) != json_object_size(b))
			return false;
		json_object_foreach((json_t *)a, key,
			value) if (!same(value, json_object_get(b, key), tolerance,
					   depth + 1)) return false;
		return true;
	}
	return json_equal((json_t *)a, (json_t *)b);
}

static void show(const char *word, const json_t *value)
{
	char *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY |
						       JSON_REAL_PRECISION(9))
			   : NULL;

	printf("%s %.*s%s", word, SHOWN_BYTES, text ? text : "nothing",
		text && strlen(text) > SHOWN_BYTES ? "..." : "");
	free(text);
}

/* Where we are while walking: the area, and a place like "ring.channels[3]". */
struct walk {
	struct comparison *comparison;
	enum area area;
	double tolerance;
	char place[PLACE_BYTES];
};

static void item(const struct walk *walk, const char *what, const json_t *wanted,
	const json_t *got)
{
	struct tally *tally = &walk->comparison->tallies[walk->area];

	if (same(wanted, got, walk->tolerance, 0)) {
		tally->equal++;
		return;
	}
	tally->different++;
	if (!walk->comparison->name || tally->different > LISTED_MAX)
		return;
	printf("    %s %s: %s%s%s", walk->comparison->name, names[walk->area],
		walk->place, walk->place[0] && what[0] ? "." : "", what);
	show(": wanted", wanted);
	show(", got", got);
	printf("\n");
}

__attribute__((format(printf, 2, 3))) static void go(
	struct walk *walk, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(walk->place, sizeof(walk->place), format, list);
	va_end(list);
}

static bool is_listed(const char *key, const char *const *list)
{
	for (; list && *list; list++)
		if (!strcmp(key, *list))
			return true;
	return false;
}

/* Every field of either object but those in `but` is an item. */
static void fields(const struct walk *walk, const json_t *wanted, const json_t *got,
	const char *const *but)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)wanted, key, value) if (!is_listed(key, but))
		item(walk, key, value, json_object_get(got, key));
	json_object_foreach((json_t *)got, key,
		value) if (!is_listed(key, but) && !json_object_get(wanted, key))
		item(walk, key, NULL, value);
}

static size_t longer(const json_t *a, const json_t *b)
{
	size_t x = json_array_size(a), y = json_array_size(b);

	return x > y ? x : y;
}

/* Every element of either array is an item. */
static void elements(
	struct walk *walk, const char *name, const json_t *wanted, const json_t *got)
{
	for (size_t i = 0; i < longer(wanted, got); i++) {
		go(walk, "%s[%zu]", name, i);
		item(walk, "", json_array_get(wanted, i), json_array_get(got, i));
	}
}

static void table(
	struct walk *walk, const char *name, const json_t *wanted, const json_t *got)
{
	for (size_t i = 0; i < longer(wanted, got); i++) {
		const json_t *a = json_array_get(wanted, i), *b = json_array_get(got, i);

		for (size_t j = 0; j < longer(a, b); j++) {
			go(walk, "%s[%zu][%zu]", name, i, j);
			item(walk, "", json_array_get(a, j), json_array_get(b, j));
		}
	}
}

/* Every field of every element of either array is an item. */
static void nodes(
	struct walk *walk, const char *name, const json_t *wanted, const json_t *got)
{
	for (size_t i = 0; i < longer(wanted, got); i++) {
		go(walk, "%s[%zu]", name, i);
		fields(walk, json_array_get(wanted, i), json_array_get(got, i), NULL);
	}
}

static void compare_system(struct walk *walk, const json_t *wanted, const json_t *got)
{
	static const char *const lists[] = {"gpus", "nets", "cpus", NULL};
	static const char *const but[] = {"note", "gpus", "nets", "cpus", "links", NULL};

	walk->area = AREA_SYSTEM;
	go(walk, "system");
	fields(walk, wanted, got, but);
	for (int i = 0; lists[i]; i++)
		nodes(walk, lists[i], json_object_get(wanted, lists[i]),
			json_object_get(got, lists[i]));
	/* NCCL's own links keep a rest of what its search took and gave back. */
	walk->tolerance = modelled;
	elements(walk, "links", json_object_get(wanted, "links"),
		json_object_get(got, "links"));
	walk->tolerance = printed;
}

static void compare_paths(struct walk *walk, const json_t *wanted, const json_t *got)
{
	static const char *const tables[] = {
		"GPU-GPU", "GPU-NET", "NET-GPU", "GPU-CPU", NULL};

	walk->area = AREA_PATHS;
	for (int i = 0; tables[i]; i++)
		table(walk, tables[i], json_object_get(wanted, tables[i]),
			json_object_get(got, tables[i]));
	walk->area = AREA_GDR;
	table(walk, "gdrMode", json_object_get(wanted, "gdrMode"),
		json_object_get(got, "gdrMode"));
}

static void compare_graphs(struct walk *walk, const json_t *wanted, const json_t *got)
{
	static const char *const but[] = {"note", "channels", NULL};
	const char *name;
	json_t *graph;

	json_object_foreach((json_t *)wanted, name, graph)
	{
		const json_t *ours = json_object_get(got, name);
		const json_t *note = json_object_get(graph, "note");
		bool as_if = note && !strncmp(json_string_value(note), "informative", 11);
		char place[PLACE_BYTES];

		walk->area = as_if ? AREA_AS_IF : AREA_GRAPHS;
		go(walk, "%s", name);
		fields(walk, graph, ours, but);
		walk->area = as_if ? AREA_AS_IF : AREA_ORDERS;
		snprintf(place, sizeof(place), "%s.channels", name);
		elements(walk, place, json_object_get(graph, "channels"),
			json_object_get(ours, "channels"));
	}
}

static void compare_channels(struct walk *walk, const json_t *wanted, const json_t *got)
{
	static const struct {
		enum area area;
		const char *name;
	} parts[] = {{AREA_RINGS, "ringOrder"}, {AREA_RINGS, "ringPrev"},
		{AREA_RINGS, "ringNext"}, {AREA_TREES, "treeUp"},
		{AREA_TREES, "treeDown"}, {AREA_EDGES, "ringNetEdges"},
		{AREA_EDGES, "treeNetEdgesUp"}};

	for (size_t c = 0; c < longer(wanted, got); c++) {
		const json_t *a = json_array_get(wanted, c), *b = json_array_get(got, c);

		go(walk, "channels[%zu]", c);
		for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
			const json_t *x = json_object_get(a, parts[i].name);
			const json_t *y = json_object_get(b, parts[i].name);

			walk->area = parts[i].area;
			if (x || y)
				item(walk, parts[i].name, x, y);
		}
	}
}

static void compare_model(struct walk *walk, const json_t *wanted, const json_t *got)
{
	const char *function, *algo, *proto;
	json_t *algos, *protos, *cell;

	walk->area = AREA_MODEL;
	walk->tolerance = modelled;
	json_object_foreach((json_t *)wanted, function, algos)
	{
		const json_t *ours = json_object_get(got, function);

		go(walk, "%s", function);
		if (!strcmp(function, "maxThreads"))
			fields(walk, algos, ours, NULL);
		if (!strcmp(function, "maxThreads") || !json_is_object(algos))
			continue;
		json_object_foreach(algos, algo, protos)
		{
			const json_t *our_protos = json_object_get(ours, algo);

			json_object_foreach(protos, proto, cell)
			{
				go(walk, "%s.%s.%s", function, algo, proto);
				fields(walk, cell, json_object_get(our_protos, proto),
					NULL);
			}
		}
	}
	walk->tolerance = printed;
}

static json_t *without_time(const json_t *choice)
{
	json_t *copy = json_copy((json_t *)choice);

	if (copy)
		json_object_del(copy, "timeUs");
	return copy;
}

static void compare_choices(struct walk *walk, const json_t *wanted, const json_t *got)
{
	const char *function;
	json_t *list;

	json_object_foreach((json_t *)wanted, function, list)
	{
		const json_t *ours = json_object_get(got, function);

		for (size_t i = 0; i < json_array_size(list); i++) {
			const json_t *x = json_array_get(list, i);
			const json_t *y = json_array_get(ours, i);
			json_t *a = without_time(x), *b = without_time(y);

			go(walk, "%s[%zu]", function, i);
			walk->area = AREA_CHOICES;
			item(walk, "", a, b);
			json_decref(a);
			json_decref(b);
			walk->area = AREA_TIMES;
			walk->tolerance = modelled;
			if (json_object_get(x, "timeUs"))
				item(walk, "timeUs", json_object_get(x, "timeUs"),
					json_object_get(y, "timeUs"));
			walk->tolerance = printed;
		}
	}
}

void compare_decisions(
	const json_t *wanted, const json_t *got, struct comparison *comparison)
{
	static const struct {
		const char *name;
		void (*compare)(
			struct walk *walk, const json_t *wanted, const json_t *got);
	} parts[] = {{"system", compare_system}, {"paths", compare_paths},
		{"graphs", compare_graphs}, {"channels", compare_channels},
		{"tuning", compare_model}, {"choices", compare_choices}};
	struct walk walk = {.comparison = comparison, .tolerance = printed};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		parts[i].compare(&walk, json_object_get(wanted, parts[i].name),
			json_object_get(got, parts[i].name));
	walk.area = AREA_COMM;
	go(&walk, "comm");
	fields(&walk, json_object_get(wanted, "comm"), json_object_get(got, "comm"),
		NULL);
	walk.area = AREA_NVLS;
	go(&walk, "nvls");
	fields(&walk, json_object_get(wanted, "nvls"), json_object_get(got, "nvls"),
		NULL);
	for (int a = 0; comparison->name && a < AREA_COUNT; a++)
		if (comparison->tallies[a].different > LISTED_MAX)
			printf("    %s %s: and %ld more\n", comparison->name, names[a],
				comparison->tallies[a].different - LISTED_MAX);
}
