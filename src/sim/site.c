#include "sim/site.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/edits.h"
#include "topo/instance.h"

static const struct {
	const char *name;
	enum sim_wire parent;
} wires[SIM_WIRES] = {
	[SIM_ANY] = {"any", SIM_ANY},
	[SIM_NVLINK] = {"nvlink", SIM_ANY},
	[SIM_NVLINK_AMPERE] = {"nvlink-ampere", SIM_NVLINK},
	[SIM_NVLINK_HOPPER] = {"nvlink-hopper", SIM_NVLINK},
	[SIM_NVLINK_BLACKWELL] = {"nvlink-blackwell", SIM_NVLINK},
	[SIM_NVLINK_BRIDGE] = {"nvlink-bridge", SIM_NVLINK},
	[SIM_PCIE] = {"pcie", SIM_ANY},
	[SIM_MNNVL] = {"mnnvl", SIM_NVLINK_BLACKWELL},
	[SIM_RDMA] = {"rdma", SIM_ANY},
	[SIM_IB] = {"ib", SIM_RDMA},
	[SIM_ROCE] = {"roce", SIM_RDMA},
	[SIM_EFA] = {"efa", SIM_RDMA},
	[SIM_EFA_OLD] = {"efa-old", SIM_EFA},
	[SIM_STAGED] = {"staged", SIM_ANY},
	[SIM_VIRTUAL] = {"virtual", SIM_RDMA},
	[SIM_KERNEL] = {"kernel", SIM_ANY},
	[SIM_TCP] = {"tcp", SIM_KERNEL},
	[SIM_ENA] = {"ena", SIM_TCP},
	[SIM_TCPX] = {"tcpx", SIM_KERNEL},
	[SIM_TCPXO] = {"tcpxo", SIM_RDMA},
};

const char *sim_wire_name(enum sim_wire wire)
{
	return wires[wire].name;
}

enum sim_wire sim_wire_find(const char *name)
{
	int wire = 0;

	while (wire < SIM_WIRES && strcasecmp(name, wires[wire].name))
		wire++;
	return (enum sim_wire)wire;
}

enum sim_wire sim_wire_parent(enum sim_wire wire)
{
	return wires[wire].parent;
}

const char *sim_coll_name(int coll)
{
	return coll == SIM_SENDRECV ? "sendrecv" : coll_name((enum coll)coll);
}

int sim_coll_find(const char *name)
{
	if (!strcasecmp(name, "sendrecv") || !strcasecmp(name, "send_recv"))
		return SIM_SENDRECV;
	if (!strcasecmp(name, "alltoall"))
		return COLL_ALL_TO_ALL;
	return coll_find(name) == COLL_COUNT ? -1 : (int)coll_find(name);
}

double sim_bus_factor(int coll, double ranks)
{
	switch (coll) {
	case COLL_ALL_REDUCE:
		return 2 * (ranks - 1) / ranks;
	case COLL_BROADCAST:
	case COLL_REDUCE:
	case SIM_SENDRECV:
		return 1;
	default:
		return (ranks - 1) / ranks;
	}
}

/* What the name of a machine says of its wires; the first that the name begins with.
 * NICs are counted as the cards that NCCL is shown. */
static const struct {
	const char *prefix;
	enum sim_wire inner, outer;
	bool is_aws;
	enum region_machine regions;
} kinds[] = {
	{"p3.", SIM_NVLINK, SIM_ENA, true, REGION_NONE},
	{"p3dn", SIM_NVLINK, SIM_STAGED, true, REGION_NONE},
	{"p4d", SIM_NVLINK_AMPERE, SIM_EFA_OLD, true, REGION_NONE},
	{"p5.4xlarge", SIM_PCIE, SIM_STAGED, true, REGION_NONE},
	{"p5en", SIM_NVLINK_HOPPER, SIM_EFA, true, REGION_P5EN},
	{"p5", SIM_NVLINK_HOPPER, SIM_EFA, true, REGION_P5},
	{"p6e", SIM_MNNVL, SIM_EFA, true, REGION_NONE},
	{"p6-b300", SIM_NVLINK_BLACKWELL, SIM_EFA, true, REGION_P6_B300},
	{"p6", SIM_NVLINK_BLACKWELL, SIM_EFA, true, REGION_P6_B200},
	{"g7e", SIM_PCIE, SIM_EFA, true, REGION_NONE},
	{"g", SIM_PCIE, SIM_STAGED, true, REGION_NONE},
	{"dgx-1v", SIM_NVLINK, SIM_IB, false, REGION_NONE},
	{"dgx-a100", SIM_NVLINK_AMPERE, SIM_IB, false, REGION_NONE},
	{"hgx-a100", SIM_NVLINK_AMPERE, SIM_IB, false, REGION_NONE},
	{"dgx-h100", SIM_NVLINK_HOPPER, SIM_IB, false, REGION_NONE},
	{"hgx-h100", SIM_NVLINK_HOPPER, SIM_IB, false, REGION_NONE},
	{"dgx-b200", SIM_NVLINK_BLACKWELL, SIM_IB, false, REGION_NONE},
	{"pcie-a100-nvbridge", SIM_NVLINK_BRIDGE, SIM_IB, false, REGION_NONE},
	{"pcie-h100-nvbridge", SIM_NVLINK_BRIDGE, SIM_IB, false, REGION_NONE},
	{"pcie-l40s", SIM_PCIE, SIM_VIRTUAL, false, REGION_NONE},
	{"pcie", SIM_PCIE, SIM_ROCE, false, REGION_NONE},
};

