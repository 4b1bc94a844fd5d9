/* launch_read(): the variables of every launcher, as one table and a few exceptions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/hash.h"
#include "base/param.h"
#include "launch/launch.h"
#include "launch/nodes.h"

/* One launcher: it is there when one of `signs` is set. */
struct speaker {
	const char *word, *name;
	const char *signs[2];
	const char *rank, *count, *local_rank, *local_count;
	const char *job[3]; /* variables that tell this job from others, where set */
	const char *master; /* variable with rank 0's host */
};

/* By enum launch_kind, which is the order in which they are looked for. */
static const struct speaker speakers[LAUNCH_KIND_COUNT] = {
	[LAUNCH_ALONE] = {"none", "no launcher", {0}, 0, 0, 0, 0, {0}, 0},
	[LAUNCH_TORCHRUN] = {"torchrun", "torchrun", {"TORCHELASTIC_RUN_ID"}, "RANK",
		"WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
		{"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_PORT"},
		"MASTER_ADDR"},
	[LAUNCH_OPENMPI] = {"openmpi", "Open MPI",
		{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, "OMPI_COMM_WORLD_RANK",
		"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
		"OMPI_COMM_WORLD_LOCAL_SIZE",
		{"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}, "MASTER_ADDR"},
	[LAUNCH_PMI] = {"pmi", "PMI", {"PMI_RANK", "PMI_SIZE"}, "PMI_RANK", "PMI_SIZE",
		"MPI_LOCALRANKID", "MPI_LOCALNRANKS",
		{"PMI_JOBID", "SLURM_JOB_ID", "SLURM_STEP_ID"}, "MASTER_ADDR"},
	[LAUNCH_PMIX] = {"pmix", "PMIx", {"PMIX_RANK"}, "PMIX_RANK",
		"SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", NULL, {"PMIX_NAMESPACE"},
		"MASTER_ADDR"},
	[LAUNCH_SLURM] = {"slurm", "Slurm", {"SLURM_STEP_NUM_TASKS"}, "SLURM_PROCID",
		"SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", NULL,
		{"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"}, NULL},
	[LAUNCH_WEFT] = {"weft", "weft run", {"WEFT_RANK", "WEFT_RANKS"}, "WEFT_RANK",
		"WEFT_RANKS", "WEFT_LOCAL_RANK", "WEFT_LOCAL_RANKS", {"MASTER_PORT"},
		"MASTER_ADDR"},
	[LAUNCH_PET] = {"pet", "Kubeflow", {"PET_NODE_RANK"}, "PET_NODE_RANK",
		"PET_NNODES", NULL, NULL, {"PET_RDZV_ID", "PET_MASTER_PORT"},
		"PET_MASTER_ADDR"},
	[LAUNCH_ENV] = {"env", "the environment", {"RANK", "WORLD_SIZE"}, "RANK",
		"WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", {"MASTER_PORT"},
		"MASTER_ADDR"},
	[LAUNCH_KUBERNETES] = {"kubernetes", "a Kubernetes indexed Job",
		{"JOB_COMPLETION_INDEX"}, "JOB_COMPLETION_INDEX", "WORLD_SIZE", NULL,
		NULL, {0}, "MASTER_ADDR"},
};

static const char *process_get(const void *arg, const char *name)
{
	enum param id;

	(void)arg;
	return param_find(name, &id) ? param_text(id) : environment_find(name);
}

const struct launch_env launch_env_process = {.get = process_get};

const char *launch_name(enum launch_kind kind)
{
	return speakers[kind].name;
}

const char *launch_word(enum launch_kind kind)
{
	return kind < LAUNCH_KIND_COUNT ? speakers[kind].word : NULL;
}

static const char *get(const struct launch_env *env, const char *name)
{
	const char *text = name ? env->get(env->arg, name) : NULL;

	return text && *text ? text : NULL;
}

/* ---- which launcher ---- */

/* The index of a pod stands for a rank variable that is not set: WORLD_SIZE alone is then
 * how the user tells a Kubernetes job its size. */
static bool is_pod_of_ours(const struct launch_env *env, enum launch_kind kind)
{
	return kind == LAUNCH_ENV && !get(env, "RANK") &&
	       get(env, "JOB_COMPLETION_INDEX");
}

/* mpiexec -pmi-port: where the launcher listens, and which of its processes this is. How
 * many there are it says there. Who has a descriptor is not sent to a port. */
static bool is_by_port(const struct launch_env *env)
{
	return get(env, "PMI_PORT") && get(env, "PMI_ID") && !get(env, "PMI_FD");
}

static bool speaks(const struct launch_env *env, enum launch_kind kind)
{
	const struct speaker *speaker = &speakers[kind];

	if (kind == LAUNCH_PMI && is_by_port(env))
		return true;
	return (get(env, speaker->signs[0]) || get(env, speaker->signs[1])) &&
	       !is_pod_of_ours(env, kind);
}

static enum err kind_named(const char *word, enum launch_kind *kind)
{
	char words[160];
	int used = 0;

	for (int i = 0; i < LAUNCH_KIND_COUNT; i++) {
		if (!strcmp(word, speakers[i].word)) {
			*kind = (enum launch_kind)i;
			return OK;
		}
		used += snprintf(words + used, sizeof(words) - (size_t)used, " %s",
			speakers[i].word);
	}
	return err_set(ERR_USAGE, "WEFT_LAUNCHER is %.40s; there are%s", word, words);
}

static enum err kind_find(const struct launch_env *env, enum launch_kind *kind)
{
	const char *word = get(env, "WEFT_LAUNCHER");

	if (word)
		return kind_named(word, kind);
	*kind = LAUNCH_ALONE;
	for (int i = LAUNCH_KIND_COUNT - 1; i > LAUNCH_ALONE; i--)
		if (speaks(env, (enum launch_kind)i))
			*kind = (enum launch_kind)i;
	return OK;
}

/* ---- numbers ---- */

static bool number_read(const char *text, int *number)
{
	size_t digits = strspn(text, "0123456789");

	if (!digits || digits > 7 || text[digits])
		return false;
	*number = atoi(text);
	return true;
}

static enum err missing(enum launch_kind kind, const char *there, const char *lacking)
{
	const struct speaker *speaker = &speakers[kind];

	return err_set(ERR_USAGE,
		"%s%s%s is not set: a rank of %s is known by %s and %s; set both, or "
		"WEFT_LAUNCHER=none to run alone",
		there ? there : "", there ? " is set and " : "", lacking, speaker->name,
		speaker->rank, speaker->count);
}

/* A number that must be there. `other` is the variable that made us look. */
static enum err number_need(const struct launch_env *env, enum launch_kind kind,
	const char *name, const char *other, int *number)
{
	const char *text = get(env, name);

	if (!text)
		return missing(kind, get(env, other) ? other : NULL, name);
	if (!number_read(text, number))
		return err_set(ERR_USAGE,
			"%s is '%.40s' and should be a whole number: it comes from %s; "
			"WEFT_LAUNCHER=none runs alone",
			name, text, speakers[kind].name);
	return OK;
}

/* Local numbers only help; what makes no sense is as good as not set. */
static void local_read(const struct launch_env *env, struct launch *launch)
{
	const struct speaker *speaker = &speakers[launch->kind];
	const char *rank = get(env, speaker->local_rank);
	const char *count = get(env, speaker->local_count);
	const char *node = get(env, "SLURM_NODEID");
	const char *tasks = get(env, "SLURM_STEP_TASKS_PER_NODE");
	bool is_slurm = launch->kind == LAUNCH_SLURM || launch->kind == LAUNCH_PMIX ||
			(launch->kind == LAUNCH_PMI && !rank);
	int index;

	if (!rank && is_slurm)
		rank = get(env, "SLURM_LOCALID");
	if (!rank || !number_read(rank, &launch->local_rank))
		launch->local_rank = -1;
	if (!count || !number_read(count, &launch->local_count))
		launch->local_count = -1;
	if (!count && is_slurm && node && tasks && number_read(node, &index) &&
		!nodes_tasks(tasks, index, &launch->local_count))
		launch->local_count = -1;
	if (launch->local_count < 1 ||
		(launch->rank_count > 0 && launch->local_count > launch->rank_count))
		launch->local_count = -1;
	if (launch->local_count > 0 && launch->local_rank >= launch->local_count)
		launch->local_rank = -1;
}

/* PMIx has no variable for the number of ranks; its library knows. Behind PMI_PORT the
 * launcher does. */
static bool is_count_asked(const struct launch_env *env, const struct launch *launch)
{
	const char *rank = get(env, "PMIX_RANK"), *slurm = get(env, "SLURM_PROCID");

	if (launch->kind == LAUNCH_PMI && is_by_port(env))
		return true;
	return launch->kind == LAUNCH_PMIX &&
	       (!slurm || strcmp(rank ? rank : "", slurm) ||
		       !get(env, "SLURM_STEP_NUM_TASKS"));
}

static enum err numbers_read(const struct launch_env *env, struct launch *launch)
{
	const struct speaker *speaker = &speakers[launch->kind];
	bool is_port = launch->kind == LAUNCH_PMI && is_by_port(env);
	enum err e = number_need(env, launch->kind, is_port ? "PMI_ID" : speaker->rank,
		speaker->count, &launch->rank);

	if (!e && !is_count_asked(env, launch))
		e = number_need(env, launch->kind, speaker->count, speaker->rank,
			&launch->rank_count);
	if (e)
		return e;
	if (launch->rank_count > LAUNCH_RANKS_MAX ||
		(launch->rank_count < 1 && !is_count_asked(env, launch)))
		return err_set(ERR_USAGE, "%s is %d and should be 1 to %d",
			speaker->count, launch->rank_count, LAUNCH_RANKS_MAX);
	if (launch->rank_count && launch->rank >= launch->rank_count)
		return err_set(ERR_USAGE,
			"%s is %d and %s is %d: ranks count from 0; WEFT_LAUNCHER=none "
			"runs alone",
			speaker->rank, launch->rank, speaker->count, launch->rank_count);
	local_read(env, launch);
	return OK;
}

/* ---- how bytes travel ---- */

static void job_name(const struct launch_env *env, struct launch *launch)
{
	int used = snprintf(
		launch->job, sizeof(launch->job), "%s", speakers[launch->kind].word);

	for (int i = 0; i < 3; i++) {
		const char *text = get(env, speakers[launch->kind].job[i]);

		if (text && used < (int)sizeof(launch->job))
			used += snprintf(launch->job + used,
				sizeof(launch->job) - (size_t)used, " %.100s", text);
	}
}

/* WEFT_MASTER is a host, or a host and a port; an IPv6 address has [] when a port
 * follows.
 */
static enum err master_split(const char *text, struct launch *launch)
{
	const char *colon = strrchr(text, ':');
	bool has_port = colon &&
			(text[0] == '[' ? colon[-1] == ']' : strchr(text, ':') == colon);
	size_t bytes = has_port ? (size_t)(colon - text) : strlen(text);

	if (has_port && (!number_read(colon + 1, &launch->port) || launch->port < 1 ||
				launch->port > 65535))
		return err_set(ERR_USAGE,
			"WEFT_MASTER is %.80s: its port should be 1 to 65535", text);
	launch->is_port_given = has_port;
	if (text[0] == '[' && bytes > 2 && text[bytes - 1] == ']') {
		text++;
		bytes -= 2;
	}
	if (!bytes || bytes >= sizeof(launch->master))
		return err_set(ERR_USAGE,
			"WEFT_MASTER is %.80s and should be a host, or host:port", text);
	memcpy(launch->master, text, bytes);
	launch->master[bytes] = '\0';
	return OK;
}

/* The same on every rank: the first of the ports to try. */
static void port_derive(struct launch *launch)
{
	uint64_t hash = hash_add_text(HASH_START, launch->job);

	hash = hash_spread(hash_add_text(hash, launch->master));
	launch->port = LAUNCH_PORT_FIRST + (int)((hash >> 32) % LAUNCH_PORT_SPAN);
}

static enum err master_read(
	const struct launch_env *env, struct launch *launch, bool *found)
{
	const char *given = get(env, "WEFT_MASTER");
	const char *master = get(env, speakers[launch->kind].master);
	const char *nodes = get(env, "SLURM_STEP_NODELIST");
	enum err e = OK;

	*found = true;
	if (given) {
		e = master_split(given, launch);
	} else if (master) {
		*found = strlen(master) < sizeof(launch->master);
		snprintf(launch->master, sizeof(launch->master), "%s", master);
	} else if (launch->kind == LAUNCH_SLURM && nodes) {
		*found = nodes_first(nodes, launch->master, sizeof(launch->master));
		if (!*found)
			e = err_set(ERR_USAGE,
				"SLURM_STEP_NODELIST is '%.80s', which is no list of "
				"hosts: set WEFT_MASTER to rank 0's host",
				nodes);
	} else {
		*found = false;
	}
	if (!e && *found && !launch->is_port_given)
		port_derive(launch);
	return e;
}

void launch_use_host_file(struct launch *launch)
{
	uint64_t hash = hash_spread(hash_add_text(HASH_START, launch->job));

	snprintf(launch->path, sizeof(launch->path), "/tmp/weft-id-%u-%016llx",
		(unsigned)geteuid(), (unsigned long long)hash);
	launch->is_host_file = true;
	launch->travel = TRAVEL_FILE;
}

static enum err no_way(const struct launch *launch, const char *tried)
{
	return err_set(ERR_USAGE,
		"this is rank %d of %d of %s, and nothing says how the ranks find each "
		"other: %s; set WEFT_MASTER to rank 0's host, WEFT_ID_FILE to a file "
		"that "
		"all of them see, or NCCL_COMM_ID",
		launch->rank, launch->rank_count, launch_name(launch->kind), tried);
}

/* weft run and Hydra talk PMI on a descriptor, and so does srun --mpi=pmi2. */
static bool has_pmi(const struct launch_env *env, const struct launch *launch)
{
	const char *fd = get(env, "PMI_FD"), *rank = get(env, "PMI_RANK");
	const char *count = get(env, "PMI_SIZE");
	int number;

	if (launch->kind != LAUNCH_PMI && launch->kind != LAUNCH_WEFT)
		return false;
	if (launch->pmi_port[0])
		return true;
	return fd && number_read(fd, &number) && rank && number_read(rank, &number) &&
	       number == launch->rank && count && number_read(count, &number) &&
	       number == launch->rank_count;
}

static bool has_pmix(const struct launch_env *env, const struct launch *launch)
{
	return (launch->kind == LAUNCH_OPENMPI || launch->kind == LAUNCH_PMIX) &&
	       get(env, "PMIX_RANK") && get(env, "PMIX_NAMESPACE");
}

static enum err file_read(const char *path, struct launch *launch)
{
	if (strlen(path) + 32 >= sizeof(launch->path))
		return err_set(ERR_USAGE, "WEFT_ID_FILE is longer than a path may be");
	snprintf(launch->path, sizeof(launch->path), "%s", path);
	launch->travel = TRAVEL_FILE;
	return OK;
}

static enum err port_read(const struct launch_env *env, struct launch *launch)
{
	const char *text = get(env, "PMI_PORT");

	if (launch->kind != LAUNCH_PMI || !is_by_port(env))
		return OK;
	if (strlen(text) >= sizeof(launch->pmi_port))
		return err_set(ERR_USAGE,
			"PMI_PORT is longer than %zu bytes and should be the launcher's "
			"host:port",
			sizeof(launch->pmi_port) - 1);
	snprintf(launch->pmi_port, sizeof(launch->pmi_port), "%s", text);
	return OK;
}

static enum err travel_find(const struct launch_env *env, struct launch *launch)
{
	const char *path = get(env, "WEFT_ID_FILE");
	const char *master = speakers[launch->kind].master;
	char tried[160];
	bool found;
	enum err e;

	if (launch->rank_count == 1)
		return OK;
	if (get(env, "NCCL_COMM_ID")) {
		launch->travel = TRAVEL_COMM_ID;
		return OK;
	}
	if (path)
		return file_read(path, launch);
	if (has_pmi(env, launch)) {
		launch->travel = TRAVEL_PMI;
		if (!launch->pmi_port[0])
			launch->pmi_fd = atoi(get(env, "PMI_FD"));
		launch->is_pmi2_first = get(env, "SLURM_STEP_ID");
		snprintf(launch->pmi_job, sizeof(launch->pmi_job), "%s",
			get(env, "PMI_JOBID") ? get(env, "PMI_JOBID") : "");
		return OK;
	}
	e = master_read(env, launch, &found);
	if (e)
		return e;
	if (has_pmix(env, launch)) {
		launch->travel = TRAVEL_PMIX;
		return OK;
	}
	if (found) {
		launch->travel = TRAVEL_TCP;
		return OK;
	}
	if (launch->rank_count && launch->local_count == launch->rank_count) {
		launch_use_host_file(launch);
		return OK;
	}
	snprintf(tried, sizeof(tried), "%s is not set",
		master			       ? master
		: launch->kind == LAUNCH_SLURM ? "SLURM_STEP_NODELIST"
					       : "WEFT_MASTER");
	if (launch->kind == LAUNCH_PMI)
		snprintf(tried, sizeof(tried),
			"PMI_FD is not set, nor are PMI_PORT and PMI_ID, nor "
			"MASTER_ADDR");
	if (launch->kind == LAUNCH_OPENMPI || launch->kind == LAUNCH_PMIX)
		snprintf(tried, sizeof(tried),
			"PMIX_RANK and PMIX_NAMESPACE are not both set");
	return no_way(launch, tried);
}

/* PMI numbers that are weft run's own name weft run, which is what the user typed. */
static void pmi_rename(const struct launch_env *env, struct launch *launch)
{
	const char *rank = get(env, "WEFT_RANK"), *count = get(env, "WEFT_RANKS");
	int number;

	if (launch->kind != LAUNCH_PMI || !rank || !count)
		return;
	if (number_read(rank, &number) && number == launch->rank &&
		number_read(count, &number) && number == launch->rank_count) {
		launch->kind = LAUNCH_WEFT;
		local_read(env, launch);
	}
}

enum err launch_read(const struct launch_env *env, struct launch *launch)
{
	struct launch found = {.rank_count = 1, .local_count = 1, .pmi_fd = -1};
	enum err e = kind_find(env, &found.kind);

	if (e)
		return e;
	if (found.kind != LAUNCH_ALONE) {
		found.rank_count = 0;
		e = numbers_read(env, &found);
		if (e)
			return e;
		pmi_rename(env, &found);
		job_name(env, &found);
		e = port_read(env, &found);
		if (!e)
			e = travel_find(env, &found);
	}
	if (!e)
		*launch = found;
	return e;
}
