/*
 * xml.c - the tree itself: making, changing, finding and comparing nodes.
 *
 * Nothing here recurses: walks follow the parent pointers, so a tree's depth costs no
 * stack. xml_read.c and xml_write.c connect it to files.
 */
#include "topo/xml.h"

#include <assert.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { SUBS_FIRST = 4 };

static uint32_t place_of(struct xml_node *node)
{
	const struct xml_node *parent = node->parent;

	if (node->at < parent->sub_count && parent->subs[node->at] == node)
		return node->at;
	for (node->at = 0; parent->subs[node->at] != node; node->at++)
		assert(node->at + 1 < parent->sub_count);
	return node->at;
}

/* The next node in document order inside `tree`, NULL at its end. */
static struct xml_node *next_node(const struct xml_node *tree, struct xml_node *node)
{
	if (node->sub_count)
		return node->subs[0];
	while (node != tree) {
		uint32_t at = place_of(node) + 1;

		if (at < node->parent->sub_count)
			return node->parent->subs[at];
		node = node->parent;
	}
	return NULL;
}

static enum err make_room(struct xml_node *parent)
{
	uint32_t capacity = parent->sub_capacity ? 2 * parent->sub_capacity : SUBS_FIRST;
	struct xml_node **subs;

	if (parent->sub_count < parent->sub_capacity)
		return OK;
	subs = realloc(parent->subs, capacity * sizeof(struct xml_node *));
	if (!subs)
		return err_set(ERR_SYSTEM, "no memory for %u elements in <%.64s>",
			capacity, parent->name);
	parent->subs = subs;
	parent->sub_capacity = capacity;
	return OK;
}

struct xml_node *xml_add(struct xml_node *parent, const char *name)
{
	struct xml_node *node;

	if (parent && make_room(parent))
		return NULL;
	node = calloc(1, sizeof(*node));
	if (node)
		node->name = strdup(name);
	if (!node || !node->name) {
		free(node);
		err_set(ERR_SYSTEM, "no memory for an element <%.64s>", name);
		return NULL;
	}
	if (parent) {
		node->parent = parent;
		node->at = parent->sub_count;
		parent->subs[parent->sub_count++] = node;
	}
	return node;
}

/* A copy of this node alone. */
static struct xml_node *copy_one(struct xml_node *parent, const struct xml_node *from)
{
	struct xml_node *node = xml_add(parent, from->name);

	if (!node)
		return NULL;
	node->line = from->line;
	node->keep = from->keep;
	for (uint32_t a = 0; a < from->attr_count; a++) {
		if (xml_attr_set(node, from->attrs[a].name, from->attrs[a].value)) {
			xml_free(node);
			return NULL;
		}
	}
	return node;
}

/* `node` is the copy of `from`, and what was copied so far is what comes before it. The
 * next to copy is the first child that the copy lacks, here or further up. */
struct xml_node *xml_copy(struct xml_node *parent, const struct xml_node *from)
{
	struct xml_node *top = copy_one(parent, from), *node = top;

	for (const struct xml_node *up = parent; up; up = up->parent)
		assert(up != from);
	while (node) {
		struct xml_node *sub;

		if (node->sub_count == from->sub_count) {
			if (node == top)
				return top;
			node = node->parent;
			from = from->parent;
			continue;
		}
		from = from->subs[node->sub_count];
		sub = copy_one(node, from);
		if (!sub)
			xml_free(top);
		node = sub;
	}
	return NULL;
}

static void free_one(struct xml_node *node)
{
	for (uint32_t a = 0; a < node->attr_count; a++) {
		free(node->attrs[a].name);
		free(node->attrs[a].value);
	}
	free(node->subs);
	free(node->name);
	free(node);
}

static void unlink_node(struct xml_node *node)
{
	struct xml_node *parent = node->parent;
	uint32_t at = place_of(node);

	parent->sub_count--;
	memmove(&parent->subs[at], &parent->subs[at + 1],
		(parent->sub_count - at) * sizeof(struct xml_node *));
	for (; at < parent->sub_count; at++)
		parent->subs[at]->at = at;
	node->parent = NULL;
}

void xml_free(struct xml_node *node)
{
	if (node && node->parent)
		unlink_node(node);
	while (node) {
		struct xml_node *up = node->parent;

		if (node->sub_count) {
			node = node->subs[--node->sub_count];
			continue;
		}
		free_one(node);
		node = up;
	}
}

void xml_place_last(struct xml_node *parent, uint32_t at)
{
	struct xml_node *last;

	assert(at < parent->sub_count);
	last = parent->subs[parent->sub_count - 1];
	memmove(&parent->subs[at + 1], &parent->subs[at],
		(parent->sub_count - 1 - at) * sizeof(struct xml_node *));
	parent->subs[at] = last;
	for (; at < parent->sub_count; at++)
		parent->subs[at]->at = at;
}

static const struct xml_attr *find_attr(const struct xml_node *node, const char *name)
{
	for (uint32_t a = 0; a < node->attr_count; a++)
		if (!strcmp(node->attrs[a].name, name))
			return &node->attrs[a];
	return NULL;
}

const char *xml_attr(const struct xml_node *node, const char *name)
{
	const struct xml_attr *attr = find_attr(node, name);

	return attr ? attr->value : NULL;
}