/* A word of the one that names a GPU ("gb200" of "gb200-nvl72"), in the other. */
static bool shares_gpu(const char *name, const char *other)
{
	enum { LEAST = 4, MOST = 15 };

	while (*name) {
		size_t length = strcspn(name, "-._ ");
		char word[MOST + 1];

		snprintf(word, sizeof(word), "%.*s", length < MOST ? (int)length : MOST,
			name);
		if (length >= LEAST && strpbrk(word, "0123456789") > word &&
			strcasestr(other, word))
			return true;
		name += length + (name[length] != 0);
	}
	return false;
}

/* What a name begins with, then the GPU, count for more than letters that happen to
 * agree. */
static const char *nearest(const char *name)
{
	enum { OTHER_GPU = 1000 };
	uint32_t count, least = UINT32_MAX;
	const struct instance_info *list = instance_list(&count), *best = list;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t far = edits_between(name, list[i].name) +
			       (shares_gpu(name, list[i].name) ? 0 : OTHER_GPU);

		if (!strncasecmp(name, list[i].name, strlen(name)))
			far = 0;
		if (far < least)
			best = &list[i];
		least = far < least ? far : least;
	}
	return best->name;
}

/* An interface that is no EFA has sockets only. */
static void nics_count(struct sim_site *site, struct xml_node *tree)
{
	site->nics = 0;
	for (struct xml_node *net = xml_find(tree, "net", NULL); net;
		net = xml_find(tree, "net", net)) {
		site->nics++;
		site->nic_GBps = (double)xml_int(net, "speed", 10000) / 8000;
	}
	if (site->outer == SIM_STAGED && site->nic_GBps <= 1.25)
		site->outer = SIM_ENA;
}

enum err sim_site_machine(struct sim_site *site, const char *name)
{
	const struct instance_info *info = instance_find(name);
	struct xml_node *tree;
	enum err e;

	if (!info)
		return err_set(ERR_USAGE,
			"machine '%s' is not known; did you mean %s? weft topo --list "
			"names all",
			name, nearest(name));
	e = instance_tree(info->name, &tree);
	if (e)
		return e;
	snprintf(site->machine, sizeof(site->machine), "%s", info->name);
	site->inner = SIM_PCIE;
	site->outer = SIM_RDMA;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strncasecmp(info->name, kinds[i].prefix, strlen(kinds[i].prefix)))
			continue;
		site->inner = kinds[i].inner;
		site->outer = kinds[i].outer;
		site->is_aws = kinds[i].is_aws;
		site->regions = kinds[i].regions;
		site->one_net = kinds[i].regions == REGION_P5EN ||
				kinds[i].regions == REGION_P6_B200;
		break;
	}
	nics_count(site, tree);
	xml_free(tree);
	return OK;
}

static bool is_direct(enum sim_wire wire)
{
	return wire != SIM_STAGED && wire != SIM_TCP && wire != SIM_ENA &&
	       wire != SIM_KERNEL;
}

static uint32_t parts_of(struct xml_node *tree, const char *name)
{
	uint32_t count = 0;

	for (struct xml_node *node = xml_find(tree, name, NULL); node;
		node = xml_find(tree, name, node))
		count++;
	return count;
}

/* Of a whole machine's devices those that take part, as far from each other as they can
 * be; a pod is given its own. The PCI function that a device was on stays. */
