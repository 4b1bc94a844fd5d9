#include "fabric_names.h"

#include <rdma/fabric.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"
#include "setting.h"

enum { NAMES_MAX = 1024, SLIPS_MAX = 2, SLIPS_SHORT = 1 };

extern char **environ;

/* Providers that are not here do not tell these, and jobs set them everywhere. */
static const char *const usual[] = {"FI_TCP_IFACE", "FI_UDP_IFACE", "FI_NET_IFACE",
	"FI_SOCKETS_IFACE", "FI_VERBS_IFACE", "FI_EFA_USE_DEVICE_RDMA",
	"FI_EFA_FORK_SAFE", "FI_EFA_ENABLE_SHM_TRANSFER", "FI_EFA_USE_HUGE_PAGE",
	"FI_EFA_SET_CUDA_SYNC_MEMOPS", "FI_EFA_TX_SIZE", "FI_EFA_RX_SIZE",
	"FI_EFA_TX_MIN_CREDITS", "FI_EFA_CQ_SIZE", "FI_EFA_USE_ZCPY_RX",
	"FI_EFA_MR_CACHE_ENABLE", "FI_EFA_MR_MAX_CACHED_COUNT",
	"FI_EFA_MR_MAX_CACHED_SIZE", "FI_EFA_RUNT_SIZE", "FI_EFA_IFACE",
	"FI_EFA_USE_UNSOLICITED_WRITE_RECV", "FI_EFA_INTER_MAX_MEDIUM_MESSAGE_SIZE",
	"FI_EFA_INTER_MIN_READ_MESSAGE_SIZE", "FI_EFA_INTER_MIN_READ_WRITE_SIZE"};
enum { USUAL = sizeof(usual) / sizeof(usual[0]) };

/* Is it of a provider that is not here to say what it knows? */
static bool is_of_absent(const char *entry, const struct setting_names *names)
{
	static const char *const owners[] = {"FI_PSM_", "FI_PSM2_", "FI_PSM3_", "FI_CXI_",
		"FI_OPX_", "FI_VERBS_", "FI_TCP_", "FI_NET_", "FI_SOCKETS_", "FI_SHM_",
		"FI_UDP_", "FI_OFI_RXM_", "FI_UCX_", "FI_LNX_"};
	const char *owner = NULL;

	for (size_t i = 0; i < sizeof(owners) / sizeof(owners[0]); i++)
		if (!strncmp(entry, owners[i], strlen(owners[i])))
			owner = owners[i];
	for (int i = USUAL; owner && i < names->count; i++)
		if (!strncmp(names->names[i], owner, strlen(owner)))
			owner = NULL;
	return owner;
}

void fabric_names_check(void)
{
	static const char prefix[] = "FI_";
	const char *all[NAMES_MAX];
	struct setting_names names = {all, 0, SLIPS_MAX, false};
	struct fi_param *params = NULL;
	int count = 0, param_count = 0;

	for (; count < USUAL; count++)
		all[count] = usual[count];
	if (fi_getparams(&params, &param_count))
		param_count = 0;
	for (int i = 0; i < param_count && count < NAMES_MAX; i++)
		all[count++] = params[i].name;
	names.count = count;
	for (char **entry = environ; entry && *entry; entry++) {
		bool is_looked_at = !strncmp(*entry, prefix, sizeof(prefix) - 1) &&
				    !is_of_absent(*entry, &names);
		const char *nearest = is_looked_at ? setting_nearest(*entry, &names)
						   : NULL;

		if (nearest)
			say_wrong(OFI_OK,
				"%.*s is not a variable of libfabric here and has no "
				"effect; is it meant to be %s",
				(int)strcspn(*entry, "="), *entry, nearest);
	}
	if (params)
		fi_freeparams(params);
}

const char *fabric_provider_near(const char *name)
{
	static const char *const providers[] = {"efa", "verbs", "tcp", "net", "sockets",
		"shm", "udp", "cxi", "opx", "psm3", "psm2"};

	struct setting_names names = {
		providers, sizeof(providers) / sizeof(providers[0]), SLIPS_SHORT, false};

	return setting_nearest(name, &names);
}
