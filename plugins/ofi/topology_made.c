/*
 * topology_made.c - a program of the build: the topology files that the plugin carries,
 * as a C file, from the machines that the tools know by name.
 *
 * A file says how the PCI devices hang together, and no more: what is at their ends, and
 * which threads are near, NCCL asks the machine.
 */
#include <stdlib.h>
#include <string.h>

#include "platform.h"
#include "topo/instance.h"
#include "topology.h"

/* Nothing but CPUs and what is on PCI. */
static void devices_leave(struct xml_node *node)
{
	static const char *const gone[] = {"gpu", "nic"};
	struct xml_node *found;

	for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++)
		while ((found = xml_find(node, gone[i], NULL)))
			xml_free(found);
	for (found = NULL; (found = xml_find(node, "cpu", found));)
		xml_attr_remove(found, "affinity");
}

/* As the text of a string, each line by itself. */
static void text_print(const char *text)
{
	for (; *text; text++) {
		if (*text == '"')
			printf("\\\"");
		else if (*text == '\n')
			printf("\\n\"%s", text[1] ? "\n\t\t\"" : "");
		else
			putchar(*text);
	}
}

static int file_print(const struct platform *platform)
{
	struct xml_node *tree;
	char *text = NULL;
	size_t bytes;
	FILE *file;

	if (instance_tree(platform->exact, &tree))
		return 1;
	devices_leave(tree);
	file = open_memstream(&text, &bytes);
	if (!file || xml_print(file, tree) || fclose(file))
		return 1;
	xml_free(tree);
	printf("\t{\"%s\",\n\t\t\"", platform->topology);
	text_print(text);
	printf("},\n");
	free(text);
	return 0;
}

int main(void)
{
	const struct platform *platform;

	printf("/* Made by topology_made.c. */\n#include \"topology.h\"\n\n"
	       "const struct topology_file topology_files[] = {\n");
	for (int i = 0; (platform = platform_at(i)); i++)
		if (platform->topology && file_print(platform))
			return 1;
	printf("\t{0}};\n");
	return ferror(stdout) || fflush(stdout);
}
