/* Names are known, obsolete or unknown; what is misspelt has a neighbour; and a process
 * is told of them once, in warnings. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/env_names.h"
#include "test.h"

static void check_kinds(void)
{
	const char *why;

	EQ(env_name_kind("NCCL_DEBUG", &why), ENV_NAME_KNOWN);
	EQ(env_name_kind("NCCL_BUFFSIZE", &why), ENV_NAME_KNOWN);
	EQ(env_name_kind("OFI_NCCL_PROTOCOL", &why), ENV_NAME_KNOWN);
	EQ(env_name_kind("FI_EFA_FORK_SAFE", &why), ENV_NAME_KNOWN);
	EQ(env_name_kind("HOME", &why), ENV_NAME_FOREIGN);
	EQ(env_name_kind("FI_PROVIDER", &why), ENV_NAME_FOREIGN);
	EQ(env_name_kind("NCCL_P2P_DIRECT_READ", &why), ENV_NAME_OBSOLETE);
	TRUE(why && strstr(why, "never was"));
	EQ(env_name_kind("FI_EFA_USE_DEVICE_RDMA", &why), ENV_NAME_OBSOLETE);
	EQ(env_name_kind("NCCL_SOCKET_IFNAM", &why), ENV_NAME_UNKNOWN);
	TRUE(!why);
}

static void check_nearest(void)
{
	char nearest[ENV_NAME_BYTES];

	TRUE(env_name_nearest("NCCL_SOCKET_IFNAM", nearest));
	EQ_STR(nearest, "NCCL_SOCKET_IFNAME");
	TRUE(env_name_nearest("NCCL_DEBGU", nearest));
	EQ_STR(nearest, "NCCL_DEBUG");
	TRUE(env_name_nearest("NCCL_BUFSIZE", nearest));
	EQ_STR(nearest, "NCCL_BUFFSIZE");
	TRUE(!env_name_nearest("NCCL_ENTIRELY_MADE_UP_NAME", nearest));
	TRUE(!env_name_nearest("SOMETHING", nearest));
}

/* A beginning that is misspelt, and what only looks so. */
static void check_slips(void)
{
	static const char *const slips[][2] = {{"NCLL_DEBUG", "NCCL_DEBUG"},
		{"NCCl_DEBUG", "NCCL_DEBUG"}, {"nccl_debug", "NCCL_DEBUG"},
		{"NCCLDEBUG", "NCCL_DEBUG"}, {"NCC_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"},
		{"NCLL_SOCKET_IFNAM", "NCCL_SOCKET_IFNAME"}, {"NCLC_ALGO", "NCCL_ALGO"},
		{"NNCCL_P2P_LEVEL", "NCCL_P2P_LEVEL"}, {"NCCI_IB_HCA", "NCCL_IB_HCA"},
		{"OFI_NCLL_PROTOCOL", "OFI_NCCL_PROTOCOL"},
		{"OF_NCCL_PROTOCOL", "OFI_NCCL_PROTOCOL"}, {"FI_PROVDER", "FI_PROVIDER"},
		{"FI_PROVIDERS", "FI_PROVIDER"}, {"fi_provider", "FI_PROVIDER"},
		{"FI_LOGLEVEL", "FI_LOG_LEVEL"}, {"FI_EAF_FORK_SAFE", "FI_EFA_FORK_SAFE"},
		{"WFET_TIMEOUT_SEC", "WEFT_TIMEOUT_SEC"}};
	static const char *const others[] = {"RCCL_DEBUG", "HCCL_SOCKET_IFNAME",
		"CNCL_DEBUG", "TORCH_NCCL_ASYNC_ERROR_HANDLING", "NGC_HOME", "NCL_HOME",
		"NVCC_APPEND_FLAGS", "NVIDIA_VISIBLE_DEVICES", "NODE_NAME", "NODE_DEBUG",
		"NET", "NLTK_DATA", "NCCL", "FI", "FI_", "FILE_PROVIDER", "FX_PROVIDER",
		"FI_CXI_RX_MATCH_MODE", "FI_OFI_RXM_USE_SRX", "FI_PROVIDER_PATH",
		"FI_MR_CACHE_MONITOR", "OMPI_MCA_btl", "OMP_NUM_THREADS", "N", "",
		"WEB_CONCURRENCY", "LEFT_TIMEOUT_SEC", "UCX_NET_DEVICES"};
	char nearest[ENV_NAME_BYTES];
	const char *why;

	for (size_t i = 0; i < sizeof(slips) / sizeof(slips[0]); i++) {
		EQ(env_name_kind(slips[i][0], &why), ENV_NAME_UNKNOWN);
		TRUE(env_name_nearest(slips[i][0], nearest));
		EQ_STR(nearest, slips[i][1]);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		EQ(env_name_kind(others[i], &why), ENV_NAME_FOREIGN);
}

/* What a process of this environment says, twice asked. */
static void warnings_of(char *text, size_t room)
{
	int pipe_fds[2], status;
	size_t used = 0;
	ssize_t got;
	pid_t child;

	EQ(pipe(pipe_fds), 0);
	child = fork();
	TRUE(child >= 0);
	if (!child) {
		dup2(pipe_fds[1], 1);
		close(pipe_fds[0]);
		env_names_warn();
		env_names_warn();
		_exit(0);
	}
	close(pipe_fds[1]);
	while ((got = read(pipe_fds[0], text + used, room - 1 - used)) > 0)
		used += (size_t)got;
	text[used] = 0;
	close(pipe_fds[0]);
	EQ(waitpid(child, &status, 0), child);
	EQ(status, 0);
}

static int count(const char *text, const char *part)
{
	int times = 0;

	for (; (text = strstr(text, part)); text++)
		times++;
	return times;
}

int main(void)
{
	char text[8192];

	check_kinds();
	check_nearest();
	check_slips();
	setenv("NCCL_DEBUG", "WARN", 1);
	warnings_of(text, sizeof(text));
	EQ_STR(text, "");
	setenv("NCCL_SOCKET_IFNAM", "eth0", 1);
	setenv("NCCL_P2P_DIRECT_READ", "1", 1);
	setenv("NCCL_TOPO_FILE", "", 1);
	warnings_of(text, sizeof(text));
	EQ(count(text, "NCCL WARN"), 3);
	EQ(count(text, "is NCCL_SOCKET_IFNAME meant?"), 1);
	EQ(count(text, "NCCL_P2P_DIRECT_READ is set and has no effect"), 1);
	EQ(count(text, "NCCL_TOPO_FILE is set to nothing"), 1);
	setenv("WEFT_SILENCE_SEC", "abc", 1);
	setenv("WEFT_TIMEOUT_SEC", "5", 1);
	setenv("WEFT_STALL_SEC", "", 1);
	setenv("NCCL_COMM_BLOCKING", "1e99", 1);
	warnings_of(text, sizeof(text));
	EQ(count(text, "NCCL WARN"), 5);
	EQ(count(text,
		   "WEFT_SILENCE_SEC=abc does not count: it takes whole numbers from 0"),
		1);
	EQ(count(text, "NCCL_COMM_BLOCKING=1e99 does not count"), 1);
	setenv("NCCL_TOPO_FILE", "/nowhere/at/all.xml", 1);
	warnings_of(text, sizeof(text));
	EQ(count(text, "NCCL_TOPO_FILE=/nowhere/at/all.xml cannot be read"), 1);
	return 0;
}
