#include "weft/machines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/edits.h"
#include "comm/plugin_nets.h"
#include "topo/discover.h"
#include "topo/instance.h"

enum { GUESSES_MAX = 3, TEXT_BYTES = 256 };

static const char here[] = "this";

/* "dir/dgx-h100.xml" is called "dgx-h100", and so is DGX-H100. */
static char *short_name(const char *name)
{
	const struct instance_info *known = access(name, F_OK) ? instance_find(name)
							       : NULL;
	const char *slash = strrchr(name, '/');
	const char *start = slash ? slash + 1 : name;
	size_t length = strlen(start);

	if (known)
		return strdup(known->name);
	if (length > 4 && !strcmp(start + length - 4, ".xml"))
		length -= 4;
	return strndup(start, length);
}

/* Few letters differ, or one is a part of the other; 0 is the best. */
static uint32_t strangeness(const char *asked, const char *name)
{
	uint32_t far = edits_between(asked, name);

	if (strlen(asked) > 1 && strcasestr(name, asked))
		return 1;
	return far <= 1 + strlen(asked) / 4 ? far : EDITS_BYTES;
}

/* Names like the one asked for, the likeliest first: "a, b, c"; "" when none is. */
static void guess(const char *asked, char text[TEXT_BYTES])
{
	uint32_t count, shown = 0;
	const struct instance_info *all = instance_list(&count);
	size_t used = 0;

	text[0] = 0;
	for (uint32_t limit = 0; limit < EDITS_BYTES; limit++)
		for (uint32_t i = 0; i < count && shown < GUESSES_MAX; i++) {
			int n;

			if (strangeness(asked, all[i].name) != limit)
				continue;
			n = snprintf(text + used, TEXT_BYTES - used, "%s%s",
				shown++ ? ", " : "", all[i].name);
			if (n < 0 || (size_t)n >= TEXT_BYTES - used)
				return;
			used += (size_t)n;
		}
}

enum err machine_tree_plugged(struct xml_node **tree, struct discover_report *report)
{
	struct nets_seen *nets = plugin_nets_look();
	const struct discover_args args = {.nets = nets};
	enum err e = machine_tree_of(&args, tree, report);

	free(nets);
	return e;
}

static enum err load_this(struct machines *out)
{
	struct discover_report *report = calloc(1, sizeof(*report));
	enum err e;

	if (!report)
		return err_set(ERR_SYSTEM, "no memory for a look at this machine");
	e = machine_tree_plugged(&out->trees[out->count], report);
	for (uint32_t i = 0; !e && i < report->sentence_count; i++)
		fprintf(stderr, "weft: %s\n", report->sentences[i]);
	if (!e && report->p2p_known && !report->p2p_ok)
		out->is_p2p_refused = true;
	free(report);
	return e;
}

static enum err load_tree(const char *name, struct machines *out)
{
	char likely[TEXT_BYTES];

	if (!strcasecmp(name, here))
		return load_this(out);
	if (!access(name, F_OK))
		return xml_read(name, "system", &out->trees[out->count]);
	if (instance_find(name))
		return instance_tree(name, &out->trees[out->count]);
	guess(name, likely);
	if (likely[0])
		return err_set(ERR_USAGE,
			"'%s' is neither a file nor a machine known by name; is it one "
			"of %s?",
			name, likely);
	return err_set(ERR_USAGE,
		"'%s' is neither a file nor a machine known by name; give an NCCL "
		"topology file, or a name such as dgx-h100 (weft topo --list)",
		name);
}

static enum err load_one(const char *name, struct machines *out)
{
	enum err e;

	out->names[out->count] = short_name(name);
	if (!out->names[out->count])
		return err_set(ERR_SYSTEM, "no memory for the name %s", name);
	e = load_tree(name, out);
	if (e) {
		free(out->names[out->count]);
		return e;
	}
	out->count++;
	return OK;
}

enum err machines_load(int count, char **names, struct machines *out)
{
	struct machines machines = {0};
	int room = count ? count : 1;
	enum err e = OK;

	if (count < 0 || count > MACHINES_MAX)
		return err_set(ERR_USAGE, "%d machines are too many; give %d at most",
			count, MACHINES_MAX);
	machines.trees = calloc((size_t)room, sizeof(struct xml_node *));
	machines.names = calloc((size_t)room, sizeof(char *));
	if (!machines.trees || !machines.names)
		e = err_set(ERR_SYSTEM, "no memory for %d machines", room);
	for (int i = 0; !e && i < room; i++)
		e = load_one(count ? names[i] : here, &machines);
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
