/* What is no file: limits, environment, the rendezvous; and where it is saved. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/env_names.h"
#include "base/environment.h"
#include "base/param.h"
#include "weft/doctor/host_facts.h"

enum { MASTER_WAIT_MS = 700 };

const char *host_env(const struct host_facts *facts, const char *name)
{
	for (uint32_t i = 0; i < facts->env_count; i++)
		if (!strcmp(facts->envs[i].name, name))
			return facts->envs[i].value;
	return NULL;
}

/* Variables of communication and of launchers, and nothing that might be a secret. */
static bool is_wanted(const char *name)
{
	static const char *const prefixes[] = {"NCCL_", "FI_", "OFI_NCCL_",
		"CUDA_VISIBLE", "MASTER_", "RANK", "LOCAL_RANK", "WORLD_SIZE",
		"LD_LIBRARY_PATH", "KUBERNETES_SERVICE_HOST", "WEFT_"};
	const char *why;

	if (strstr(name, "SECRET") || strstr(name, "TOKEN") || strstr(name, "PASS") ||
		strstr(name, "KEY") || strstr(name, "CREDENTIAL"))
		return false;
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	return env_name_kind(name, &why) == ENV_NAME_UNKNOWN;
}

static void add_env(struct host_facts *facts, const char *text)
{
	const char *equals = strchr(text, '=');
	struct host_env *env = &facts->envs[facts->env_count];

	if (!equals || (size_t)(equals - text) >= sizeof(env->name) ||
		facts->env_count == HOST_ENVS_MAX)
		return;
	snprintf(env->name, sizeof(env->name), "%.*s", (int)(equals - text), text);
	snprintf(env->value, sizeof(env->value), "%.255s", equals + 1);
	if (is_wanted(env->name))
		facts->env_count++;
}

/* Does somebody answer at an address within the time we have? */
static enum host_master try_address(const struct addrinfo *at)
{
	int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	enum host_master answer = MASTER_SILENT;
	struct pollfd wait = {.fd = fd, .events = POLLOUT};
	int error = 0;
	socklen_t bytes = sizeof(error);

	if (fd < 0)
		return MASTER_SILENT;
	if (!connect(fd, at->ai_addr, at->ai_addrlen))
		answer = MASTER_REACHED;
	else if (errno == EINPROGRESS && poll(&wait, 1, MASTER_WAIT_MS) == 1 &&
		 !getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes))
		answer = !error			 ? MASTER_REACHED
			 : error == ECONNREFUSED ? MASTER_REFUSED
						 : MASTER_SILENT;
	else if (errno == ECONNREFUSED)
		answer = MASTER_REFUSED;
	close(fd);
	return answer;
}

enum host_master host_try_master(const struct host_facts *facts)
{
	const char *name = host_env(facts, "MASTER_ADDR");
	const char *port = host_env(facts, "MASTER_PORT");
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
	enum host_master answer = MASTER_SILENT;

	if (!name || !name[0])
		return MASTER_UNSET;
	if (getaddrinfo(name, port && port[0] ? port : "29500", &hints, &found))
		return MASTER_UNRESOLVED;
	for (const struct addrinfo *at = found; at && answer != MASTER_REACHED;
		at = at->ai_next) {
		enum host_master other = try_address(at);

		/* who refuses is at least there */
		if (other == MASTER_REACHED || answer == MASTER_SILENT)
			answer = other;
	}
	freeaddrinfo(found);
	return answer;
}

void host_read_process(struct host_facts *facts)
{
	struct rlimit limit;
	struct statvfs shm;
	cpu_set_t cpus;
	const char *text;

	for (uint32_t i = 0; (text = environment_at(i)); i++)
		add_env(facts, text);
	if (!getrlimit(RLIMIT_MEMLOCK, &limit))
		facts->memlock_bytes = limit.rlim_cur == RLIM_INFINITY
					       ? INT64_MAX
					       : (int64_t)limit.rlim_cur;
	if (!getrlimit(RLIMIT_NOFILE, &limit))
		facts->files_max = limit.rlim_cur == RLIM_INFINITY
					   ? INT64_MAX
					   : (int64_t)limit.rlim_cur;
	facts->shm_bytes = statvfs("/dev/shm", &shm)
				   ? HOST_UNKNOWN
				   : (int64_t)(shm.f_blocks * shm.f_frsize);
	if (!sched_getaffinity(0, sizeof(cpus), &cpus))
		facts->cpus = CPU_COUNT(&cpus);
}

