#include "group.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "pci.h"

enum { GPUS_MAX = 64 };

/* Is `path` below the first `bytes` of `above`? */
static bool is_below(const char *path, const char *above, size_t bytes)
{
	return !strncmp(path, above, bytes) && path[bytes] == '/';
}

/* How much of `path` its parent has; 0: it has none. */
static size_t parent_bytes(const char *path, size_t bytes)
{
	while (bytes && path[bytes - 1] != '/')
		bytes--;
	return bytes ? bytes - 1 : 0;
}

/* The nearest place above `gpu` that has interfaces below it. */
static size_t place_of(const char *gpu, const char *const *nics, int nic_count)
{
	size_t bytes = parent_bytes(gpu, strlen(gpu));

	for (; bytes; bytes = parent_bytes(gpu, bytes))
		for (int i = 0; i < nic_count; i++)
			if (is_below(nics[i], gpu, bytes))
				return bytes;
	return 0;
}

/* A place with GPUs: how many groups it has, and which interfaces. */
struct place {
	const char *path;
	size_t bytes;
	int groups, nic_count;
	int nics[NICS_MAX];
};

static int places_find(struct place *places, const char *const *nics, int nic_count,
	const char *const *gpus, int gpu_count)
{
	int count = 0;

	for (int g = 0; g < gpu_count; g++) {
		size_t bytes = place_of(gpus[g], nics, nic_count);
		int at = 0;

		while (at < count && (places[at].bytes != bytes ||
					     strncmp(places[at].path, gpus[g], bytes)))
			at++;
		if (at == count && bytes)
			places[count++] = (struct place){.path = gpus[g], .bytes = bytes};
		if (bytes)
			places[at].groups++;
	}
	return count;
}

/* The nearest place above an interface; NULL: none. */
static struct place *nearest(struct place *places, int count, const char *nic)
{
	struct place *best = NULL;

	for (int i = 0; i < count; i++)
		if (is_below(nic, places[i].path, places[i].bytes) &&
			(!best || best->bytes < places[i].bytes))
			best = &places[i];
	return best;
}

static void group_add(struct nic_groups *groups, const int *nics, int count)
{
	if (!count)
		return;
	groups->sizes[groups->count] = count;
	memcpy(groups->members[groups->count], nics, (size_t)count * sizeof(*nics));
	groups->count++;
}

/* Earlier groups get what is over. */
static void place_deal(struct nic_groups *groups, const struct place *place)
{
	int each = place->nic_count / place->groups;
	int over = place->nic_count % place->groups, first = 0;

	for (int g = 0; g < place->groups; g++) {
		int count = each + (g < over);

		group_add(groups, place->nics + first, count);
		first += count;
	}
}

void nics_group(const char *const *nics, int nic_count, const char *const *gpus,
	int gpu_count, struct nic_groups *groups)
{
	struct place *places = calloc(GPUS_MAX, sizeof(*places));
	int count = places ? places_find(places, nics, nic_count, gpus, gpu_count) : 0;

	memset(groups, 0, sizeof(*groups));
	for (int i = 0; i < nic_count; i++) {
		struct place *place = nearest(places, count, nics[i]);

		if (place)
			place->nics[place->nic_count++] = i;
		else {
			groups->is_lone[groups->count] = true;
			group_add(groups, &i, 1);
		}
	}
	for (int i = 0; i < count; i++)
		place_deal(groups, &places[i]);
	free(places);
}

void nics_group_evenly(int nic_count, int size, struct nic_groups *groups)
{
	memset(groups, 0, sizeof(*groups));
	for (int i = 0; i < nic_count; i++) {
		int group = i / size;

		groups->members[group][groups->sizes[group]++] = i;
		groups->count = group + 1;
	}
}

void nics_lone_drop(struct nic_groups *groups)
{
	int kept = 0;

	for (int g = 0; g < groups->count; g++) {
		if (groups->is_lone[g])
			continue;
		groups->sizes[kept] = groups->sizes[g];
		memmove(groups->members[kept], groups->members[g],
			sizeof(groups->members[g]));
		groups->is_lone[kept++] = false;
	}
	if (kept)
		groups->count = kept;
}

/* ---- this machine ---- */

void nics_group_here(const char *const *nics, int nic_count, struct nic_groups *groups)
{
	char *gpus[GPUS_MAX] = {NULL};
	int count = pci_gpus("/sys", gpus, GPUS_MAX);

	nics_group(nics, nic_count, (const char *const *)gpus, count, groups);
	while (count)
		free(gpus[--count]);
}
