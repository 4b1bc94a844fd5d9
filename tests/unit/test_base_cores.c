/* Quotas of control groups, of both generations, on hosts that are made of a few files.
 */
#include "base/cores.h"

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

enum { PATH_BYTES = 512, HUNDREDTHS = 100 };

static char folder[] = "/tmp/weft-cores-XXXXXX";

static void put(const char *name, const char *text)
{
	char path[PATH_BYTES];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	for (char *slash = path + sizeof(folder); (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	file = fopen(path, "w");
	TRUE(file);
	fputs(text, file);
	fclose(file);
}

static void clear(void)
{
	char command[PATH_BYTES];

	snprintf(command, sizeof(command), "rm -rf '%s'/*", folder);
	EQ(system(command), 0);
}

/* .. in hundredths of a core. */
static int quota(uint64_t *group)
{
	struct cores_quota read;

	cores_quota_read(folder, &read);
	EQ(read.cores > 0, read.group != 0);
	if (group)
		*group = read.group;
	return (int)(read.cores * HUNDREDTHS + 0.5);
}

static void test_second(void)
{
	EQ(quota(NULL), 0);
	put("proc/self/cgroup", "0::/\n");
	EQ(quota(NULL), 0);
	put("sys/fs/cgroup/cpu.max", "max 100000\n");
	EQ(quota(NULL), 0);
	put("sys/fs/cgroup/cpu.max", "250000 100000\n");
	EQ(quota(NULL), 250);
	/* without a word of which group it is */
	put("proc/self/cgroup", "");
	EQ(quota(NULL), 250);
	put("sys/fs/cgroup/cpu.max", "garbage");
	EQ(quota(NULL), 0);
	put("sys/fs/cgroup/cpu.max", "100000 0\n");
	EQ(quota(NULL), 0);
	clear();
}

/* The least of a group and those above it; and which that is. */
static void test_parents(void)
{
	uint64_t pod, inner, other;

	put("proc/self/cgroup", "0::/pods/pod7/main\n");
	put("sys/fs/cgroup/pods/cpu.max", "1600000 100000\n");
	put("sys/fs/cgroup/pods/pod7/cpu.max", "400000 100000\n");
	put("sys/fs/cgroup/pods/pod7/main/cpu.max", "max 100000\n");
	put("sys/fs/cgroup/pods/pod8/cpu.max", "300000 100000\n");
	EQ(quota(&pod), 400);
	put("sys/fs/cgroup/pods/pod7/main/cpu.max", "50000 100000\n");
	EQ(quota(&inner), 50);
	TRUE(inner != pod);
	put("proc/self/cgroup", "0::/pods/pod8\n");
	EQ(quota(&other), 300);
	TRUE(other != pod);
	put("proc/self/cgroup", "0::/pods/pod7/\n");
	EQ(quota(&other), 400);
	EQ(other, pod);
	/* it is outside of what is seen here */
	put("proc/self/cgroup", "0::/../../pods/pod8\n");
	EQ(quota(NULL), 0);
	clear();
}

static void test_first(void)
{
	put("proc/self/cgroup", "4:memory:/docker/a\n3:cpuset:/docker/a\n2:cpu,cpuacct:/"
				"docker/a\n0::/\n");
	put("sys/fs/cgroup/cpu/docker/a/cpu.cfs_quota_us", "-1\n");
	put("sys/fs/cgroup/cpu/docker/a/cpu.cfs_period_us", "100000\n");
	EQ(quota(NULL), 0);
	put("sys/fs/cgroup/cpu/docker/a/cpu.cfs_quota_us", "75000\n");
	put("sys/fs/cgroup/cpu/docker/a/cpu.cfs_period_us", "50000\n");
	EQ(quota(NULL), 150);
	put("sys/fs/cgroup/cpu/docker/cpu.cfs_quota_us", "100000\n");
	EQ(quota(NULL), 150); /* it has no period */
	put("sys/fs/cgroup/cpu/docker/cpu.cfs_period_us", "100000\n");
	EQ(quota(NULL), 100);
	/* a container of which the host's paths are told, but not shown */
	put("proc/self/cgroup", "2:cpuacct,cpu:/kubepods/b\n");
	put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
	put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
	EQ(quota(NULL), 200);
	clear();
}

static void test_usable(void)
{
	cpu_set_t set;
	uint32_t count;

	EQ(sched_getaffinity(0, sizeof(set), &set), 0);
	count = (uint32_t)CPU_COUNT(&set);
	EQ(cores_usable(folder), count);
	put("sys/fs/cgroup/cpu.max", "199999 100000\n");
	EQ(cores_usable(folder), 1);
	put("sys/fs/cgroup/cpu.max", "1000 100000\n");
	EQ(cores_usable(folder), 1);
	put("sys/fs/cgroup/cpu.max", "900000000 100000\n");
	EQ(cores_usable(folder), count);
	clear();
}

int main(void)
{
	TRUE(mkdtemp(folder));
	test_second();
	test_parents();
	test_first();
	test_usable();
	EQ(rmdir(folder), 0);
	return 0;
}
