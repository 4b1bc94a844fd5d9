/*
 * xml.h - the small tree behind NCCL's topology and graph files.
 *
 * A node has a name, a few attributes and children in order. Everything read from a file
 * is checked against the limits here, so nobody above needs to fear its size.
 */
#ifndef TOPO_XML_H
#define TOPO_XML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

enum {
	XML_ATTRS_MAX = 32,	 /* of a node */
	XML_DEPTH_MAX = 64,	 /* of the tree */
	XML_NODES_MAX = 65536,	 /* of a file */
	XML_VALUE_MAX = 4096,	 /* bytes of a name or value */
	XML_FILE_MAX = 16 << 20, /* bytes of a file */
};

struct xml_attr {
	char *name, *value; /* owned */
};

struct xml_node {
	char *name; /* owned */
	struct xml_attr attrs[XML_ATTRS_MAX];
	uint32_t attr_count;
	struct xml_node *parent; /* NULL for the root */
	struct xml_node **subs;	 /* owned, and so are the nodes */
	uint32_t sub_count, sub_capacity;
	uint32_t at; /* place among the parent's children when last looked at; a hint */
	int line;    /* where it began in the file; 0: not from a file */
	bool keep;   /* used by xml_trim() */
};

/* Read a file whose root element must be `root` (e.g. "system"). Fails with ERR_SYSTEM
 * when it cannot be opened or read and ERR_USAGE, naming file and line, when it is not
 * what it should be. The tree is the caller's; free with xml_free(). */
enum err xml_read(const char *path, const char *root, struct xml_node **tree);

/* The same from memory; `name` stands for the file in sentences.
 *
 * The root's version must be "1". What NCCL's reader takes and XML does not allow is
 * taken here too: `--` inside comments, and bytes that are not UTF-8, which are read as
 * ISO-8859-1 then. Document types and entities of the file's own are refused. */
enum err xml_parse(const char *text, size_t bytes, const char *name, const char *root,
	struct xml_node **tree);

/* Write it: one element a line, two spaces a level, as NCCL does. Reading it again gives
 * an equal tree; control characters, which XML cannot say, become `?`. */
enum err xml_write(const char *path, const struct xml_node *tree);
enum err xml_print(FILE *file, const struct xml_node *tree);

/* A new node as the last child of `parent` (NULL: a root). NULL when out of memory, after
 * err_set(). */
struct xml_node *xml_add(struct xml_node *parent, const char *name);

/* A copy of `from` and everything below it as the last child of `parent` (NULL: a root),
 * which is not inside `from`. NULL as for xml_add(). */
struct xml_node *xml_copy(struct xml_node *parent, const struct xml_node *from);

/* Unlink from the parent, if any, and free with everything below. NULL is fine. */
void xml_free(struct xml_node *node);

/* Move the last child of `parent` to position `at`. */
void xml_place_last(struct xml_node *parent, uint32_t at);

/* The value, or NULL. */
const char *xml_attr(const struct xml_node *node, const char *name);

/* Set or replace; xml_attr_default() only sets what is not there. ERR_USAGE when the node
 * has XML_ATTRS_MAX already or the value is too long. */
enum err xml_attr_set(struct xml_node *node, const char *name, const char *value);
enum err xml_attr_setf(struct xml_node *node, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
enum err xml_attr_default(struct xml_node *node, const char *name, const char *value);
void xml_attr_remove(struct xml_node *node, const char *name);

/* As numbers, the way NCCL reads them (strtol with base 0, strtof, hex): what follows the
 * digits is ignored. `fallback` when the attribute is absent, no number, not finite or
 * out of range. The locale does not matter. */
int64_t xml_int(const struct xml_node *node, const char *name, int64_t fallback);
uint64_t xml_hex(const struct xml_node *node, const char *name, uint64_t fallback);
float xml_float(const struct xml_node *node, const char *name, float fallback);

/* The first child of this name, and with this value of this attribute; NULL when none. */
struct xml_node *xml_sub(const struct xml_node *node, const char *name);
struct xml_node *xml_sub_with(const struct xml_node *node, const char *name,
	const char *attr, const char *value);

/* The next node named `name` after `after` in document order inside `tree` (NULL: from
 * the start), at any depth. */
struct xml_node *xml_find(
	struct xml_node *tree, const char *name, const struct xml_node *after);

/* The same name and attributes (in any order); children are not compared. */
bool xml_same(const struct xml_node *a, const struct xml_node *b);

/* Names, attributes and children all the way down are equal. */
bool xml_equal(const struct xml_node *a, const struct xml_node *b);

#endif
