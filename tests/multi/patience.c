#include "patience.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_US = 100000, CROWDING_MAX = 64, STOP_POLL_US = 100, STOP_US = 60000000 };

static uint64_t wall_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

/* The average of the last minute, or who wants to run this very moment: the larger. A
 * machine that does not say is taken for a quiet one. */
double crowding_of(const char *loadavg, int cores)
{
	double average = 0;
	int runnable = 0;
	double crowd;

	if (sscanf(loadavg, "%lf %*f %*f %d/", &average, &runnable) < 1 || cores < 1)
		return 1;
	crowd = (average > runnable ? average : runnable) / cores;
	return crowd < 1 ? 1 : crowd > CROWDING_MAX ? CROWDING_MAX : crowd;
}

static double look(void)
{
	FILE *file = fopen("/proc/loadavg", "re");
	char text[128] = "";
	cpu_set_t cpus;

	if (file) {
		if (!fgets(text, sizeof(text), file))
			text[0] = '\0';
		fclose(file);
	}
	return crowding_of(
		text, sched_getaffinity(0, sizeof(cpus), &cpus) ? 0 : CPU_COUNT(&cpus));
}

double crowding(void)
{
	static _Thread_local uint64_t looked_us;
	static _Thread_local double seen;
	uint64_t now = wall_us();

	if (!looked_us || now - looked_us > LOOK_US) {
		seen = look();
		looked_us = now;
	}
	return seen;
}

uint64_t patient_us(void)
{
	static _Thread_local uint64_t wall, patient;
	uint64_t now = wall_us();

	if (!wall)
		wall = patient = now;
	patient += (uint64_t)((double)(now - wall) / crowding());
	wall = now;
	return patient;
}

static bool is_stopped(pid_t pid)
{
	char path[64], state = 0;
	FILE *file;
	int got;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return true; /* it has ended: nothing will stop it now */
	got = fscanf(file, "%*d (%*[^)]) %c", &state);
	fclose(file);
	return got == 1 && (state == 'T' || state == 'Z');
}

void stop_wait(pid_t pid)
{
	uint64_t end = patient_us() + STOP_US;

	while (!is_stopped(pid) && patient_us() < end)
		usleep(STOP_POLL_US);
}
