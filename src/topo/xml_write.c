/*
 * xml_write.c - a tree as text, in the layout of NCCL's own dumps.
 *
 * An element without children ends in `/>`; the others are closed on a line of their own.
 * xml_read.c is the other direction.
 */
#include "topo/xml.h"

#include <errno.h>
#include <unistd.h>

#include "base/file.h"
#include "base/fsize.h"

/* How this byte must be written inside a value; NULL: as it is. */
static const char *escape(unsigned char byte)
{
	switch (byte) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\t':
		return "&#9;";
	case '\n':
		return "&#10;";
	case '\r':
		return "&#13;";
	default:
		return byte < ' ' ? "?" : NULL;
	}
}

static void print_value(FILE *file, const char *value)
{
	for (; *value; value++) {
		const char *text = escape((unsigned char)*value);

		if (text)
			fputs(text, file);
		else
			fputc(*value, file);
	}
}

static void print_open(FILE *file, const struct xml_node *node, int depth)
{
	fprintf(file, "%*s<%s", 2 * depth, "", node->name);
	for (uint32_t a = 0; a < node->attr_count; a++) {
		fprintf(file, " %s=\"", node->attrs[a].name);
		print_value(file, node->attrs[a].value);
		fputc('"', file);
	}
	fputs(node->sub_count ? ">\n" : "/>\n", file);
}

/* One frame a level would bound the depth, so the way back is searched in the parent. */
static const struct xml_node *next_sibling(const struct xml_node *node)
{
	const struct xml_node *parent = node->parent;
	uint32_t at = node->at;

	if (at >= parent->sub_count || parent->subs[at] != node)
		for (at = 0; parent->subs[at] != node;)
			at++;
	return at + 1 < parent->sub_count ? parent->subs[at + 1] : NULL;
}

enum err xml_print(FILE *file, const struct xml_node *tree)
{
	const struct xml_node *node = tree;
	int depth = 0;

	do {
		const struct xml_node *next = NULL;

		print_open(file, node, depth);
		if (node->sub_count) {
			node = node->subs[0];
			depth++;
			continue;
		}
		while (node != tree && !(next = next_sibling(node))) {
			node = node->parent;
			fprintf(file, "%*s</%s>\n", 2 * --depth, "", node->name);
		}
		node = next;
	} while (node);
	return ferror(file) ? err_set(ERR_SYSTEM, "cannot write the <%.64s> tree: %m%s",
				      tree->name, fsize_hint(errno))
			    : OK;
}

enum err xml_write(const char *path, const struct xml_node *tree)
{
	int fd = file_create(path, 0, 0666);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
	struct fsize hold;
	enum err e;

	if (!file) {
		err_set(ERR_SYSTEM, "cannot write %.256s: %m%s; choose another place",
			path, errno == ENXIO ? " (nobody reads it)" : "");
		if (fd >= 0)
			close(fd);
		return ERR_SYSTEM;
	}
	fsize_begin(&hold);
	e = xml_print(file, tree);
	if (fclose(file) && !e)
		e = err_set(ERR_SYSTEM, "cannot write %.256s: %m%s; is the disk full?",
			path, fsize_hint(errno));
	fsize_end(&hold);
	return e;
}
