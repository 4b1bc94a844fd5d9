#include "sim/resolve.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sim/scene.h"
#include "topo/instance.h"

/* What a cloud tells its users to set in the environment. Google's for TCPX: only Ring
 * and Simple, eight channels with a thread each, and one interface for plain sockets. */
static const struct habit {
	const char *algo, *proto;
	double threads;
} tcpx_habit = {"ring", "simple", 8};

/* Words of a platform, the more particular first. NICs are given where a cloud differs
 * from the machine that stands for it. */
static const struct platform_word {
	const char *word, *machine;
	enum sim_wire outer; /* SIM_ANY: the machine's */
	uint32_t nics;
	double nic_GBps;
	const struct habit *habit; /* NULL: none */
} platforms[] = {
	{"g4dn.metal", "g4dn.metal", SIM_ANY, 0, 0, NULL},
	{"a3-highgpu", "hgx-h100-4nic", SIM_TCPX, 4, 25, &tcpx_habit},
	{"A3 High", "hgx-h100-4nic", SIM_TCPX, 4, 25, &tcpx_habit},
	{"A3 Edge", "hgx-h100-4nic", SIM_TCPX, 4, 25, &tcpx_habit},
	{"a3-mega", "dgx-h100", SIM_TCPXO, 8, 25, NULL},
	{"A3 Mega", "dgx-h100", SIM_TCPXO, 8, 25, NULL},
	{"a3-ultra", "dgx-h100", SIM_ROCE, 8, 50, NULL},
	{"A3 Ultra", "dgx-h100", SIM_ROCE, 8, 50, NULL},
	{"A4 B200", "dgx-b200", SIM_ROCE, 8, 50, NULL},
	{"a4-highgpu", "dgx-b200", SIM_ROCE, 8, 50, NULL},
	{"GB200", "p6e-gb200.36xlarge", SIM_IB, 4, 50, NULL},
	{"GB300", "p6e-gb200.36xlarge", SIM_IB, 4, 100, NULL},
	{"NVL72", "p6e-gb200.36xlarge", SIM_IB, 4, 50, NULL},
	{"B200", "dgx-b200", SIM_ANY, 0, 0, NULL},
	{"B300", "dgx-b200-800g", SIM_ANY, 0, 0, NULL},
	{"H100 PCIe pair", "pcie-h100-nvbridge-4gpu", SIM_ANY, 0, 0, NULL},
	{"NVLink bridge", "pcie-a100-nvbridge-4gpu", SIM_ANY, 0, 0, NULL},
	{"R760xa", "pcie-l40s-4gpu", SIM_VIRTUAL, 1, 12.5, NULL},
	{"L40S", "pcie-l40s-8gpu-2nic", SIM_VIRTUAL, 1, 12.5, NULL},
	{"H100 PCIe", "pcie-a100-4gpu-spr", SIM_ANY, 0, 0, NULL},
	{"A100 PCIe", "pcie-a100-4gpu-spr", SIM_ANY, 0, 0, NULL},
	{"H200", "dgx-h100", SIM_ANY, 0, 0, NULL},
	{"H800", "dgx-h100", SIM_ANY, 0, 0, NULL},
	{"H100", "dgx-h100", SIM_ANY, 0, 0, NULL},
	{"A100", "dgx-a100", SIM_ANY, 0, 0, NULL},
	{"V100", "dgx-1v", SIM_ANY, 0, 0, NULL},
	{"A10G", "g5.xlarge", SIM_ANY, 0, 0, NULL},
	{"T4", "g4dn.metal", SIM_ANY, 0, 0, NULL},
};

/* Words of a network that name what carries messages. "TCP (no EFA)" names EFA too, so
 * sockets come first. */
static const struct net_word {
	const char *word;
	enum sim_wire wire;
} nets[] = {
	{"TCPXO", SIM_TCPXO},
	{"TCPX", SIM_TCPX},
	{"FasTrak", SIM_TCPXO},
	{"TCP", SIM_TCP},
	{"Socket", SIM_TCP},
	{"without GDR", SIM_STAGED},
	{"no GDR", SIM_STAGED},
	{"SR-IOV", SIM_VIRTUAL},
	{"EFA", SIM_EFA},
	{"InfiniBand", SIM_IB},
	{"RoCE", SIM_ROCE},
	{"RDMA", SIM_RDMA},
	{"Ethernet", SIM_VIRTUAL},
};

/* What else is said of a network; all that are there count, and of two that begin alike
 * the longer comes last. */
