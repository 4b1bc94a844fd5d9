/*
 * host.h - the hosts a contender's ranks are spread over: namespaces on this machine
 * (../shared/tools/hosts makes them), or only so called, on the loopback.
 */
#ifndef BENCH_HOST_H
#define BENCH_HOST_H

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* K of "hosts=K" or "loopback=K"; 0: it is neither. */
static inline int host_count(const char *mode)
{
	const char *sign = strchr(mode, '=');

	return sign && atoi(sign + 1) > 0 ? atoi(sign + 1) : 0;
}

static inline int host_is_pretended(const char *mode)
{
	return !strncmp(mode, "loopback=", 9);
}

/* Neighbours share a host. */
static inline int host_of(int rank, int ranks, int hosts)
{
	return rank * hosts / ranks;
}

static inline void host_fail(int host, const char *why)
{
	fprintf(stderr, "host weft%d: %s\n", host, why);
	exit(1);
}

/* The namespaces of a host are those of a process that keeps them. */
static inline void host_enter(int host)
{
	static const char *const spaces[] = {"net", "uts", "ipc", "mnt"};
	char path[96], pid[32] = "";
	int fds[4];
	ssize_t bytes;

	snprintf(path, sizeof(path), "/run/weft-hosts/%d/pid", host);
	bytes = readlink(path, pid, sizeof(pid) - 1);
	for (int i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "/proc/%s/ns/%s", pid, spaces[i]);
		fds[i] = bytes > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
		if (fds[i] < 0)
			host_fail(host, "there is no such host");
	}
	for (int i = 0; i < 4; i++) {
		if (setns(fds[i], 0))
			host_fail(host, "it cannot be entered");
		close(fds[i]);
	}
}

/* To be on another host in name only. */
static inline void host_pretend(int host)
{
	char name[16];

	snprintf(name, sizeof(name), "host%d", host);
	setenv("NCCL_HOSTID", name, 1);
	setenv("NCCL_SOCKET_IFNAME", "lo", 1);
}

/* The address of a host on its network for data. */
static inline void host_address(int host, int pretended, char text[32])
{
	if (pretended)
		snprintf(text, 32, "127.0.0.1");
	else
		snprintf(text, 32, "10.77.1.%d", host + 1);
}

/* Cores for each rank, as many as asked for, where there are so many. */
static inline void host_bind_to(int rank, int ranks, int cores)
{
	cpu_set_t all, own;
	int at = 0;

	CPU_ZERO(&own);
	if (sched_getaffinity(0, sizeof(all), &all) || CPU_COUNT(&all) < ranks * cores)
		return;
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && at++ / cores == rank)
			CPU_SET(cpu, &own);
	sched_setaffinity(0, sizeof(own), &own);
}

/* A core for each, as the MPIs' launchers do. */
static inline void host_bind(int rank, int ranks)
{
	host_bind_to(rank, ranks, 1);
}

#endif
