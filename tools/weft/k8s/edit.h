/*
 * edit.h - changes to a manifest's text that leave everything else as it is: comments,
 * order, quotes, indentation.
 *
 * Each function adds an edit to a finding; what cannot be done in place adds none.
 */
#ifndef TOOLS_WEFT_K8S_EDIT_H
#define TOOLS_WEFT_K8S_EDIT_H

#include <jansson.h>

#include "weft/k8s/finding.h"

/* A scalar, key or value, becomes another; quotes stay where there were some. */
void edit_scalar(const struct doc_file *file, struct finding *finding,
	const struct node *node, const char *text);

/* A value becomes another; the reference is taken. */
void edit_value(const struct doc_file *file, struct finding *finding,
	const struct node *node, json_t *value);

/* A new key at the end of a map; the reference is taken. */
void edit_add(const struct doc_file *file, struct finding *finding,
	const struct node *map, const char *key, json_t *value);

/* A new item at the end of a list; the reference is taken. */
void edit_append(const struct doc_file *file, struct finding *finding,
	const struct node *list, json_t *value);

/* Take a value out of the map or list it stands in, with its key; what would be left
 * empty goes too. */
void edit_remove(
	const struct doc_file *file, struct finding *finding, const struct node *node);

/* Bytes become others, as they are. */
void edit_bytes(struct finding *finding, size_t start, size_t end, const char *text);

/* The text after the edits of the findings `from` to before `to`; edits that would touch
 * what another one changed are left out, all of their finding. The caller's; NULL when
 * there is no memory. `count` is how many findings were put into practice. */
char *edit_apply(const struct doc_file *file, const struct finding *from,
	const struct finding *to, uint32_t *count);

/* "- old" and "+ new" lines with context, as diff -u has them, into `text` of the
 * caller's; NULL when there is no memory, "" when nothing differs. */
char *edit_diff(const char *path, const char *before, const char *after);

#endif