static const struct net_change {
	const char *word;
	uint32_t nics;
	const char *algo, *proto;
	bool no_nvls, sharp;
} changes[] = {
	{"one shared interface", 1, NULL, NULL, false, false},
	{"algo=ring", 0, "ring", NULL, false, false},
	{"algo=tree", 0, "tree", NULL, false, false},
	{"algo=NVLS", 0, "nvls", NULL, false, false},
	{"algo=NVLSTree", 0, "nvlstree", NULL, false, false},
	{"NVLS_ENABLE=0", 0, NULL, NULL, true, false},
	{"proto=LL", 0, NULL, "ll", false, false},
	{"proto=LL128", 0, NULL, "ll128", false, false},
	{"proto=simple", 0, NULL, "simple", false, false},
	{"proto simple", 0, NULL, "simple", false, false},
	{"SHARP", 0, NULL, NULL, false, true},
};

/* Words of NICs that a number stands before. */
static const char *const counted[] = {" interface", " ENI", " NIC"};

enum { PLATFORMS = sizeof(platforms) / sizeof(platforms[0]) };
enum { NETS = sizeof(nets) / sizeof(nets[0]) };
enum { CHANGES = sizeof(changes) / sizeof(changes[0]) };

static bool is_name_letter(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '.';
}

/* The longest name of a machine that stands in the text as a word. */
static const char *machine_named(const char *platform)
{
	uint32_t count;
	const struct instance_info *list = instance_list(&count);
	const char *best = NULL;

	for (const char *at = platform; *at; at++)
		for (uint32_t i = 0; i < count; i++) {
			size_t length = strlen(list[i].name);

			if ((at == platform || !is_name_letter(at[-1])) &&
				!strncasecmp(at, list[i].name, length) &&
				!is_name_letter(at[length]) &&
				(!best || length > strlen(best)))
				best = list[i].name;
		}
	return best;
}

static void list_set(char to[SIM_LIST_BYTES], const char *list)
{
	if (list)
		snprintf(to, SIM_LIST_BYTES, "%s", list);
}

/* What is asked for goes before a habit. */
static void habit_apply(const struct habit *habit, struct sim_site *site)
{
	if (site->nodes < 2)
		return;
	if (!*site->algo)
		list_set(site->algo, habit->algo);
	if (!*site->proto)
		list_set(site->proto, habit->proto);
	site->threads = habit->threads;
}

static enum err word_apply(const struct platform_word *word, struct sim_site *site)
{
	enum err e = sim_site_machine(site, word->machine);

	if (e)
		return e;
	if (word->outer != SIM_ANY)
		site->outer = word->outer;
	if (word->nics) {
		site->nics = word->nics;
		site->nic_GBps = word->nic_GBps;
		site->is_aws = false;
		site->regions = REGION_NONE;
	}
	if (word->habit)
		habit_apply(word->habit, site);
	return OK;
}

static enum err platform_apply(const struct sim_words *words, struct sim_site *site)
{
	const char *named = machine_named(words->platform);

	if (named)
		return sim_site_machine(site, named);
	for (int i = 0; i < PLATFORMS; i++)
		if (strcasestr(words->platform, platforms[i].word))
			return word_apply(&platforms[i], site);
	return err_set(ERR_USAGE,
		"platform '%s' names no machine that is known; name a GPU such as H100 "
		"or a machine of weft topo --list",
		words->platform);
}

/* "EFA (4 interfaces)"; 0: no number is said. */
static uint32_t nics_said(const char *net)
{
	for (int i = 0; i < 3; i++) {
		const char *word = strcasestr(net, counted[i]), *at = word;

		while (at && at > net && at[-1] >= '0' && at[-1] <= '9')
			at--;
		if (at && at < word)
			return (uint32_t)strtoul(at, NULL, 10);
	}
	return 0;
}

static void net_apply(const struct sim_words *words, struct sim_site *site)
{
	uint32_t most = site->nics, said = nics_said(words->net);

	for (int i = 0; i < NETS; i++) {
		if (!strcasestr(words->net, nets[i].word))
			continue;
		if (nets[i].wire != SIM_EFA && nets[i].wire != SIM_RDMA)
			site->outer = nets[i].wire;
		if (nets[i].wire == SIM_TCP ||
			(site->is_aws && !strcmp(nets[i].word, "Ethernet")))
			sim_site_sockets(site);
		break;
	}
	if (said)
		site->nics = said < most ? said : most;
	for (int i = 0; i < CHANGES; i++) {
		const struct net_change *change = &changes[i];

		if (!strcasestr(words->net, change->word))
			continue;
		if (change->nics)
			site->nics = change->nics;
		list_set(site->algo, change->algo);
		list_set(site->proto, change->proto);
		site->no_nvls |= change->no_nvls;
		site->sharp |= change->sharp;
	}
}

/* "(2 racks)": so many NVLink domains; none said: one. */
static enum err racks_apply(const struct sim_words *words, struct sim_site *site)
{
	const char *rack = strstr(words->net, " rack");
	uint32_t racks = 1;