/* What other programs said on a captured host. */
static void take_answer(struct host_facts *facts, const char *name, const char *value)
{
	if (!strcmp(name, "links"))
		sscanf(value, "%d %d", &facts->links_up, &facts->links_down);
	else if (!strcmp(name, "link-errors"))
		facts->link_errors = atoll(value);
	else if (!strcmp(name, "p2p-refused"))
		sscanf(value, "%d %7s", &facts->p2p_refused, facts->p2p_why);
	else if (!strcmp(name, "fabric"))
		snprintf(
			facts->fabric_state, sizeof(facts->fabric_state), "%.31s", value);
	else if (!strcmp(name, "fabric-manager"))
		facts->fabric_manager = atoi(value);
	else if (!strcmp(name, "imex-service"))
		facts->imex_service = atoi(value);
	else if (!strcmp(name, "providers"))
		snprintf(facts->providers, sizeof(facts->providers), "%.255s", value);
	else if (!strcmp(name, "plugin-error"))
		snprintf(facts->plugin_error, sizeof(facts->plugin_error), "%.255s",
			value);
}

/* "name value" lines of ROOT/weft/limits. */
static void take_saved(struct host_facts *facts, const char *name, const char *value)
{
	if (!strcmp(name, "shm"))
		facts->shm_bytes = atoll(value);
	else if (!strcmp(name, "memlock"))
		facts->memlock_bytes = atoll(value);
	else if (!strcmp(name, "files"))
		facts->files_max = atoll(value);
	else if (!strcmp(name, "cpus"))
		facts->cpus = atof(value);
	else if (!strcmp(name, "master"))
		facts->master = (enum host_master)(
			(unsigned)atoi(value) % (MASTER_SILENT + 1));
	else
		take_answer(facts, name, value);
}

enum err host_read_saved(struct host_facts *facts, const char *root)
{
	char path[1024], line[1024];
	struct stat about;
	FILE *file;

	if (stat(root, &about) || !S_ISDIR(about.st_mode))
		return err_set(ERR_ARGUMENT,
			"--root %s: there is no such folder; weft doctor --capture makes "
			"one",
			root);
	facts->shm_bytes = facts->memlock_bytes = facts->files_max = HOST_UNKNOWN;
	snprintf(path, sizeof(path), "%s/weft/limits", root);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file)) {
		char *value = strchr(line, ' ');

		if (!value)
			continue;
		*value++ = 0;
		value[strcspn(value, "\n")] = 0;
		take_saved(facts, line, value);
	}
	if (file)
		fclose(file);
	snprintf(path, sizeof(path), "%s/weft/environment", root);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = 0;
		add_env(facts, line);
	}
	if (file)
		fclose(file);
	return OK;
}

static void unseen(struct host_facts *facts, const char *what)
{
	if (facts->unseen_count < HOST_UNSEEN_MAX)
		snprintf(facts->unseen[facts->unseen_count++], HOST_TEXT, "%s", what);
}

/* Say what this look leaves out. */
static void note_unseen(struct host_facts *facts)
{
	if (!facts->boot_id[0])
		unseen(facts, "boot id: /proc/sys/kernel/random is hidden");
	if (!facts->product[0])
		unseen(facts, "machine type: DMI is hidden here");
	if (facts->gpu_count && facts->switch_count && facts->fabric_manager < 0)
		unseen(facts, "fabric manager: its files are the host's");
	if (facts->gpu_files && facts->links_up < 0)
		unseen(facts,
			"NVLinks, their errors and peer-to-peer: nvidia-smi did not "
			"answer");
	if (facts->gpu_count > 1 && facts->bridges_hidden)
		unseen(facts, "ACS: only root may read the bridges' configuration");
	if (facts->gpu_count && facts->numa_count > 1 && facts->numa_hidden)
		unseen(facts, "NUMA: the bus does not tell the node of every device");
	if (facts->nic_count && !facts->providers[0])
		unseen(facts, "libfabric's providers: fi_info did not answer");
	if (facts->shm_bytes < 0)
		unseen(facts, "/dev/shm: it is not mounted or not recorded");
}

enum err host_read_folder(struct host_facts *facts, const char *root)
{
	enum err e = OK;

	memset(facts, 0, sizeof(*facts));
	facts->is_captured = root != NULL;
	facts->links_up = facts->links_down = facts->p2p_refused = HOST_UNKNOWN;
	facts->link_errors = facts->fabric_manager = facts->imex_service = HOST_UNKNOWN;
	if (root)
		e = host_read_saved(facts, root);
	else
		host_read_process(facts);
	if (e)
		return e;
	host_read_files(facts, root ? root : "");
	if (!root)
		host_ask_tools(facts);
	if (host_env(facts, "KUBERNETES_SERVICE_HOST"))
		snprintf(facts->container, sizeof(facts->container), "kubernetes pod");
	note_unseen(facts);
	return OK;
}
