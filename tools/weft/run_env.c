#include "weft/run_env.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

extern char **environ;

enum { SETTINGS_MAX = 4096, TEXT_BYTES = 320 };

static bool begins_with(const char *text, const char *const *beginnings)
{
	for (; *beginnings; beginnings++)
		if (!strncmp(text, *beginnings, strlen(*beginnings)))
			return true;
	return false;
}

/* Names by which launchers say which rank a process is, and beginnings of such names. */
static bool is_of_launcher(const char *variable)
{
	static const char *const names[] = {"PMI_", "PMIX_", "OMPI_COMM_WORLD_",
		"MPI_LOCAL",
		"SLURM_PROCID=", "SLURM_LOCALID=", "SLURM_NODEID=", "SLURM_STEP_",
		"SLURM_STEPID=", "TORCHELASTIC_", "PET_",
		"JOB_COMPLETION_INDEX=", "WEFT_RANK", "WEFT_LOCAL_RANK",
		"WEFT_LAUNCHER=", NULL};

	return begins_with(variable, names);
}

static bool is_passed_on(const char *variable)
{
	static const char *const ours[] = {"WEFT_", "NCCL_", NULL};

	return begins_with(variable, ours) && !is_of_launcher(variable);
}

/* A text that lives as long as the process. */
static void add(char **list, const char *text)
{
	uint32_t count = 0;

	while (list[count])
		count++;
	if (count < SETTINGS_MAX)
		list[count] = strdup(text);
}

static void add_export(char **list, const char *text)
{
	size_t bytes = strcspn(text, "=");
	char *joined;

	if (text[bytes]) {
		add(list, text);
		return;
	}
	if (getenv(text) && asprintf(&joined, "%s=%s", text, getenv(text)) > 0) {
		add(list, joined);
		free(joined);
	}
}

/* A port that is free now; on another host, one that probably is. */
static unsigned port_find(bool is_all_here)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t bytes = sizeof(at);
	unsigned port = 20000 + (unsigned)getpid() % 9000;
	int fd = is_all_here ? socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;

	if (fd < 0)
		return port;
	if (!bind(fd, (struct sockaddr *)&at, sizeof(at)) &&
		!getsockname(fd, (struct sockaddr *)&at, &bytes))
		port = ntohs(at.sin_port);
	close(fd);
	return port;
}

/* For programs of torch.distributed, whose rank 0 runs a store there. */
static void add_master(char **list, const struct run_args *args)
{
	const struct run_host *first = &args->hosts[0];
	bool is_all_here = first->is_here && args->host_count == 1;
	char text[TEXT_BYTES], own[RUN_NAME_BYTES] = "localhost";

	gethostname(own, sizeof(own) - 1);
	if (!getenv("MASTER_ADDR")) {
		snprintf(text, sizeof(text), "MASTER_ADDR=%s",
			is_all_here	 ? "127.0.0.1"
			: first->is_here ? own
					 : first->name);
		add(list, text);
	}
	if (!getenv("MASTER_PORT")) {
		snprintf(text, sizeof(text), "MASTER_PORT=%u", port_find(is_all_here));
		add(list, text);
	}
}

char **run_env_settings(const struct run_args *args)
{
	char **list = calloc(SETTINGS_MAX + 1, sizeof(*list));

	if (!list) {
		fprintf(stderr, "weft run: no memory\n");
		exit(EXIT_FAILURE);
	}
	for (char **variable = environ; *variable; variable++)
		if (is_passed_on(*variable))
			add(list, *variable);
	add_export(list, "MASTER_ADDR");
	add_export(list, "MASTER_PORT");
	add_master(list, args);
	for (char **text = args->exports; *text; text++)
		add_export(list, *text);
	return list;
}

void run_env_forget(char **settings)
{
	for (char **text = settings; *text; text++)
		free(*text);
	free(settings);
}

static void launchers_forget(void)
{
	char name[RUN_NAME_BYTES];
	char **variable = environ;

	while (variable && *variable) {
		size_t bytes = strcspn(*variable, "=");

		if (!is_of_launcher(*variable) || bytes >= sizeof(name)) {
			variable++;
			continue;
		}
		memcpy(name, *variable, bytes);
		name[bytes] = '\0';
		unsetenv(name);
		variable = environ; /* unsetenv() moves what follows */
	}
}

static void set(const char *name, uint32_t value)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", value);
	setenv(name, text, 1);
}

void run_env_enter(const struct run_job *job, uint32_t local_rank, int pmi_fd)
{
	uint32_t rank = job->first_rank + local_rank;

	launchers_forget();
	for (char **setting = job->settings; *setting; setting++)
		putenv(*setting);
	set("WEFT_RANK", rank);
	set("WEFT_RANKS", job->rank_count);
	set("WEFT_LOCAL_RANK", local_rank);
	set("WEFT_LOCAL_RANKS", job->host_ranks);
	set("PMI_RANK", rank);
	set("PMI_SIZE", job->rank_count);
	set("PMI_FD", (uint32_t)pmi_fd);
	set("RANK", rank);
	set("WORLD_SIZE", job->rank_count);
	set("LOCAL_RANK", local_rank);
	set("LOCAL_WORLD_SIZE", job->host_ranks);
	set("GROUP_RANK", job->host);
}
