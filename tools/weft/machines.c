#include "weft/machines.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "topo/discover.h"
#include "topo/instance.h"

/* "dir/dgx-h100.xml" is called "dgx-h100". */
static char *short_name(const char *name)
{
	const char *slash = strrchr(name, '/');
	const char *start = slash ? slash + 1 : name;
	size_t length = strlen(start);

	if (length > 4 && !strcmp(start + length - 4, ".xml"))
		length -= 4;
	return strndup(start, length);
}

static enum err load_tree(const char *name, struct xml_node **tree)
{
	struct discover_report report;

	if (!strcmp(name, "this"))
		return machine_tree(tree, &report);
	if (!access(name, F_OK))
		return xml_read(name, "system", tree);
	if (instance_find(name))
		return instance_tree(name, tree);
	return err_set(ERR_USAGE,
		"%s is neither a file nor a machine we know; give an NCCL topology file "
		"or "
		"a name such as p5.48xlarge",
		name);
}

static enum err load_one(const char *name, struct machines *out)
{
	enum err e;

	out->names[out->count] = short_name(name);
	if (!out->names[out->count])
		return err_set(ERR_SYSTEM, "no memory for the name %s", name);
	e = load_tree(name, &out->trees[out->count]);
	if (e) {
		free(out->names[out->count]);
		return e;
	}
	out->count++;
	return OK;
}

enum err machines_load(int count, char **names, struct machines *out)
{
	static char *this_one[] = {"this"};
	struct machines machines = {0};
	enum err e = OK;

	if (!count) {
		count = 1;
		names = this_one;
	}
	if (count < 0 || count > MACHINES_MAX)
		return err_set(ERR_USAGE, "%d machines are too many; give %d at most",
			count, MACHINES_MAX);
	machines.trees = calloc((size_t)count, sizeof(struct xml_node *));
	machines.names = calloc((size_t)count, sizeof(char *));
	if (!machines.trees || !machines.names)
		e = err_set(ERR_SYSTEM, "no memory for %d machines", count);
	for (int i = 0; !e && i < count; i++)
		e = load_one(names[i], &machines);
	if (e) {
		machines_free(&machines);
		return e;
	}
	*out = machines;
	return OK;
}

void machines_free(struct machines *machines)
{
	for (uint32_t i = 0; i < machines->count; i++) {
		xml_free(machines->trees[i]);
		free(machines->names[i]);
	}
	free(machines->trees);
	free(machines->names);
	*machines = (struct machines){0};
}
