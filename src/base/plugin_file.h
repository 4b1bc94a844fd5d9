/*
 * plugin_file.h - shared objects that others wrote for NCCL: how they are named, found
 * and loaded, alike for every kind.
 *
 * A variable holds a list of names. Each is a file, or the NAME of libnccl-KIND-NAME.so,
 * or STATIC_PLUGIN for the program itself; `none` ends the list. Without the variable it
 * is libnccl-KIND.so, if there is one. What is loaded exports an object for each version
 * it speaks, and every such object begins with the plugin's own name.
 */
#ifndef BASE_PLUGIN_FILE_H
#define BASE_PLUGIN_FILE_H

#include <stdbool.h>

#include "base/param.h"

enum {
	PLUGIN_NAME_BYTES = 64, /* of what a plugin calls itself */
	PLUGIN_ASKED_BYTES = 512
};

struct plugin_kind {
	const char *file;   /* `tuner` of libnccl-tuner.so */
	const char *title;  /* of its lines in the log: TUNER */
	const char *called; /* in sentences: `tuner plugin` */
	const char *symbol; /* the version follows: `ncclTunerPlugin_v` */
	const char *older;  /* another name of the oldest version's object; NULL: none */
	int newest, oldest;
	enum param param;      /* the variable with the names */
	unsigned subsystem;    /* of its lines, besides INIT */
	const char *otherwise; /* the end of a sentence: what is done without it */
	bool is_quiet;	       /* nothing is said where nobody asked and there is none */
};

struct plugin_library {
	void *handle;	    /* owned */
	const void *symbol; /* in the library: of `version`, the newest it speaks */
	int version;
	char name[PLUGIN_NAME_BYTES];
};

/* The names to go through, as the user gives them or the usual one. */
struct plugin_names {
	const char *rest;
	bool is_usual; /* nobody has asked for it: it may be missing */
};
struct plugin_names plugin_names(const struct plugin_kind *kind);
bool plugin_names_next(const struct plugin_kind *kind, struct plugin_names *names,
	char asked[PLUGIN_ASKED_BYTES]); /* false: there are no more */

/* False, with a sentence in the log, when there is no such file or it is no plugin of
 * this kind; without a word when nobody has asked for it. */
bool plugin_file_load(const struct plugin_kind *kind, const char *asked,
	struct plugin_library *library);
/* The same with a file that is of another kind in the first place, by the name it has
 * there: without a word when it is none of this one. */
bool plugin_file_peek(const struct plugin_kind *kind, const struct plugin_kind *other,
	const char *asked, struct plugin_library *library);
void plugin_file_unload(struct plugin_library *library);

/* The first of the names that loads. */
bool plugin_file_find(const struct plugin_kind *kind, struct plugin_library *library);

/* A sentence of a plugin that was loaded and is not used: it `did` something. */
void plugin_file_refuse(const struct plugin_kind *kind,
	const struct plugin_library *library, const char *did);

#endif
