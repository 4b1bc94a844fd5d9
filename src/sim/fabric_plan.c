/* Plans of fabrics: presets, files, and what is broken. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/edits.h"
#include "sim/fabric.h"

enum { TEXT_MAX = 4096, WORD_MAX = 64 };

/* How many nodes an NVLink domain has cannot be guessed. */
#define DOMAIN_WANTED UINT32_MAX

static const struct preset {
	const char *name;
	enum fabric_shape shape;
	bool sprays;
	uint32_t leaf, spine, planes;
	enum sim_wire wire;
	uint32_t domain;
} presets[] = {
	{"switch", FABRIC_SWITCH, false, 0, 0, 1, SIM_WIRES, 0},
	{"fat-tree", FABRIC_LEAVES, false, 16, 8, 1, SIM_WIRES, 0},
	{"leaf-spine", FABRIC_LEAVES, false, 16, 8, 1, SIM_WIRES, 0},
	{"rail", FABRIC_RAILS, false, 32, 8, 1, SIM_WIRES, 0},
	{"dual", FABRIC_LEAVES, false, 16, 8, 2, SIM_WIRES, 0},
	{"efa", FABRIC_LEAVES, true, 16, 16, 1, SIM_EFA, 0},
	{"ib", FABRIC_SWITCH, false, 0, 0, 1, SIM_IB, 0},
	{"roce", FABRIC_SWITCH, false, 0, 0, 1, SIM_ROCE, 0},
	{"tcp", FABRIC_SWITCH, false, 0, 0, 1, SIM_TCP, 0},
	{"tcpx", FABRIC_SWITCH, false, 0, 0, 1, SIM_TCPX, 0},
	{"tcpxo", FABRIC_SWITCH, false, 0, 0, 1, SIM_TCPXO, 0},
	{"nvl", FABRIC_SWITCH, false, 0, 0, 1, SIM_WIRES, DOMAIN_WANTED},
};
enum { PRESETS = sizeof(presets) / sizeof(presets[0]) };

void fabric_plan_default(struct fabric_plan *plan)
{
	*plan = (struct fabric_plan){.planes = 1, .over = 1, .wire = SIM_WIRES};
}

static enum err kind_set(const char *word, struct fabric_plan *plan)
{
	const struct preset *near = presets;
	char names[200] = "";

	for (int i = 0; i < PRESETS; i++) {
		const struct preset *p = &presets[i];

		if (edits_between(word, p->name) < edits_between(word, near->name))
			near = p;

		if (!strcasecmp(p->name, word)) {
			plan->shape = p->shape;
			plan->sprays = p->sprays;
			plan->leaf = p->leaf;
			plan->spine = p->spine;
			plan->planes = p->planes;
			plan->wire = p->wire;
			plan->domain = p->domain;
			return OK;
		}
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s",
			i ? ", " : "", p->name);
	}
	return err_set(ERR_USAGE,
		"fabric '%.40s' is neither a preset nor a file; did you mean %s? There "
		"are %s",
		word, near->name, names);
}

static bool number(const char *text, double least, double most, double *value)
{
	char *end;
	double read = strtod(text, &end);

	if (end == text || *end || !(read >= least) || read > most)
		return false;
	*value = read;
	return true;
}

/* "100Gb", "12.5GB": GB/s. */
static bool rate(const char *text, double *value)
{
	char *end;
	double read = strtod(text, &end);

	if (end == text || !(read > 0) || read > 1e5)
		return false;
	if (!strcmp(end, "Gb") || !strcmp(end, "Gb/s"))
		*value = read / 8;
	else if (!strcmp(end, "GB") || !strcmp(end, "GB/s"))
		*value = read;
	else
		return false;
	return true;
}

static enum err whole_set(const char *key, const char *value, double most, uint32_t *to)
{
	double read = 0;

	if (!number(value, 1, most, &read) || read != floor(read))
		return err_set(ERR_USAGE,
			"fabric: %s=%.40s: give a whole number from 1 to %.0f", key,
			value, most);
	*to = (uint32_t)read;
	return OK;
}

