#include "traces.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ranks.h"

enum { POLL_MS = 2, LINE_BYTES = 512 };

/* A rank may be out of descriptors: then it is not known. */
static int names_in(const char *path)
{
	DIR *folder = opendir(path);
	int count = 0;

	if (!folder)
		return -1;
	while (readdir(folder))
		count++;
	closedir(folder);
	return count - 2; /* . and .. */
}

/* Memory that others can map has a name here. */
static int shared_maps(void)
{
	FILE *file = fopen("/proc/self/maps", "r");
	char line[LINE_BYTES];
	int count = 0;

	if (!file)
		return -1;
	while (fgets(line, sizeof(line), file))
		count += strstr(line, "memfd:") || strstr(line, "/dev/shm");
	fclose(file);
	return count;
}

struct traces traces_take(void)
{
	return (struct traces){.descriptors = names_in("/proc/self/fd") - 1,
		.threads = names_in("/proc/self/task"),
		.shared_maps = shared_maps()};
}

static bool is_more(const struct traces *now, const struct traces *before)
{
	int own = is_sanitized(); /* a thread that a sanitizer starts late */

	return now->descriptors > before->descriptors ||
	       now->threads > before->threads + own ||
	       now->shared_maps > before->shared_maps;
}

bool traces_settle(const struct traces *before, int limit_ms, char *text, size_t room)
{
	struct traces now;

	now = traces_take();
	for (int ms = 0; ms < limit_ms; ms += POLL_MS) {
		now = traces_take();
		if (!is_more(&now, before))
			return true;
		usleep(POLL_MS * 1000);
	}
	snprintf(text, room,
		"left behind: descriptors %d were %d, threads %d were %d, "
		"shared maps %d "
		"were %d",
		now.descriptors, before->descriptors, now.threads, before->threads,
		now.shared_maps, before->shared_maps);
	return false;
}

int traces_in_shm(void)
{
	DIR *folder = opendir("/dev/shm");
	struct dirent *entry;
	int count = 0;

	if (!folder)
		return 0;
	while ((entry = readdir(folder)))
		count += strstr(entry->d_name, "weft") || strstr(entry->d_name, "nccl");
	closedir(folder);
	return count;
}
