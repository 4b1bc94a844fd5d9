#include "net/plugin_kept.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/param.h"

struct kept_hold {
	struct kept_hold *next; /* of the area's */
	const struct plugin_line *line;
	const struct net_gpu *gpu; /* in whose memory it lies; NULL: the host's */
	void *known;		   /* the plugin's; NULL: it would not have it */
	uint32_t messages;	   /* that are under way, or that it is asked for */
	bool is_over;		   /* in no list any more: goes with the last message */
	bool is_asked;		   /* the plugin has not returned yet */
	bool is_given_up;	   /* .. and is waited for no more */
};

/* Memory that is kept. */
struct area {
	char *base, *end;
	char *reach; /* the furthest end of this one and those before it */
	uint32_t count;
	struct kept_hold *holds; /* owned */
};

struct plugin_kept {
	struct plugin_kept *next; /* of `all` */
	pthread_mutex_t lock;	  /* of all below, and of the holds; not while a plugin
				   * is asked to know memory, which may take for ever */
	pthread_cond_t returned;  /* one is known, or refused */
	struct area *areas;	  /* owned; by base, and of equal bases by end */
	size_t room;
	_Atomic size_t area_count; /* read without the lock, too */
};

/* Of this process. Its lock is taken before theirs. */
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct plugin_kept *all;

struct plugin_kept *plugin_kept_make(void)
{
	struct plugin_kept *kept = calloc(1, sizeof(*kept));
	pthread_condattr_t by;

	if (!kept)
		return NULL;
	pthread_mutex_init(&kept->lock, NULL);
	pthread_condattr_init(&by);
	pthread_condattr_setclock(&by, CLOCK_MONOTONIC);
	pthread_cond_init(&kept->returned, &by);
	pthread_condattr_destroy(&by);
	pthread_mutex_lock(&all_lock);
	kept->next = all;
	all = kept;
	pthread_mutex_unlock(&all_lock);
	return kept;
}

void plugin_kept_free(struct plugin_kept *kept)
{
	struct plugin_kept **at = &all;

	if (!kept)
		return;
	pthread_mutex_lock(&all_lock);
	while (*at != kept)
		at = &(*at)->next;
	*at = kept->next;
	pthread_mutex_unlock(&all_lock);
	pthread_cond_destroy(&kept->returned);
	pthread_mutex_destroy(&kept->lock);
	free(kept->areas);
	free(kept);
}

/* ---- which memory ---- */

