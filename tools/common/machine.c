#include "common/machine.h"

#include <ctype.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cores.h"

/* Does the blank-separated list hold the word? */
static bool has_word(const char *list, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = strstr(list, word); at; at = strstr(at + 1, word)) {
		bool starts = at == list || isspace((unsigned char)at[-1]);
		if (starts && (!at[length] || isspace((unsigned char)at[length])))
			return true;
	}
	return false;
}

static const char *vector_unit(const char *flags)
{
	static const struct {
		const char *flag, *unit;
	} units[] = {{"avx512bw", "avx512"}, {"avx2", "avx2"}, {"sse2", "sse2"},
		{"asimd", "neon"}};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (has_word(flags, units[i].flag))
			return units[i].unit;
	return "scalar";
}

/* The value behind "key : value"; NULL for another key. */
static char *cpuinfo_value(char *line, const char *key)
{
	char *colon = strchr(line, ':');

	if (!colon || strncmp(line, key, strlen(key)))
		return NULL;
	line[strcspn(line, "\n")] = 0;
	return colon[1] == ' ' ? colon + 2 : colon + 1;
}

static void read_cpuinfo(struct machine *machine)
{
	FILE *file = fopen("/proc/cpuinfo", "re");
	bool have_model = false, have_flags = false;
	size_t size = 0;
	char *line = NULL;

	if (!file)
		return;
	while (!(have_model && have_flags) && getline(&line, &size, file) > 0) {
		char *model = cpuinfo_value(line, "model name");
		char *flags = cpuinfo_value(line, "flags");
		if (!flags)
			flags = cpuinfo_value(line, "Features");
		if (model)
			snprintf(machine->cpu, sizeof(machine->cpu), "%s", model);
		if (flags)
			machine->vector_unit = vector_unit(flags);
		have_model = have_model || model;
		have_flags = have_flags || flags;
	}
	free(line);
	fclose(file);
}

static void read_memory(struct machine *machine)
{
	FILE *file = fopen("/proc/meminfo", "re");
	unsigned long long kib;
	char line[128];

	if (!file)
		return;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "MemTotal: %llu", &kib) == 1)
			machine->memory_bytes = kib * 1024;
		if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
			machine->memory_available_bytes = kib * 1024;
	}
	fclose(file);
}

static void read_cgroup(struct machine *machine)
{
	unsigned long long limit;
	FILE *file = fopen("/sys/fs/cgroup/memory.max", "re");
	struct cores_quota quota;

	cores_quota_read("", &quota);
	machine->quota = quota.cores;
	if (file) {
		if (fscanf(file, "%llu", &limit) == 1 &&
			limit < machine->memory_available_bytes)
			machine->memory_available_bytes = limit;
		fclose(file);
	}
}

void machine_read(struct machine *machine)
{
	cpu_set_t set;

	*machine = (struct machine){
		.cpu = "unknown CPU", .vector_unit = "scalar", .cores = 1};
	if (gethostname(machine->host, sizeof(machine->host) - 1))
		snprintf(machine->host, sizeof(machine->host), "localhost");
	machine->host[strcspn(machine->host, ".")] = 0;
	if (!sched_getaffinity(0, sizeof(set), &set))
		machine->cores = CPU_COUNT(&set);
	read_cpuinfo(machine);
	read_memory(machine);
	read_cgroup(machine);
}

uint64_t machine_resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long long total, resident = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%llu %llu", &total, &resident) != 2)
		resident = 0;
	fclose(file);
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}
