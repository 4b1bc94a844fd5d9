#include "topo/instance.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "topo/instance_table.h"
#include "topo/machine_files.h"

enum { LIST_MAX = 160 };

static struct instance_info list[LIST_MAX];
static uint32_t list_count;
static pthread_once_t list_once = PTHREAD_ONCE_INIT;

/* How often `what` stands in a text. */
static uint32_t times(const char *text, const char *what)
{
	uint32_t count = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		count++;
	return count;
}

static void row_describe(const struct instance_row *row, struct instance_info *info)
{
	static const char *const kinds[] = {"EFA", "group of EFA", "ENA"};
	static const char *const ways[] = {"", ", NVSwitch", ", NVLink mesh"};
	int way = !row->gpu->nvlinks ? 0 : strcmp(row->gpu->nvlinks, "mesh") ? 1 : 2;

	info->name = row->name;
	info->gpu_count = times(row->layout, " g");
	info->net_count = times(row->layout, " n");
	if (info->gpu_count < 2)
		way = 0;
	snprintf(info->summary, sizeof(info->summary),
		"%u x %s%s, %u x %s at %d Gb/s, %d vCPUs in %d NUMA node%s",
		info->gpu_count, row->gpu->model, ways[way], info->net_count,
		kinds[row->net->naming], row->net_mbps / 1000, row->core_count,
		row->numa_count, row->numa_count > 1 ? "s" : "");
	snprintf(info->source, sizeof(info->source), "%s", row->source);
	snprintf(info->inferred, sizeof(info->inferred), "%s", row->inferred);
}

/* The part of a file's first comment between two marks; lines are joined. */
static void note_take(
	const char *text, const char *from, const char *to, char *out, size_t room)
{
	const char *at = strstr(text, from), *end;
	size_t used = 0;

	out[0] = '\0';
	if (!at)
		return;
	at += strlen(from);
	end = strstr(at, to);
	for (; end && at < end && used + 1 < room; at++)
		if (*at != '\n')
			out[used++] = *at;
	out[used] = '\0';
}

static void file_describe(const struct machine_file *file, struct instance_info *info)
{
	info->name = file->name;
	info->gpu_count = times(file->text, "<gpu ");
	info->net_count = times(file->text, "<net ");
	note_take(file->text, "<!-- ", ".\n", info->summary, sizeof(info->summary));
	note_take(file->text, "Known: ", ".\n", info->source, sizeof(info->source));
	note_take(file->text, "Inferred: ", ". -->", info->inferred,
		sizeof(info->inferred));
}

static void list_fill(void)
{
	for (uint32_t i = 0; i < instance_row_count() && list_count < LIST_MAX; i++)
		row_describe(&instance_rows[i], &list[list_count++]);
	for (const struct machine_file *file = machine_files;
		file->name && list_count < LIST_MAX; file++)
		file_describe(file, &list[list_count++]);
}

const struct instance_info *instance_list(uint32_t *count)
{
	pthread_once(&list_once, list_fill);
	*count = list_count;
	return list;
}

const struct instance_info *instance_find(const char *name)
{
	uint32_t count;
	const struct instance_info *all = instance_list(&count);

	for (uint32_t i = 0; i < count; i++)
		if (!strcasecmp(all[i].name, name))
			return &all[i];
	return NULL;
}

enum err instance_tree(const char *name, struct xml_node **tree)
{
	for (uint32_t i = 0; i < instance_row_count(); i++)
		if (!strcasecmp(instance_rows[i].name, name))
			return instance_build(&instance_rows[i], tree);
	for (const struct machine_file *file = machine_files; file->name; file++)
		if (!strcasecmp(file->name, name))
			return xml_parse(
				file->text, file->bytes, file->name, "system", tree);
	return err_set(ERR_ARGUMENT,
		"no machine is called %s: ask the tool for the list of those it knows",
		name);
}
