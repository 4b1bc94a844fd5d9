#include "base/environment.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One "NAME=VALUE". It stays when it does not count any more, since callers hold it. */
struct entry {
	struct entry *older;
	char text[];
};

/* The copy, in the order of the environment. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry **entries;
static uint32_t count, room;
static bool is_kept;
static struct entry *all; /* whatever was copied, newest first */

static _Thread_local bool is_ours;

/* A text that was copied before is found again, so that a program which goes on changing
 * its environment back and forth takes no more memory. */
static struct entry *entry_of(const char *text)
{
	size_t bytes = strlen(text) + 1;
	struct entry *entry = all;

	while (entry && strcmp(entry->text, text) != 0)
		entry = entry->older;
	if (entry)
		return entry;
	entry = malloc(sizeof(*entry) + bytes);
	if (!entry)
		return NULL;
	memcpy(entry->text, text, bytes);
	entry->older = all;
	all = entry;
	return entry;
}

/* With the lock. */
static bool make_room(uint32_t wanted)
{
	struct entry **more;

	if (wanted <= room)
		return true;
	more = realloc(entries, wanted * sizeof(*more));
	if (!more)
		return false;
	entries = more;
	room = wanted;
	return true;
}

/* Most of it is as it was, and where it was. With the lock. */
static void copy(char *const *texts)
{
	uint32_t wanted = 0, kept = 0;

	while (texts && texts[wanted])
		wanted++;
	if (!make_room(wanted))
		wanted = room;
	while (kept < wanted) {
		bool is_same = kept < count && !strcmp(entries[kept]->text, texts[kept]);
		struct entry *entry = is_same ? entries[kept] : entry_of(texts[kept]);

		if (!entry)
			break;
		entries[kept++] = entry;
	}
	count = kept;
}

static void keep(bool anew)
{
	if (is_ours)
		return;
	pthread_mutex_lock(&lock);
	if (anew || !is_kept)
		copy(environ);
	is_kept = true;
	pthread_mutex_unlock(&lock);
}

void environment_keep(void)
{
	keep(true);
}

void environment_keep_first(void)
{
	keep(false);
}

void environment_use_kept(void)
{
	is_ours = true;
}

const char *environment_at(uint32_t index)
{
	const char *text = NULL;

	if (!is_ours) {
		for (uint32_t i = 0; environ && i < index; i++)
			if (!environ[i])
				return NULL;
		return environ ? environ[index] : NULL;
	}
	pthread_mutex_lock(&lock);
	if (index < count)
		text = entries[index]->text;
	pthread_mutex_unlock(&lock);
	return text;
}

const char *environment_find(const char *name)
{
	size_t bytes = strlen(name);
	const char *value = NULL;

	if (!is_ours)
		return getenv(name);
	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < count && !value; i++)
		if (!strncmp(entries[i]->text, name, bytes) &&
			entries[i]->text[bytes] == '=')
			value = entries[i]->text + bytes + 1;
	pthread_mutex_unlock(&lock);
	return value;
}