/* How many areas stand before one that begins and ends there. Lock held. */
static size_t areas_before(
	const struct plugin_kept *kept, const char *base, const char *end)
{
	size_t low = 0, high = kept->area_count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct area *area = &kept->areas[middle];

		if (area->base < base || (area->base == base && area->end < end))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct area *area_exact(
	const struct plugin_kept *kept, const char *base, const char *end, size_t *at)
{
	struct area *area;

	*at = areas_before(kept, base, end);
	area = *at < kept->area_count ? &kept->areas[*at] : NULL;
	return area && area->base == base && area->end == end ? area : NULL;
}

/* One that has all of the memory; NULL: there is none. Lock held. */
static struct area *area_around(
	const struct plugin_kept *kept, const char *data, const char *end)
{
	size_t i = areas_before(kept, data + 1, data + 1);

	while (i-- && kept->areas[i].reach >= end)
		if (kept->areas[i].end >= end)
			return &kept->areas[i];
	return NULL;
}

static void reaches_set(struct plugin_kept *kept, size_t from)
{
	for (size_t i = from; i < kept->area_count; i++) {
		struct area *area = &kept->areas[i];

		area->reach = area->end;
		if (i && area[-1].reach > area->reach)
			area->reach = area[-1].reach;
	}
}

static bool areas_grow(struct plugin_kept *kept)
{
	size_t room = kept->room ? 2 * kept->room : 16;
	struct area *more;

	if (kept->area_count < kept->room)
		return true;
	more = reallocarray(kept->areas, room, sizeof(*more));
	if (!more)
		return false;
	kept->areas = more;
	kept->room = room;
	return true;
}

/* Room for one more area before the at-th. */
static bool area_insert(struct plugin_kept *kept, size_t at)
{
	if (!areas_grow(kept))
		return false;
	memmove(&kept->areas[at + 1], &kept->areas[at],
		(kept->area_count - at) * sizeof(kept->areas[0]));
	kept->areas[at] = (struct area){0};
	kept->area_count++;
	return true;
}

enum err plugin_kept_add(struct plugin_kept *kept, char *data, size_t bytes)
{
	struct area *area;
	size_t at;

	pthread_mutex_lock(&kept->lock);
	area = area_exact(kept, data, data + bytes, &at);
	if (!area && area_insert(kept, at)) {
		area = &kept->areas[at];
		area->base = data;
		area->end = data + bytes;
		reaches_set(kept, at);
	}
	if (area)
		area->count++;
	pthread_mutex_unlock(&kept->lock);
	return area ? OK : err_set(ERR_SYSTEM, "no memory to keep %zu bytes", bytes);
}

/* ---- which connections know it ---- */

static void hold_free(struct kept_hold *hold)
{
	const struct plugin_file *file = hold->line->plugin->file;
	int result = 0;

	if (hold->known)
		result = file->abi->dereg(hold->line->comm, hold->known);
	if (result)
		log_warn("the network plugin %s (v%d) does not let go of memory: deregMr "
			 "gave: %s",
			file->name, file->version, err_name((enum err)result));
	free(hold);
}

/* Out of its list. With messages under way it goes with the last of them. Lock held. */
static void hold_end(struct kept_hold **link)
{
	struct kept_hold *hold = *link;

	*link = hold->next;
	hold->is_over = true;
	if (!hold->messages)
		hold_free(hold);
}

static void holds_end(struct area *area)
{
	while (area->holds)
		hold_end(&area->holds);
}

/* One that the plugin is just asked to know, of memory between these; NULL: none. */
static struct kept_hold *hold_asked(
	const struct plugin_kept *kept, const char *base, const char *end)
{
	for (size_t i = 0; i < kept->area_count; i++)
		for (struct kept_hold *hold = kept->areas[i].holds; hold;
			hold = hold->next)
			if (hold->is_asked && !hold->is_given_up &&
				kept->areas[i].end > base && kept->areas[i].base < end)
				return hold;
	return NULL;
}

static void hold_give_up(struct kept_hold *hold)
{
	const struct plugin_file *file = hold->line->plugin->file;

	hold->is_given_up = true;
	log_warn("the network plugin %s (v%d) may come to know memory that was given "
		 "back: regMr has not returned for %lld s (WEFT_PLUGIN_SEC)",
		file->name, file->version, (long long)param_int(PARAM_PLUGIN_SEC));
}

/* Nobody is asked to know any of it any more, or has not returned for too long. Lock
 * held, but not all the time. */
static void asked_wait(struct plugin_kept *kept, const char *base, const char *end)
{
	struct kept_hold *hold;
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += param_int(PARAM_PLUGIN_SEC);
	while (hold_asked(kept, base, end))
		if (pthread_cond_timedwait(&kept->returned, &kept->lock, &until))
			break;
	while ((hold = hold_asked(kept, base, end)))
		hold_give_up(hold);
}

void plugin_kept_remove(struct plugin_kept *kept, char *data, size_t bytes)
{
	struct area *area;
	size_t at;

	pthread_mutex_lock(&kept->lock);
	area = area_exact(kept, data, data + bytes, &at);
	if (area && area->count == 1)
		asked_wait(kept, data, data + bytes);
	area = area_exact(kept, data, data + bytes, &at);
	if (area && !--area->count) {
		holds_end(area);
		kept->area_count--;
		memmove(area, area + 1, (kept->area_count - at) * sizeof(*area));
		reaches_set(kept, at);
	}
	pthread_mutex_unlock(&kept->lock);
}

/* Ask the plugin, without the lock; the area may be gone when it returns. */
static int hold_ask(struct kept_hold *hold, const struct speak_memory *whole)
{
	const struct net_plugin *plugin = hold->line->plugin;
	void *known = NULL;
	int result;

	hold->is_asked = true;
	hold->messages++;
	pthread_mutex_unlock(&plugin->kept->lock);
	result = speak_reg(plugin, hold->line->comm, whole, &known);
	pthread_mutex_lock(&plugin->kept->lock);
	hold->known = result ? NULL : known;
	hold->is_asked = false;
	hold->messages--;
	pthread_cond_broadcast(&plugin->kept->returned);
	return result;
}

/* NULL: it is not kept any more by now. */
static struct kept_hold *hold_make(const struct plugin_line *line,
	const struct speak_memory *whole, struct area *area)
{
	const struct plugin_file *file = line->plugin->file;
	struct kept_hold *hold = calloc(1, sizeof(*hold));
	int result;

	if (!hold)
		return NULL;
	hold->line = line;
	hold->gpu = whole->gpu;
	hold->next = area->holds;
	area->holds = hold;
	result = hold_ask(hold, whole);
	if (hold->is_over) {
		hold_free(hold);
		return NULL;
	}
	log_info(LOG_NET | LOG_REG, "NET/Plugin: %s %s %zu bytes at %p for rank %u%s%s",
		file->name, result ? "does not take" : "knows", whole->bytes, whole->data,
		plugin_line_rank(line),
		result ? ", which are told of message by message: "
		       : " until they are deregistered",
		result ? err_name((enum err)result) : "");
	return hold;
}

/* The connection's of this area, made when there is none. Lock held. */
static struct kept_hold *hold_find(const struct plugin_line *line,
	const struct speak_memory *memory, struct area *area)
{
	struct speak_memory whole = {
		area->base, (size_t)(area->end - area->base), memory->gpu};
	struct kept_hold *hold = area->holds;

	while (hold && (hold->line != line || hold->gpu != memory->gpu))
		hold = hold->next;
	if (hold)
		return hold;
	return whole.bytes <= line->plugin->device.message_bytes_max
		       ? hold_make(line, &whole, area)
		       : NULL;
}

struct kept_hold *kept_take(
	const struct plugin_line *line, const struct speak_memory *memory)
{
	struct plugin_kept *kept = line->plugin->kept;
	const char *data = memory->data;
	struct kept_hold *hold = NULL;
	struct area *area;

	if (!atomic_load(&kept->area_count))
		return NULL;
	pthread_mutex_lock(&kept->lock);
	area = area_around(kept, data, data + memory->bytes);
	if (area)
		hold = hold_find(line, memory, area);
	if (hold && !hold->known)
		hold = NULL;
	if (hold)
		hold->messages++;
	pthread_mutex_unlock(&kept->lock);
	return hold;
}

void *kept_known(const struct kept_hold *hold)
{
	return hold->known;
}

void kept_give(struct kept_hold *hold)
{
	struct plugin_kept *kept = hold->line->plugin->kept;

	pthread_mutex_lock(&kept->lock);
	if (!--hold->messages && hold->is_over)
		hold_free(hold);
	pthread_mutex_unlock(&kept->lock);
}

void kept_line_close(const struct plugin_line *line)
{
	struct plugin_kept *kept = line->plugin->kept;

	pthread_mutex_lock(&kept->lock);
	for (size_t i = 0; i < kept->area_count; i++) {
		struct kept_hold **link = &kept->areas[i].holds;

		while (*link)
			if ((*link)->line == line)
				hold_end(link);
			else
				link = &(*link)->next;
	}
	pthread_mutex_unlock(&kept->lock);
}

void net_plugins_pages_replaced(const void *data, size_t bytes)
{
	const char *base = data;

	pthread_mutex_lock(&all_lock);
	for (struct plugin_kept *kept = all; kept; kept = kept->next) {
		pthread_mutex_lock(&kept->lock);
		asked_wait(kept, base, base + bytes);
		for (size_t i = 0; i < kept->area_count; i++)
			if (kept->areas[i].end > base &&
				kept->areas[i].base < base + bytes)
				holds_end(&kept->areas[i]);
		pthread_mutex_unlock(&kept->lock);
	}
	pthread_mutex_unlock(&all_lock);
}
