#include "base/cores.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"

enum { PATH_BYTES = 4096, LINE_BYTES = PATH_BYTES + 64 };

/* Where the groups are, and what their limit is called there. */
struct generation {
	const char *mount;
	const char *quota, *period; /* files; period NULL: both numbers are in one */
};

static const struct generation first = {
	"sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "cpu.cfs_period_us"};
static const struct generation second = {"sys/fs/cgroup", "cpu.max", NULL};

/* The first line of a file; "" without one. */
static void line_read(const char *folder, const char *name, char *line, int room)
{
	char path[2 * PATH_BYTES];
	FILE *file = NULL;

	line[0] = '\0';
	if (snprintf(path, sizeof(path), "%s/%s", folder, name) < (int)sizeof(path))
		file = fopen(path, "re");
	if (!file)
		return;
	if (!fgets(line, room, file))
		line[0] = '\0';
	fclose(file);
}

/* "200000 100000"; "max 100000" and "-1" are no limit. */
static double cores_of(const struct generation *generation, const char *folder)
{
	char text[64], period_text[32] = "";
	long long quota, period;

	line_read(folder, generation->quota, text, sizeof(text) / 2);
	if (generation->period) {
		line_read(folder, generation->period, period_text, sizeof(period_text));
		text[strcspn(text, "\n")] = '\0';
		snprintf(text + strlen(text), sizeof(text) - strlen(text), " %.30s",
			period_text);
	}
	if (sscanf(text, "%lld %lld", &quota, &period) != 2 || quota <= 0 || period <= 0)
		return 0;
	return (double)quota / (double)period;
}

static void folder_count(const struct generation *generation, const char *folder,
	struct cores_quota *quota)
{
	double cores = cores_of(generation, folder);
	struct stat status;

	if (cores <= 0 || (quota->cores > 0 && quota->cores <= cores))
		return;
	quota->cores = cores;
	quota->group = 0;
	if (!stat(folder, &status))
		quota->group = hash_add(
			hash_add(HASH_START, status.st_dev), status.st_ino);
}

/* A group and all above it. What of its path is not to be seen from here, as in a
 * container without a namespace of groups, is left out: there the container's own group
 * is where the groups begin. */
static void group_count(const char *root, const struct generation *generation,
	char *group, struct cores_quota *quota)
{
	char folder[2 * PATH_BYTES], *slash;

	if (strstr(group, "/.."))
		group[0] = '\0';
	do {
		slash = strrchr(group, '/');
		if (slash && !slash[1])
			*slash = '\0';
		if (snprintf(folder, sizeof(folder), "%s/%s%s", root, generation->mount,
			    group) < (int)sizeof(folder))
			folder_count(generation, folder, quota);
		slash = strrchr(group, '/');
		if (slash)
			*slash = '\0';
	} while (slash);
}

/* Is cpu among "cpu,cpuacct"? */
static bool has_cpu(const char *controllers)
{
	for (const char *at = controllers; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (!strncmp(at, "cpu", 3) && (!at[3] || at[3] == ','))
			return true;
	}
	return false;
}

/* "0::/a/b", or "3:cpu,cpuacct:/a/b". */
static void membership_count(const char *root, char *line, struct cores_quota *quota)
{
	char *controllers = strchr(line, ':'), *group;

	group = controllers ? strchr(controllers + 1, ':') : NULL;
	if (!group)
		return;
	*group++ = '\0';
	group[strcspn(group, "\n")] = '\0';
	if (!controllers[1])
		group_count(root, &second, group, quota);
	else if (has_cpu(controllers + 1))
		group_count(root, &first, group, quota);
}

void cores_quota_read(const char *root, struct cores_quota *quota)
{
	char path[PATH_BYTES], line[LINE_BYTES];
	FILE *file = NULL;

	*quota = (struct cores_quota){0};
	/* where the groups begin, also when nothing says in which this process is */
	line[0] = '\0';
	group_count(root, &second, line, quota);
	group_count(root, &first, line, quota);
	if (snprintf(path, sizeof(path), "%s/proc/self/cgroup", root) < (int)sizeof(path))
		file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		membership_count(root, line, quota);
	if (file)
		fclose(file);
}

uint32_t cores_usable(const char *root)
{
	struct cores_quota quota;
	uint32_t count = 1;
	cpu_set_t set;

	if (!sched_getaffinity(0, sizeof(set), &set))
		count = (uint32_t)CPU_COUNT(&set);
	cores_quota_read(root, &quota);
	if (quota.cores > 0 && quota.cores < count)
		count = (uint32_t)quota.cores;
	return count ? count : 1;
}