static enum err key_set(const char *key, const char *value, struct fabric_plan *plan)
{
	if (!strcmp(key, "leaf"))
		return whole_set(key, value, FABRIC_LEAF_MAX, &plan->leaf);
	if (!strcmp(key, "spine"))
		return whole_set(key, value, FABRIC_SPINE_MAX, &plan->spine);
	if (!strcmp(key, "planes"))
		return whole_set(key, value, 2, &plan->planes);
	if (!strcmp(key, "domain"))
		return whole_set(key, value, 1024, &plan->domain);
	if (!strcmp(key, "over"))
		return number(value, 1, 64, &plan->over)
			       ? OK
			       : err_set(ERR_USAGE,
					 "fabric: over=%.40s: give a number from 1, no "
					 "oversubscription, to 64",
					 value);
	if (!strcmp(key, "nic"))
		return rate(value, &plan->nic_GBps) ? OK
						    : err_set(ERR_USAGE,
							      "fabric: nic=%.40s: give a "
							      "rate such as 400Gb or "
							      "50GB",
							      value);
	if (!strcmp(key, "spray")) {
		plan->sprays = !strcmp(value, "yes");
		return plan->sprays || !strcmp(value, "no")
			       ? OK
			       : err_set(ERR_USAGE, "fabric: spray=%.40s: say yes or no",
					 value);
	}
	if (!strcmp(key, "wire")) {
		plan->wire = sim_wire_find(value);
		return plan->wire != SIM_WIRES
			       ? OK
			       : err_set(ERR_USAGE,
					 "fabric: wire=%.40s is no class of wire; such "
					 "are ib, roce, efa, tcp",
					 value);
	}
	if (!strcmp(key, "fail") || !strcmp(key, "slow"))
		return fabric_harm_read(value, *key == 's', plan);
	return err_set(ERR_USAGE,
		"fabric: '%.40s' is not known; there are leaf, spine, planes, domain, "
		"over, nic, spray, wire, fail and slow",
		key);
}

/* The part after the colon that has no key: a rate, or nodes of a domain. */
static enum err bare_set(const char *word, struct fabric_plan *plan)
{
	double nodes;

	if (rate(word, &plan->nic_GBps))
		return OK;
	if (number(word, 1, 1024, &nodes) && nodes == floor(nodes)) {
		plan->domain = (uint32_t)nodes;
		return OK;
	}
	return err_set(ERR_USAGE,
		"fabric: '%.40s' is neither a rate such as 100Gb nor the nodes of an "
		"NVLink domain, up to 1024; all else has a key, such as leaf=16",
		word);
}

static enum err preset_read(char *text, struct fabric_plan *plan)
{
	char *rest = strchr(text, ':'), *word, *save = NULL;
	enum err e;

	if (rest)
		*rest++ = 0;
	e = kind_set(text, plan);
	for (word = rest ? strtok_r(rest, ",", &save) : NULL; !e && word;
		word = strtok_r(NULL, ",", &save)) {
		char *value = strchr(word, '=');

		if (value)
			*value++ = 0;
		e = value ? key_set(word, value, plan) : bare_set(word, plan);
	}
	return e;
}

static enum err plan_check(const struct fabric_plan *plan)
{
	if (plan->domain == DOMAIN_WANTED)
		return err_set(ERR_USAGE,
			"fabric: say how many nodes an NVLink domain has: nvl:18, in a "
			"file domain 18");
	if (plan->shape != FABRIC_SWITCH && (!plan->leaf || !plan->spine))
		return err_set(ERR_USAGE,
			"fabric: leaves without spine have no way to each other; say "
			"leaf and spine");
	return OK;
}

enum err fabric_plan_parse(
	const char *text, size_t bytes, const char *name, struct fabric_plan *plan)
{
	char copy[TEXT_MAX + 1], *line, *save = NULL;
	enum err e = OK;
	bool has_kind = false;

	fabric_plan_default(plan);
	if (bytes > TEXT_MAX)
		return err_set(
			ERR_USAGE, "fabric file %s has more than 4096 bytes", name);
	memcpy(copy, text, bytes);
	copy[bytes] = 0;
	if (strlen(copy) != bytes)
		return err_set(ERR_USAGE, "fabric file %s is no text", name);
	for (line = strtok_r(copy, "\n", &save); !e && line;
		line = strtok_r(NULL, "\n", &save)) {
		char key[WORD_MAX] = "", value[WORD_MAX] = "", more[2];
		int words;

		line[strcspn(line, "#\r")] = 0;
		words = sscanf(line, "%63s %63s %1s", key, value, more);
		if (words < 1)
			continue;
		if (words != 2)
			e = err_set(ERR_USAGE,
				"fabric file %s: '%.40s': each line is a KEY and a VALUE",
				name, line);
		else if (!has_kind && strcmp(key, "kind") != 0)
			e = err_set(ERR_USAGE,
				"fabric file %s begins with 'kind NAME', such as kind "
				"fat-tree",
				name);
		else if (has_kind && !strcmp(key, "kind"))
			e = err_set(
				ERR_USAGE, "fabric file %s: kind is said twice", name);
		else
			e = has_kind ? key_set(key, value, plan) : kind_set(value, plan);
		has_kind = true;
	}
	if (!e && !has_kind)
		e = err_set(ERR_USAGE, "fabric file %s says nothing", name);
	return e ? e : plan_check(plan);
}

