/* weft topo - a machine: which parts, how they are joined, which way NCCL takes. */
#include "weft/topo.h"

#include <stdlib.h>
#include <string.h>

#include "common/terminal.h"
#include "weft/command.h"
#include "weft/json_print.h"
#include "weft/topo_explain.h"
#include "weft/topo_svg.h"

enum { LIST_COLUMN = 25 };

static void usage(void)
{
	printf("usage: weft topo [MACHINE] [OPTIONS]\n\n"
	       "Without options: the table of nvidia-smi topo -m. MACHINE is an NCCL "
	       "topology\n"
	       "file, a name (weft topo --list), or nothing for this machine.\n\n"
	       "  --paths           NCCL's path types, bandwidths and hops, and its log "
	       "lines\n"
	       "  --explain A B     the way between two parts, the rule, what would "
	       "change "
	       "it\n"
	       "                    (GPU0, NIC1, mlx5_0 or a bus id)\n"
	       "  --svg FILE        a picture of the machine; - is standard output\n"
	       "  --nodes N         in the picture: two of N such machines, and their "
	       "rails\n"
	       "  --json            everything as JSON\n"
	       "  --xml FILE        the tree as an NCCL topology file; - likewise\n"
	       "  --wide            the table as nvidia-smi has it, a column per NIC, "
	       "however\n"
	       "                    wide; else NICs that stand alike share one\n"
	       "  --plain           the table without colours and underlining\n"
	       "  --net NET         ofi: with the libfabric plugin of AWS, as for its "
	       "instance\n"
	       "                    types unless said; plain: without one; socket: TCP\n"
	       "  --no-nvml-p2p     as if NVML said no to P2P, as on GeForce\n"
	       "  --list            the machines known by name; --list --json for "
	       "programs\n\n"
	       "NCCL_P2P_LEVEL, NCCL_NET_GDR_LEVEL and the like count as for a job.\n\n"
	       "example: weft topo dgx-h100 --explain GPU0 mlx5_1\n");
}

static enum err write_svg(
	const struct topo_view *view, const char *path, uint32_t node_count)
{
	struct topo_picture picture = {.name = view->name, .nodes = node_count};
	struct topo *whole;
	FILE *file;
	enum err e = topo_view_whole(view, &whole);

	if (e)
		return e;
	file = strcmp(path, "-") ? fopen(path, "w") : stdout;
	if (!file) {
		topo_free(whole);
		return err_set(
			ERR_SYSTEM, "cannot write %s: %m; choose another place", path);
	}
	e = topo_svg(file, whole, &picture);
	topo_free(whole);
	if (file != stdout && fclose(file) && !e)
		return err_set(
			ERR_SYSTEM, "cannot write %s: %m; is the disk full?", path);
	return e;
}

/* What a function prints, folded to the terminal, a little further in than it began. */
static enum err explain_folded(const struct topo_view *view, const char *const names[2])
{
	char *text = NULL, *rest, *line;
	size_t bytes = 0;
	FILE *file = open_memstream(&text, &bytes);
	enum err e;

	if (!file)
		return err_set(ERR_SYSTEM, "no memory for an explanation");
	e = topo_explain(file, view, names[0], names[1]);
	if (fclose(file) && !e)
		e = err_set(ERR_SYSTEM, "no memory for an explanation");
	rest = text;
	while (!e && (line = strsep(&rest, "\n")) && rest)
		terminal_fold(stdout, line, 0, (int)strspn(line, " ") + 2);
	free(text);
	return e;
}

/* Not in what others read. */
static void net_tell(const struct topo_view *view)
{
	char text[NET_ASSUMED_TEXT];

	net_assumed_text(&view->net, text);
	if (text[0])
		fprintf(stderr, "weft topo: %s\n", text);
}

static enum err answer(const struct topo_view *view, const struct topo_args *args)
{
	bool table = !args->paths && !args->explain[0] && !args->svg && !args->json &&
		     !args->xml;
	enum err e = OK;

	if (table) {
		if (view->matrix->gpu_count + view->matrix->nic_count)
			e = topo_matrix(view->matrix, args);
		else
			printf("no GPU and no NIC on PCIe: there is nothing to make a "
			       "table of; name a machine (weft topo --list)\n");
		fflush(stdout);
		topo_view_notes(view, stderr, "weft topo: ");
	} else if (!args->json) {
		net_tell(view);
	}
	if (args->paths)
		topo_tables(stdout, view);
	if (args->explain[0])
		e = explain_folded(view, args->explain);
	if (!e && args->json)
		e = topo_json(stdout, view);
	if (!e && args->svg)
		e = write_svg(view, args->svg, args->nodes);
	if (!e && args->xml)
		e = strcmp(args->xml, "-") ? xml_write(args->xml, view->tree)
					   : xml_print(stdout, view->tree);
	return e;
}

static int print_list(bool json)
{
	uint32_t count;
	const struct instance_info *machines = instance_list(&count);
	json_t *list = json ? json_array() : NULL;

	for (uint32_t i = 0; i < count; i++) {
		const struct instance_info *machine = &machines[i];

		if (json) {
			json_array_append_new(list,
				json_pack("{s:s, s:s, s:i, s:i, s:s, s:s}", "name",
					machine->name, "summary", machine->summary,
					"gpus", (int)machine->gpu_count, "networkPorts",
					(int)machine->net_count, "source",
					machine->source, "inferred", machine->inferred));
			continue;
		}
		printf("%-24s ", machine->name);
		terminal_fold(stdout, machine->summary, LIST_COLUMN, LIST_COLUMN);
	}
	return json ? json_print("topo", list) : EXIT_GOOD;
}

int command_topo(int argc, char **argv)
{
	struct topo_args args;
	struct topo_view view;
	enum err e;

	if (command_wants_help(argc, argv)) {
		usage();
		return EXIT_GOOD;
	}
	if (!topo_args_parse(&args, argc, argv))
		return EXIT_USAGE;
	if (args.list)
		return print_list(args.json);
	e = topo_view_open(&view, args.machine, args.no_nvml_p2p, args.net);
	if (!e) {
		e = answer(&view, &args);
		topo_view_close(&view);
	}
	if (!e)
		return EXIT_GOOD;
	fprintf(stderr, "weft topo: %s\n", err_last());
	return e == ERR_USAGE ? EXIT_USAGE : EXIT_WRONG;
}
