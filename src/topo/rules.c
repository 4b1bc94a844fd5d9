#include "topo/rules.h"

#include <stdlib.h>
#include <string.h>

#include "base/param.h"
#include "topo/topo.h"

bool nccl_rules_named(const char *version, enum nccl_rules *rules)
{
	static const struct {
		const char *release;
		enum nccl_rules rules;
	} known[] = {{"2.30", NCCL_RULES_2_30}, {"2.31", NCCL_RULES_2_32},
		{"2.32", NCCL_RULES_2_32}};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		size_t length = strlen(known[i].release);
		const char *patch = version + length;

		if (strncmp(version, known[i].release, length))
			continue;
		if (*patch && (*patch != '.' || !patch[1] ||
				      patch[1 + strspn(patch + 1, "0123456789")]))
			continue;
		*rules = known[i].rules;
		return true;
	}
	return false;
}

const char *nccl_rules_version(enum nccl_rules rules)
{
	return rules == NCCL_RULES_2_30 ? "2.30.7" : "2.32.3";
}

/* NCCL's words, or the numbers of its first versions. */
static enum err level_read(enum param id, int *level)
{
	static const enum path_type old[] = {
		PATH_LOC, PATH_PIX, PATH_PXB, PATH_PHB, PATH_SYS};
	const char *text = param_text(id);
	enum path_type type;
	char *end;
	long number;

	if (!text)
		return OK;
	if (path_named(text, &type) && type <= PATH_SYS) {
		*level = (int)type;
		return OK;
	}
	number = strtol(text, &end, 0);
	if (end == text || *end || number < 0)
		return err_set(ERR_USAGE,
			"%s=%s: no such level; use LOC, NVL, NVB, C2C, PIX, PXB, P2C, "
			"PXN, PHB or SYS",
			param_info(id)->name, text);
	*level = (int)old[number > 4 ? 4 : number];
	return OK;
}

static enum err policy_read(struct topo_rules *rules)
{
	const char *text = param_text(PARAM_NETDEVS_POLICY);
	char *end;
	long most;

	if (!text || !strcasecmp(text, "AUTO"))
		return OK;
	rules->netdevs = NETDEVS_ALL;
	if (!strcasecmp(text, "ALL"))
		return OK;
	rules->netdevs = NETDEVS_MAX;
	most = strncasecmp(text, "MAX:", 4) ? 0 : strtol(text + 4, &end, 10);
	if (most < 1 || most > TOPO_NODES_MAX || *end)
		return err_set(ERR_USAGE,
			"NCCL_NETDEVS_POLICY=%s: use AUTO, ALL or MAX:N with N of 1 or "
			"more",
			text);
	rules->netdevs_max = (int)most;
	return OK;
}

static enum err merge_read(struct topo_rules *rules)
{
	const char *text = param_text(PARAM_NET_MERGE_LEVEL);
	enum path_type type;

	rules->merge_nics = param_int(PARAM_IB_MERGE_NICS) != 0;
	if (!text || !strcmp(text, "PORT"))
		return OK;
	if (!path_named(text, &type) || type > PATH_SYS)
		return err_set(ERR_USAGE,
			"NCCL_NET_MERGE_LEVEL=%s: use LOC, PORT, PIX, PXB, P2C, PXN, PHB "
			"or SYS",
			text);
	rules->merge_level = (int)type;
	return OK;
}

void topo_rules_default(struct topo_rules *rules)
{
	*rules = (struct topo_rules){.nccl = NCCL_RULES_NEWEST,
		.p2p_level = RULES_AUTO,
		.gdr_level = RULES_AUTO,
		.gdr_read = RULES_AUTO,
		.p2p_read = RULES_AUTO,
		.cross_nic = 2,
		.p2p_pxn_level = 2,
		.gdr_c2c = true,
		.pxn_c2c = true,
		.nvml_p2p_ok = true,
		.merge_nics = true,
		.merge_level = PATH_PORT};
}

enum err topo_rules_read(struct topo_rules *rules)
{
	enum err e;

	topo_rules_default(rules);
	rules->gdr_read = (int)param_int(PARAM_NET_GDR_READ);
	rules->p2p_read = (int)param_int(PARAM_P2P_READ);
	rules->cross_nic = (int)param_int(PARAM_CROSS_NIC);
	rules->p2p_pxn_level = (int)param_int(PARAM_P2P_PXN_LEVEL);
	rules->gdr_c2c = param_int(PARAM_NET_GDR_C2C) != 0;
	rules->pxn_disable = param_int(PARAM_PXN_DISABLE) != 0;
	rules->pxn_c2c = param_int(PARAM_PXN_C2C) != 0;
	rules->nvb_disable = param_int(PARAM_NVB_DISABLE) != 0;
	rules->shm_disable = param_int(PARAM_SHM_DISABLE) != 0;
	rules->net_disable_intra = param_int(PARAM_NET_DISABLE_INTRA) != 0;
	rules->ignore_disabled_p2p = (int)param_int(PARAM_IGNORE_DISABLED_P2P);
	e = level_read(PARAM_P2P_LEVEL, &rules->p2p_level);
	if (!e)
		e = level_read(PARAM_NET_GDR_LEVEL, &rules->gdr_level);
	if (!e)
		e = policy_read(rules);
	if (!e)
		e = merge_read(rules);
	if (param_int(PARAM_P2P_DISABLE))
		rules->p2p_level = PATH_LOC;
	return e;
}