static void nets_thin(const struct sim_site *site, struct xml_node *tree)
{
	uint32_t count = parts_of(tree, "net"), at = 0;
	struct xml_node *net = xml_find(tree, "net", NULL), *kept = NULL;

	if (!count || !site->nics || site->gpus != parts_of(tree, "gpu"))
		return;
	for (; net; net = xml_find(tree, "net", kept)) {
		if (at++ * site->nics % count < site->nics)
			kept = net;
		else
			xml_free(net);
	}
}

/* What NCCL is told of a device. Its own module for sockets names no latency. An ENA does
 * not tell its speed: NCCL takes 10 Gb/s. */
static enum err net_tell(const struct sim_site *site, struct xml_node *net)
{
	double told = site->outer == SIM_ENA ? 1.25 : site->nic_GBps;
	enum err e = OK;

	if (told > 0)
		e = xml_attr_setf(net, "speed", "%d", (int)(told * 8000));
	if (!e && !is_direct(site->outer))
		e = xml_attr_set(net, "gdr", "0");
	if (!e && (site->outer == SIM_ENA || site->outer == SIM_TCP))
		e = xml_attr_set(net, "latency", "0");
	return e;
}

enum err sim_site_tree(const struct sim_site *site, struct xml_node **tree)
{
	bool is_own = site->tree != NULL;
	enum err e = OK;

	*tree = is_own ? xml_copy(NULL, site->tree) : NULL;
	if (is_own && !*tree)
		return ERR_SYSTEM;
	if (!is_own)
		e = instance_tree(site->machine, tree);
	if (e || is_own)
		return e;
	nets_thin(site, *tree);
	for (struct xml_node *net = xml_find(*tree, "net", NULL); !e && net;
		net = xml_find(*tree, "net", net))
		e = net_tell(site, net);
	if (e)
		xml_free(*tree);
	return e;
}

enum err sim_site_pods(struct sim_site *site, uint32_t pods, uint32_t gpus, uint32_t nics)
{
	uint32_t whole = site->nics, each = nics;

	if (pods * gpus > site->gpus)
		return err_set(ERR_USAGE,
			"%u pods of %u GPUs are more than the %u of a %s", pods, gpus,
			site->gpus, site->machine);
	if (!each)
		each = whole / pods ? whole / pods : 1;
	if (each > whole)
		return err_set(ERR_USAGE, "a pod cannot have %u NICs: a %s has %u", each,
			site->machine, whole);
	if (each * pods > whole)
		site->nic_GBps *= (double)whole / (each * pods);
	site->nics = each;
	site->nodes *= pods;
	site->gpus = gpus;
	return OK;
}

void sim_site_sockets(struct sim_site *site)
{
	site->outer = site->is_aws ? SIM_ENA : SIM_TCP;
	site->regions = REGION_NONE;
	site->nics = 1;
	if (site->nic_GBps > 12.5 && !site->threads)
		site->nic_GBps = 12.5;
}

enum { FIRST_NVLS = 17, FIRST_TUNER = 19 };

enum err sim_site_version(struct sim_site *site, const char *version)
{
	bool is_second = !strncmp(version, "2.", 2);
	size_t digits = is_second ? strspn(version + 2, "0123456789") : 0;
	uint32_t minor;

	if (!isdigit((unsigned char)version[0]))
		return OK;
	if (digits < 1 || digits > 2)
		return err_set(ERR_USAGE,
			"'%.40s' is no version of NCCL; 2.18 is one, and 2.27.7",
			version);
	minor = (uint32_t)strtoul(version + 2, NULL, 10);
	site->minor = minor;
	site->no_nvls |= minor < FIRST_NVLS;
	if (minor < FIRST_TUNER)
		site->regions = REGION_NONE;
	return OK;
}

/* One thread of the host moves so much through sockets. NCCL's proxy sends and receives
 * in one thread; where the vendor of the card is AWS it has helpers for each. */
static const double SOCKET_GBPS = 5;

double sim_site_nic_total(const struct sim_site *site)
{
	double threads = site->threads > 0	  ? site->threads
			 : site->outer == SIM_ENA ? 1
						  : .5;
	double each = site->nic_GBps;

	if ((site->outer == SIM_TCP || site->outer == SIM_ENA) &&
		each > threads * SOCKET_GBPS)
		each = threads * SOCKET_GBPS;
	return site->nics * each;
}