static enum err file_read(const char *path, struct fabric_plan *plan)
{
	char text[TEXT_MAX + 2];
	FILE *file = fopen(path, "re");
	enum err e = OK;
	size_t bytes;

	if (!file)
		return err_set(ERR_SYSTEM, "fabric file %s cannot be opened: %m", path);
	bytes = fread(text, 1, sizeof(text), file);
	if (ferror(file))
		e = err_set(ERR_SYSTEM, "fabric file %s cannot be read: %m", path);
	fclose(file);
	return e ? e : fabric_plan_parse(text, bytes, path, plan);
}

/* Its name is taken for itself, whatever lies in the folder; ./rail is a file. */
static bool is_preset(const char *text)
{
	for (int i = 0; i < PRESETS; i++)
		if (!strcasecmp(presets[i].name, text))
			return true;
	return false;
}

enum err fabric_plan_read(const char *text, struct fabric_plan *plan)
{
	char copy[256];
	enum err e;

	fabric_plan_default(plan);
	if (!is_preset(text) && !access(text, F_OK))
		return file_read(text, plan);
	snprintf(copy, sizeof(copy), "%s", text);
	e = preset_read(copy, plan);
	return e ? e : plan_check(plan);
}

static const struct {
	const char *word;
	int what;
	bool is_pair;
} harms[] = {{"nic", HARM_NIC, true}, {"node", HARM_NODE, false},
	{"leaf", HARM_LEAF, false}, {"spine", HARM_SPINE, false},
	{"link", HARM_LINK, true}, {"gpu", HARM_GPU, false}};

static enum err harm_wrong(const char *text)
{
	return err_set(ERR_USAGE,
		"'%.40s': say nic:NODE.NIC, link:LEAF.SPINE, node:N, leaf:N, spine:N or "
		"gpu:RANK, and for slow ones =SHARE from 0.01 to 1",
		text);
}

enum err fabric_harm_read(const char *text, bool is_slow, struct fabric_plan *plan)
{
	struct fabric_harm *harm = &plan->harms[plan->harm_count];
	const char *at = strchr(text, ':');
	unsigned first = 0, second = 0;
	bool has_sign = strcspn(text, "+- ") < strcspn(text, "=");
	int read = 0;
	char end[2];

	if (plan->harm_count == FABRIC_HARM_MAX)
		return err_set(ERR_USAGE, "more than 64 things are broken or slow");
	for (size_t i = 0; at && !has_sign && i < sizeof(harms) / sizeof(harms[0]); i++) {
		if (strlen(harms[i].word) != (size_t)(at - text) ||
			strncmp(text, harms[i].word, strlen(harms[i].word)) != 0)
			continue;
		*harm = (struct fabric_harm){0};
		harm->what = (unsigned)harms[i].what;
		if (harms[i].is_pair && is_slow)
			read = sscanf(at + 1, "%7u.%7u=%lf%1s", &first, &second,
				       &harm->share, end) == 3;
		else if (harms[i].is_pair)
			read = sscanf(at + 1, "%7u.%7u%1s", &first, &second, end) == 2;
		else if (is_slow)
			read = sscanf(at + 1, "%7u=%lf%1s", &first, &harm->share, end) ==
			       2;
		else
			read = sscanf(at + 1, "%7u%1s", &first, end) == 1;
	}
	if (!read || (is_slow && !(harm->share >= .01 && harm->share <= 1)))
		return harm_wrong(text);
	harm->first = first;
	harm->second = second;
	plan->harm_count++;
	return OK;
}

void fabric_plan_apply(const struct fabric_plan *plan, struct sim_site *site)
{
	if (plan->nic_GBps > 0)
		site->nic_GBps = plan->nic_GBps;
	if (plan->domain)
		site->domain = plan->domain;
	if (plan->wire == SIM_WIRES)
		return;
	if (!(plan->wire == SIM_EFA && site->outer == SIM_EFA_OLD))
		site->outer = plan->wire == SIM_TCP && site->is_aws ? SIM_ENA
								    : plan->wire;
	if (site->outer == SIM_TCP || site->outer == SIM_ENA)
		site->nics = 1;
	if (plan->wire != SIM_EFA) {
		site->regions = REGION_NONE;
		site->is_aws = false;
	}
}
