/* weft info - this machine as ranks on host memory see it, drawn from hwloc. */
#include <hwloc.h>
#include <stdio.h>
#include <string.h>

#include "common/machine.h"
#include "weft/command.h"
#include "weft/info_json.h"
#include "weft/json_print.h"
#include "weft/option.h"

enum { CORES_PER_LINE = 8, TEXT_BYTES = 64, FLAG_JSON = OPTION_LONG };

static void usage(void)
{
	printf("usage: weft info [--json]\n\n"
	       "Show what this process may use of the machine: processor, cores (by "
	       "affinity\n"
	       "and control group), vector unit, memory, and a picture of sockets, "
	       "memory\n"
	       "nodes, shared caches and cores with their CPU numbers.\n\n"
	       "  --json  for programs\n\n"
	       "example: taskset -c 0-3 weft info\n");
}

static void bytes_text(char *text, uint64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double value = (double)bytes;
	int unit = 0;

	while (unit < 4 && value >= 1024) {
		value /= 1024;
		unit++;
	}
	snprintf(text, TEXT_BYTES, "%.*f %s", value < 10 && unit > 2 ? 1 : 0, value,
		units[unit]);
}

static void indent(int depth)
{
	for (int i = 0; i < depth; i++)
		printf("|  ");
}

/* Caches of one core only, in one word list: "L1 32 KiB, L2 1 MiB". */
static void print_private_caches(hwloc_topology_t topology, int depth)
{
	hwloc_obj_t core = hwloc_get_obj_by_type(topology, HWLOC_OBJ_CORE, 0);
	char text[TEXT_BYTES];
	bool any = false;

	for (hwloc_obj_t at = core ? core->parent : NULL; at; at = at->parent) {
		if (!hwloc_obj_type_is_dcache(at->type) ||
			hwloc_bitmap_weight(at->cpuset) >
				hwloc_bitmap_weight(core->cpuset))
			continue;
		if (!any)
			indent(depth);
		bytes_text(text, at->attr->cache.size);
		printf("%sL%u %s", any ? ", " : "each core: ", at->attr->cache.depth,
			text);
		any = true;
	}
	if (any)
		printf("\n");
}

/* The cores inside an object, one box each, with the CPU numbers of their threads. */
static void print_cores(hwloc_topology_t topology, hwloc_obj_t inside, int depth)
{
	int count = hwloc_get_nbobjs_inside_cpuset_by_type(
		topology, inside->cpuset, HWLOC_OBJ_CORE);

	for (int i = 0; i < count; i++) {
		hwloc_obj_t core = hwloc_get_obj_inside_cpuset_by_type(
			topology, inside->cpuset, HWLOC_OBJ_CORE, (unsigned)i);
		char text[TEXT_BYTES];

		if (i % CORES_PER_LINE == 0)
			indent(depth);
		hwloc_bitmap_list_snprintf(text, sizeof(text), core->cpuset);
		printf("[%3s]%s", text,
			i % CORES_PER_LINE == CORES_PER_LINE - 1 || i == count - 1 ? "\n"
										   : " ");
	}
}

static bool is_shared_cache(hwloc_obj_t object)
{
	return hwloc_obj_type_is_dcache(object->type) && object->arity > 1;
}

static bool holds_shared_cache(hwloc_obj_t object)
{
	for (unsigned i = 0; i < object->arity; i++)
		if (is_shared_cache(object->children[i]) ||
			holds_shared_cache(object->children[i]))
			return true;
	return false;
}

/* Down to the cores; what has neither a name worth showing nor company is passed over. */
static void print_object(hwloc_topology_t topology, hwloc_obj_t object, int depth)
{
	bool shown = true;
	char text[TEXT_BYTES];

	if (object->type == HWLOC_OBJ_PACKAGE) {
		indent(depth);
		printf("+- socket %u\n", object->os_index);
	} else if (is_shared_cache(object)) {
		bytes_text(text, object->attr->cache.size);
		indent(depth);
		printf("+- L%u %s, shared by\n", object->attr->cache.depth, text);
	} else {
		shown = false;
	}
	depth += shown;
	for (hwloc_obj_t node = object->memory_first_child; node;
		node = node->next_sibling) {
		if (node->type != HWLOC_OBJ_NUMANODE)
			continue;
		bytes_text(text, node->attr->numanode.local_memory);
		indent(depth);
		printf("+- memory node %u, %s\n", node->os_index, text);
	}
	if (!holds_shared_cache(object) && (is_shared_cache(object) || shown)) {
		print_cores(topology, object, depth);
		return;
	}
	for (unsigned i = 0; i < object->arity; i++)
		print_object(topology, object->children[i], depth);
}

static void print_summary(const struct machine *machine)
{
	char total[TEXT_BYTES], available[TEXT_BYTES];

	bytes_text(total, machine->memory_bytes);
	bytes_text(available, machine->memory_available_bytes);
	printf("host     %s\n", machine->host);
	printf("cpu      %s\n", machine->cpu);
	printf("cores    %d", machine->cores);
	if (machine->quota > 0)
		printf(", of which the control group grants %.1f at a time",
			machine->quota);
	printf("\nvectors  %s\n", machine->vector_unit);
	printf("memory   %s, %s available\n\n", total, available);
}

static bool parse(bool *json, int argc, char **argv)
{
	static const struct option options[] = {
		{"json", no_argument, 0, FLAG_JSON}, {0, 0, 0, 0}};
	static const struct option_set set = {"info", ":", options};
	int flag;

	*json = false;
	option_start();
	while ((flag = option_next(&set, argc, argv)) != -1) {
		if (flag != FLAG_JSON)
			return option_refuse(&set, flag, argv);
		*json = true;
	}
	if (optind < argc)
		fprintf(stderr, "weft info: it takes no arguments; leave out '%s'\n",
			argv[optind]);
	return optind == argc;
}

static int print_machine(hwloc_topology_t topology, bool json)
{
	struct machine machine;

	machine_read(&machine);
	if (json)
		return json_print("info", info_json(&machine, topology));
	print_summary(&machine);
	printf("machine\n");
	print_object(topology, hwloc_get_root_obj(topology), 0);
	print_private_caches(topology, 0);
	return EXIT_GOOD;
}

int command_info(int argc, char **argv)
{
	hwloc_topology_t topology;
	bool json;
	int status = EXIT_WRONG;

	if (command_wants_help(argc, argv)) {
		usage();
		return EXIT_GOOD;
	}
	if (!parse(&json, argc, argv))
		return EXIT_USAGE;
	if (hwloc_topology_init(&topology)) {
		fprintf(stderr, "weft info: hwloc cannot start\n");
		return EXIT_WRONG;
	}
	if (hwloc_topology_load(topology))
		fprintf(stderr, "weft info: hwloc cannot read this machine\n");
	else
		status = print_machine(topology, json);
	hwloc_topology_destroy(topology);
	return status;
}
