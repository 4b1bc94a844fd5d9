#include "base/plugin_file.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/log.h"

enum { PATH_BYTES = PLUGIN_ASKED_BYTES + 64, SYMBOL_BYTES = 64 };

struct plugin_names plugin_names(const struct plugin_kind *kind)
{
	const char *list = param_text(kind->param);

	if (list)
		log_info(LOG_ENV | kind->subsystem,
			"%s/Plugin: Plugin name set by env to %s", kind->title, list);
	return (struct plugin_names){.rest = list, .is_usual = !list};
}

bool plugin_names_next(const struct plugin_kind *kind, struct plugin_names *names,
	char asked[PLUGIN_ASKED_BYTES])
{
	size_t bytes;

	if (names->is_usual) {
		names->is_usual = false;
		snprintf(asked, PLUGIN_ASKED_BYTES, "libnccl-%s.so", kind->file);
		return true;
	}
	if (!names->rest)
		return false;
	names->rest += strspn(names->rest, ", ");
	bytes = strcspn(names->rest, ", ");
	if (!bytes)
		return false;
	snprintf(asked, PLUGIN_ASKED_BYTES, "%.*s", (int)bytes, names->rest);
	names->rest += bytes;
	return strcasecmp(asked, "none") != 0;
}

/* The file of that name, or the one called after it; `path` is what was tried last. */
static void *library_open(
	const struct plugin_kind *kind, const char *asked, char path[PATH_BYTES])
{
	void *handle;

	snprintf(path, PATH_BYTES, "%s", asked);
	if (!strcasecmp(asked, "STATIC_PLUGIN"))
		return dlopen(NULL, RTLD_NOW | RTLD_LOCAL);
	handle = dlopen(asked, RTLD_NOW | RTLD_LOCAL);
	if (handle || file_is_library(asked))
		return handle;
	snprintf(path, PATH_BYTES, "libnccl-%s-%s.so", kind->file, asked);
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static void *library_look(const struct plugin_kind *kind, const char *asked)
{
	const char *variable = param_info(kind->param)->name, *why;
	bool is_wanted = param_text(kind->param) != NULL;
	char path[PATH_BYTES];
	void *handle;

	/* dlopen() would wait for whoever writes into a fifo */
	if (strchr(asked, '/') && file_is_special(asked)) {
		log_warn("no %s: %s has %s, which is no regular file; %s", kind->called,
			variable, asked, kind->otherwise);
		return NULL;
	}
	handle = library_open(kind, asked, path);
	if (handle)
		return handle;
	why = dlerror();
	if (kind->is_quiet && !is_wanted)
		return NULL;
	log_info(LOG_INIT | kind->subsystem, "%s/Plugin: Could not find: %s. %s",
		kind->title, asked, why ? why : "");
	if (is_wanted)
		log_warn("no %s %s: %s cannot be loaded; LD_LIBRARY_PATH must have its "
			 "folder, or %s its path; %s",
			kind->called, asked, path, variable, kind->otherwise);
	return NULL;
}

/* The newest version that it speaks; false when it speaks none. */
static bool symbol_find(
	const struct plugin_kind *kind, struct plugin_library *library, bool is_told)
{
	char symbol[SYMBOL_BYTES];

	for (int v = kind->newest; v >= kind->oldest; v--) {
		snprintf(symbol, sizeof(symbol), "%s%d", kind->symbol, v);
		library->symbol = dlsym(library->handle, symbol);
		library->version = v;
		if (!library->symbol && kind->older && v == kind->oldest)
			library->symbol = dlsym(library->handle, kind->older);
		if (library->symbol)
			return true;
		if (is_told)
			log_info(LOG_INIT | kind->subsystem,
				"%s/Plugin: Failed to find %s symbol.", kind->title,
				symbol);
	}
	return false;
}

static void name_keep(struct plugin_library *library)
{
	const char *name = *(const char *const *)library->symbol;

	snprintf(library->name, sizeof(library->name), "%.63s",
		name ? name : "without a name");
}

bool plugin_file_load(
	const struct plugin_kind *kind, const char *asked, struct plugin_library *library)
{
	*library = (struct plugin_library){.handle = library_look(kind, asked)};
	if (!library->handle)
		return false;
	if (!symbol_find(kind, library, true)) {
		log_warn("the %s %s exports no %s%d to _v%d; %s", kind->called, asked,
			kind->symbol, kind->oldest, kind->newest, kind->otherwise);
		plugin_file_unload(library);
		return false;
	}
	name_keep(library);
	return true;
}

bool plugin_file_peek(const struct plugin_kind *kind, const struct plugin_kind *other,
	const char *asked, struct plugin_library *library)
{
	char path[PATH_BYTES];

	*library = (struct plugin_library){0};
	if (!strchr(asked, '/') || !file_is_special(asked))
		library->handle = library_open(other, asked, path);
	if (!library->handle)
		return false;
	if (!symbol_find(kind, library, false)) {
		plugin_file_unload(library);
		return false;
	}
	name_keep(library);
	return true;
}

void plugin_file_unload(struct plugin_library *library)
{
	if (library->handle)
		dlclose(library->handle);
	*library = (struct plugin_library){0};
}

bool plugin_file_find(const struct plugin_kind *kind, struct plugin_library *library)
{
	struct plugin_names names = plugin_names(kind);
	char asked[PLUGIN_ASKED_BYTES];

	while (plugin_names_next(kind, &names, asked))
		if (plugin_file_load(kind, asked, library))
			return true;
	return false;
}

void plugin_file_refuse(const struct plugin_kind *kind,
	const struct plugin_library *library, const char *did)
{
	log_warn("the %s %s (v%d) %s; %s", kind->called, library->name, library->version,
		did, kind->otherwise);
}