	if (!strcasestr(words->net, "MNNVL") && site->inner != SIM_MNNVL)
		return OK;
	while (rack && rack > words->net && rack[-1] >= '0' && rack[-1] <= '9')
		rack--;
	if (rack && *rack != ' ')
		racks = (uint32_t)strtoul(rack, NULL, 10);
	if (!racks || site->nodes % racks)
		return err_set(ERR_USAGE,
			"%u nodes in %u racks: every rack needs as many as the others",
			site->nodes, racks);
	site->domain = site->nodes / racks;
	return OK;
}

enum err sim_resolve(const struct sim_words *words, struct sim_site *site)
{
	enum err e;

	*site = (struct sim_site){.nodes = words->nodes};
	if (!words->nodes || !words->gpus || words->gpus % words->nodes)
		return err_set(ERR_USAGE,
			"%u GPUs on %u nodes: every node needs as many as the others",
			words->gpus, words->nodes);
	if (words->gpus < 2)
		return err_set(ERR_USAGE, "one GPU alone sends nothing; say two or more");
	site->gpus = words->gpus / words->nodes;
	e = platform_apply(words, site);
	if (e)
		return e;
	e = sim_site_version(site, words->version);
	if (e)
		return e;
	net_apply(words, site);
	return racks_apply(words, site);
}

/* "p5" is the largest p5; NULL: no instance type is called so before its dot. */
static const char *family_named(const char *name)
{
	const struct instance_info *list, *best = NULL;
	size_t length = strlen(name);
	uint32_t count;

	list = instance_list(&count);
	for (uint32_t i = 0; i < count; i++)
		if (!strncasecmp(list[i].name, name, length) &&
			list[i].name[length] == '.' &&
			(!best || list[i].gpu_count > best->gpu_count))
			best = &list[i];
	return best ? best->name : NULL;
}

static bool is_same_letter(char a, char b)
{
	if (strchr("-_ ", a))
		return b && strchr("-_ ", b);
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* The word stands in the name, from where a part begins, and no digit goes on with it:
 * h100 is in "nd-h100-v5" and not in "h1000". */
static bool has_word(const char *name, const char *word)
{
	for (const char *at = name; *at; at++) {
		size_t i = 0;

		if (at > name && isalnum((unsigned char)at[-1]))
			continue;
		while (word[i] && at[i] && is_same_letter(word[i], at[i]))
			i++;
		if (!word[i] && !isdigit((unsigned char)at[i]))
			return true;
	}
	return false;
}

/* Racks whose trays NVLink joins; a tray has four GPUs. */
static const struct rack_word {
	const char *word;
	uint32_t trays;
} rack_words[] = {{"NVL72", 18}, {"NVL36", 9}};

static void rack_apply(const char *name, struct sim_site *site)
{
	for (size_t i = 0; i < sizeof(rack_words) / sizeof(rack_words[0]); i++) {
		if (site->inner != SIM_MNNVL || !has_word(name, rack_words[i].word))
			continue;
		if (!site->nodes)
			site->nodes = rack_words[i].trays;
		site->domain = rack_words[i].trays;
	}
}

enum err sim_site_named(struct sim_site *site, const char *name)
{
	const char *family = family_named(name);

	if (instance_find(name) || family)
		return sim_site_machine(site, family ? family : name);
	for (int i = 0; i < PLATFORMS; i++) {
		enum err e;

		if (!has_word(name, platforms[i].word))
			continue;
		e = word_apply(&platforms[i], site);
		if (!e)
			rack_apply(name, site);
		return e;
	}
	return sim_site_machine(site, name); /* says which is the nearest */
}

void sim_site_text(const struct sim_site *site, char text[SIM_TAKEN_BYTES])
{
	int used = snprintf(text, SIM_TAKEN_BYTES, "%s x%u, %u GPU%s each, %s",
		site->machine, site->nodes, site->gpus, site->gpus == 1 ? "" : "s",
		sim_wire_name(site->nodes > 1 ? site->outer : site->inner));

	if (site->nodes > 1 && used < SIM_TAKEN_BYTES)
		used += snprintf(text + used, (size_t)(SIM_TAKEN_BYTES - used),
			" %ux%g GB/s", site->nics, site->nic_GBps);
	if (site->domain > 1 && used < SIM_TAKEN_BYTES)
		used += snprintf(text + used, (size_t)(SIM_TAKEN_BYTES - used),
			", NVLink domains of %u", site->domain);
	if (*site->algo && used < SIM_TAKEN_BYTES)
		used += snprintf(text + used, (size_t)(SIM_TAKEN_BYTES - used),
			", algo %s", site->algo);
	if (*site->proto && used < SIM_TAKEN_BYTES)
		used += snprintf(text + used, (size_t)(SIM_TAKEN_BYTES - used),
			", proto %s", site->proto);
	if (site->no_nvls && used < SIM_TAKEN_BYTES)
		snprintf(text + used, (size_t)(SIM_TAKEN_BYTES - used), ", no NVLS");
}
