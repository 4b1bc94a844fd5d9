/* weft topo - a machine: which parts, how they are joined, which way NCCL takes. */
#include "weft/topo.h"

#include <string.h>

#include "weft/command.h"
#include "weft/topo_explain.h"
#include "weft/topo_svg.h"

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
	       "  --json            everything as JSON\n"
	       "  --xml FILE        the tree as an NCCL topology file; - likewise\n"
	       "  --plain           the table without the escapes around its header\n"
	       "  --no-nvml-p2p     as if NVML said no to P2P, as on GeForce\n"
	       "  --list            the machines known by name\n\n"
	       "NCCL_P2P_LEVEL, NCCL_NET_GDR_LEVEL and the like count as for a job.\n\n"
	       "example: weft topo dgx-h100 --explain GPU0 mlx5_1\n");
}

static enum err write_svg(const struct topo_view *view, const char *path)
{
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
	e = topo_svg(file, whole, view->name);
	topo_free(whole);
	if (file != stdout && fclose(file) && !e)
		return err_set(
			ERR_SYSTEM, "cannot write %s: %m; is the disk full?", path);
	return e;
}

static enum err answer(const struct topo_view *view, const struct topo_args *args)
{
	bool table = !args->paths && !args->explain[0] && !args->svg && !args->json &&
		     !args->xml;
	enum err e = OK;

	if (table) {
		if (view->matrix->gpu_count + view->matrix->nic_count)
			matrix_print(stdout, view->matrix, !args->plain);
		else
			printf("no GPU and no NIC on PCIe: there is nothing to make a "
			       "table of; name a machine (weft topo --list)\n");
		fflush(stdout);
		topo_view_notes(view, stderr, "weft topo: ");
	}
	if (args->paths)
		topo_tables(stdout, view);
	if (args->explain[0])
		e = topo_explain(stdout, view, args->explain[0], args->explain[1]);
	if (!e && args->json)
		e = topo_json(stdout, view);
	if (!e && args->svg)
		e = write_svg(view, args->svg);
	if (!e && args->xml)
		e = strcmp(args->xml, "-") ? xml_write(args->xml, view->tree)
					   : xml_print(stdout, view->tree);
	return e;
}

static void print_list(void)
{
	uint32_t count;
	const struct instance_info *machines = instance_list(&count);

	for (uint32_t i = 0; i < count; i++)
		printf("%-24s %s\n", machines[i].name, machines[i].summary);
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
	if (args.list) {
		print_list();
		return EXIT_GOOD;
	}
	e = topo_view_open(&view, args.machine, args.no_nvml_p2p);
	if (!e) {
		e = answer(&view, &args);
		topo_view_close(&view);
	}
	if (!e)
		return EXIT_GOOD;
	fprintf(stderr, "weft topo: %s\n", err_last());
	return e == ERR_USAGE ? EXIT_USAGE : EXIT_WRONG;
}