static enum err check_attr(
	const struct xml_node *node, const char *name, const char *value, bool is_new)
{
	if (is_new && node->attr_count == XML_ATTRS_MAX)
		return err_set(ERR_USAGE,
			"<%.64s> has %d attributes, no room for %.64s; leave some out",
			node->name, XML_ATTRS_MAX, name);
	if (strlen(name) > XML_VALUE_MAX || strlen(value) > XML_VALUE_MAX)
		return err_set(ERR_USAGE,
			"attribute %.64s of <%.64s> is longer than %d bytes; shorten it",
			name, node->name, XML_VALUE_MAX);
	return OK;
}

enum err xml_attr_set(struct xml_node *node, const char *name, const char *value)
{
	const struct xml_attr *old = find_attr(node, name);
	enum err e = check_attr(node, name, value, !old);
	struct xml_attr attr;

	if (e)
		return e;
	attr.value = strdup(value);
	attr.name = old ? old->name : strdup(name);
	if (!attr.value || !attr.name) {
		free(attr.value);
		if (!old)
			free(attr.name);
		return err_set(ERR_SYSTEM, "no memory for attribute %.64s", name);
	}
	if (old) {
		free(old->value);
		node->attrs[old - node->attrs] = attr;
	} else {
		node->attrs[node->attr_count++] = attr;
	}
	return OK;
}

/* The host program may have set a locale that writes 1,5; files never do. */
static locale_t plain_locale;

static void make_locale(void)
{
	plain_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

static locale_t get_locale(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_locale);
	return plain_locale;
}

enum err xml_attr_setf(struct xml_node *node, const char *name, const char *format, ...)
{
	char value[XML_VALUE_MAX + 2];
	locale_t locale = get_locale(), old = (locale_t)0;
	va_list args;

	if (locale)
		old = uselocale(locale);
	va_start(args, format);
	vsnprintf(value, sizeof(value), format, args);
	va_end(args);
	if (locale)
		uselocale(old);
	return xml_attr_set(node, name, value);
}

enum err xml_attr_default(struct xml_node *node, const char *name, const char *value)
{
	return find_attr(node, name) ? OK : xml_attr_set(node, name, value);
}

void xml_attr_remove(struct xml_node *node, const char *name)
{
	const struct xml_attr *attr = find_attr(node, name);
	uint32_t at;

	if (!attr)
		return;
	at = (uint32_t)(attr - node->attrs);
	free(attr->name);
	free(attr->value);
	node->attr_count--;
	memmove(&node->attrs[at], &node->attrs[at + 1],
		(node->attr_count - at) * sizeof(struct xml_attr));
}

int64_t xml_int(const struct xml_node *node, const char *name, int64_t fallback)
{
	const char *value = xml_attr(node, name);
	char *end;
	long long number;

	if (!value)
		return fallback;
	errno = 0;
	number = strtoll(value, &end, 0);
	return end == value || errno ? fallback : number;
}

uint64_t xml_hex(const struct xml_node *node, const char *name, uint64_t fallback)
{
	const char *value = xml_attr(node, name);
	char *end;
	unsigned long long number;

	if (!value)
		return fallback;
	errno = 0;
	number = strtoull(value, &end, 16);
	return end == value || errno ? fallback : number;
}

float xml_float(const struct xml_node *node, const char *name, float fallback)
{
	const char *value = xml_attr(node, name);
	locale_t locale = get_locale();
	char *end;
	float number;

	if (!value)
		return fallback;
	number = locale ? strtof_l(value, &end, locale) : strtof(value, &end);
	return end == value || !isfinite(number) ? fallback : number;
}

struct xml_node *xml_sub(const struct xml_node *node, const char *name)
{
	for (uint32_t s = 0; s < node->sub_count; s++)
		if (!strcmp(node->subs[s]->name, name))
			return node->subs[s];
	return NULL;
}

struct xml_node *xml_sub_with(const struct xml_node *node, const char *name,
	const char *attr, const char *value)
{
	for (uint32_t s = 0; s < node->sub_count; s++) {
		struct xml_node *sub = node->subs[s];
		const char *has = xml_attr(sub, attr);

		if (has && !strcmp(sub->name, name) && !strcmp(has, value))
			return sub;
	}
	return NULL;
}

struct xml_node *xml_find(
	struct xml_node *tree, const char *name, const struct xml_node *after)
{
	/* The cursor is one of `tree`, which the caller may change. */
	struct xml_node *node = after ? next_node(tree, (struct xml_node *)after) : tree;

	while (node && strcmp(node->name, name) != 0)
		node = next_node(tree, node);
	return node;
}

bool xml_same(const struct xml_node *a, const struct xml_node *b)
{
	if (a->attr_count != b->attr_count || strcmp(a->name, b->name) != 0)
		return false;
	for (uint32_t i = 0; i < a->attr_count; i++) {
		const char *other = xml_attr(b, a->attrs[i].name);

		if (!other || strcmp(other, a->attrs[i].value) != 0)
			return false;
	}
	return true;
}

bool xml_equal(const struct xml_node *a, const struct xml_node *b)
{
	const struct xml_node *x = a, *y = b;

	while (x && y) {
		if (x->sub_count != y->sub_count || !xml_same(x, y))
			return false;
		x = next_node(a, (struct xml_node *)x);
		y = next_node(b, (struct xml_node *)y);
	}
	return x == y;
}
