/*
 * doc.h - the documents of a YAML or JSON file as trees that know where everything
 * stands.
 *
 * libyaml reads; here the text is kept, and every node has its place in it, so that what
 * is found can be pointed at and what is wrong can be changed without touching the rest
 * (edit.h). What is read is hostile: the size, the depth and the number of values are
 * bounded, and so is what aliases unfold to.
 */
#ifndef TOOLS_WEFT_K8S_DOC_H
#define TOOLS_WEFT_K8S_DOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
	DOC_BYTES_MAX = 8 << 20,
	DOC_DEPTH_MAX = 64,
	DOC_NODES_MAX = 200000,
	DOC_UNFOLDED_MAX = 1000000, /* values, once every alias is written out */
	DOC_FAULTS_MAX = 16
};

enum node_kind { NODE_SCALAR, NODE_MAP, NODE_LIST };

struct node {
	enum node_kind kind;
	bool is_plain;	  /* a scalar without quotes */
	bool is_block;	  /* a scalar after | or > */
	bool is_flow;	  /* a map or list in brackets */
	const char *text; /* of a scalar, "" of others */
	size_t start,
		end; /* bytes of the file; of a block map or list the end is loose */
	uint32_t line, column;	   /* from 1; columns count characters */
	struct node *parent, *key; /* where it stands first; the key of a map's value */
	struct node **keys;	   /* of a map, beside items */
	struct node **items;
	uint32_t count, room;
	uint64_t weight; /* values below and including this one, aliases written out */
};

/* Where the text is not YAML: the sentence is the parser's. */
struct doc_fault {
	uint32_t line, column;
	size_t start;
	char text[160];
};

struct doc_file {
	char *path; /* owned */
	char *text; /* owned; ends with a 0 that does not count */
	size_t bytes;
	struct node **docs; /* owned; roots in order, empty documents left out */
	uint32_t doc_count;
	struct doc_fault faults[DOC_FAULTS_MAX];
	uint32_t fault_count;
	bool is_json;		   /* begins with a bracket */
	struct node_chunk *chunks; /* owned; all nodes and texts */
	uint32_t node_count;
	size_t *lines; /* owned; where each begins */
	uint32_t line_count;
	struct {
		size_t line, column, byte;
	} last; /* place that was asked for */
};

/* Read a file, "-" for standard input. ERR_SYSTEM or ERR_USAGE with a sentence for what
 * cannot be read or is no text. What is not YAML is in `faults`: the line is taken for
 * empty and the rest is read. Free with doc_free(), also after a failure. */
enum err doc_read(const char *path, struct doc_file *file);

/* The same for a text in memory; it is copied. */
enum err doc_parse(
	const char *path, const char *text, size_t bytes, struct doc_file *file);

void doc_free(struct doc_file *file);

/* All of these take NULL for "not there" and give it back. */

/* The value of a key; merge keys (<<) count. */
struct node *node_get(const struct node *map, const char *key);
/* The node of the key itself. */
struct node *node_key(const struct node *map, const char *key);
/* By keys with slashes between: "spec/template/spec"; a number is an item of a list. */
struct node *node_at(const struct node *node, const char *path);
/* The text of a scalar; NULL for anything else and for null. */
const char *node_text(const struct node *node);
bool node_is(const struct node *node, const char *text);
bool node_true(const struct node *node);
/* A whole number without anything around it. */
bool node_int(const struct node *node, int64_t *value);
/* The first node of a file that stands at this path, for findings about what is absent.
 */
const struct node *node_or(const struct node *node, const struct node *instead);

/* Where the text of a node ends, comments and blank lines after it left out. */
size_t node_tail(const struct doc_file *file, const struct node *node);
/* The byte at which a line (from 1) begins; the end of the text beyond the last. */
size_t doc_line_start(const struct doc_file *file, uint32_t line);

#endif
