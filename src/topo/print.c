#include "topo/print.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 1024, COLUMN_MAX = LINE_BYTES - 256 };

struct printer {
	topo_line_fn *line;
	void *context;
	char text[LINE_BYTES];
};

/* Replace everything from `column` on; returns the column after it. */
__attribute__((format(printf, 3, 4))) static int put(
	struct printer *printer, int column, const char *format, ...)
{
	size_t room = LINE_BYTES - (size_t)column;
	va_list arguments;
	int wrote;

	va_start(arguments, format);
	wrote = vsnprintf(printer->text + column, room, format, arguments);
	va_end(arguments);
	if (wrote < 0)
		return column;
	return (size_t)wrote < room ? column + wrote : LINE_BYTES - 1;
}

static void put_node(struct printer *printer, int column, const struct topo_node *node)
{
	char label[TOPO_LABEL_MAX];

	topo_label(node, label);
	column = put(printer, column, "%s", label);
	if (node->kind == TOPO_CPU)
		put(printer, column, " (%d/%d/%d)", node->cpu.arch, node->cpu.vendor,
			node->cpu.model);
	else if (node->kind == TOPO_PCI)
		put(printer, column, " (%" PRIx64 ")", node->pci_device);
	else if (node->kind == TOPO_NET)
		put(printer, column, " (%d/%" PRIx64 "/%d/%f)", node->net.coll,
			node->net.asic, node->net.port, (double)node->net.bw);
	else if (node->kind == TOPO_GPU)
		put(printer, column, " (%d)", node->gpu.rank);
}

/* What the line so far holds stays only above: below it is blank. */
static void emit(struct printer *printer, int column)
{
	printer->line(printer->context, printer->text);
	memset(printer->text, ' ', (size_t)column);
}

/* A node after what `column` characters already say, and what hangs on it by PCI. The
 * tree is as deep as the file it came from, and that has a limit; the line has one, too.
 */
static void print_below(struct printer *printer, const struct topo_node *node,
	const struct topo_node *from, int column)
{
	put_node(printer, column, node);
	emit(printer, column);
	for (uint32_t i = 0; i < node->link_count; i++) {
		const struct topo_link *link = &node->links[i];
		bool down = link->type == LINK_PCI;
		int next;

		if (down && link->to == from)
			continue;
		next = put(printer, column, "+ %s[%2.1f] - ", link_name(link->type),
			(double)link->bw);
		if (down && next < COLUMN_MAX) {
			print_below(printer, link->to, node, next);
			continue;
		}
		if (link->type == LINK_NET)
			put_node(printer, next, link->to);
		else
			put(printer, next, "%s/%x-%" PRIx64,
				topo_kind_name(link->to->kind), topo_system(link->to->id),
				topo_local(link->to->id));
		emit(printer, column);
	}
}

static void print_paths(
	struct printer *printer, const struct topo *topo, const struct topo_node *node)
{
	char label[TOPO_LABEL_MAX], *text = NULL;
	size_t bytes = 0;
	FILE *line = open_memstream(&text, &bytes);

	if (!line)
		return;
	topo_label(node, label);
	fprintf(line, "%s :", label);
	for (int kind = 0; kind < TOPO_KINDS; kind++)
		for (uint32_t i = 0; node->paths[kind] && i < topo->counts[kind]; i++) {
			const struct topo_path *path = &node->paths[kind][i];

			topo_label(topo->nodes[kind][i], label);
			fprintf(line, "%s (%u/%.1f/%s) ", label, path->hop_count,
				(double)path->bw, path_name(path->type));
		}
	if (!fclose(line))
		printer->line(printer->context, text);
	free(text);
}

void topo_print(const struct topo *topo, topo_line_fn *line, void *context)
{
	struct printer printer = {.line = line, .context = context};

	put(&printer, 0,
		"=== System : maxBw %2.1f totalBw %2.1f ===", (double)topo->max_bw,
		(double)topo->total_bw);
	line(context, printer.text);
	for (uint32_t i = 0; i < topo->counts[TOPO_CPU]; i++)
		print_below(&printer, topo->nodes[TOPO_CPU][i], NULL, 0);
	line(context, "==========================================");
	for (uint32_t i = 0; i < topo->counts[TOPO_GPU]; i++)
		print_paths(&printer, topo, topo->nodes[TOPO_GPU][i]);
	for (uint32_t i = 0; i < topo->counts[TOPO_NET]; i++)
		print_paths(&printer, topo, topo->nodes[TOPO_NET][i]);
}
