#include "launch/pmix.h"

#include <assert.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/param.h"

/* Of the PMIx standard: sizes and numbers that the library was built with. */
enum {
	NAME_BYTES = 256, /* PMIX_MAX_NSLEN and a zero */
	KEY_BYTES = 512,  /* PMIX_MAX_KEYLEN and a zero */
	TYPE_BOOL = 1,
	TYPE_STRING = 3,
	TYPE_INT = 6,
	TYPE_UINT32 = 14,
	SCOPE_GLOBAL = 3
};
#define RANK_WILDCARD (UINT32_MAX - 1)

struct pmix_name {
	char space[NAME_BYTES];
	uint32_t rank;
};

struct pmix_value {
	uint16_t type;
	union {
		bool flag;
		char *string;
		int number;
		uint32_t unsigned32;
		unsigned char room[24]; /* the widest kind, from PMIx 3 on */
	} data;
};

struct pmix_info {
	char key[KEY_BYTES];
	uint32_t flags;
	struct pmix_value value;
};

static_assert(sizeof(struct pmix_value) == 32, "as the library has it");
static_assert(sizeof(struct pmix_info) == 552, "as the library has it");

/* The functions, by the names they have there. */
static struct {
	void *library;
	int (*init)(struct pmix_name *me, struct pmix_info *info, size_t count);
	int (*put)(uint8_t scope, const char *key, struct pmix_value *value);
	int (*commit)(void);
	int (*fence)(const struct pmix_name *names, size_t name_count,
		const struct pmix_info *info, size_t info_count);
	int (*get)(const struct pmix_name *whose, const char *key,
		const struct pmix_info *info, size_t count, struct pmix_value **value);
	int (*finalize)(const struct pmix_info *info, size_t count);
	const char *(*error)(int status);
	struct pmix_name me;
	bool is_begun;
} pmix;

static bool symbol_find(void *slot, const char *name)
{
	void *found = dlsym(pmix.library, name);

	memcpy(slot, &found, sizeof(found));
	return found;
}

static bool symbols_find(void)
{
	return symbol_find(&pmix.init, "PMIx_Init") &&
	       symbol_find(&pmix.put, "PMIx_Put") &&
	       symbol_find(&pmix.commit, "PMIx_Commit") &&
	       symbol_find(&pmix.fence, "PMIx_Fence") &&
	       symbol_find(&pmix.get, "PMIx_Get") &&
	       symbol_find(&pmix.finalize, "PMIx_Finalize") &&
	       symbol_find(&pmix.error, "PMIx_Error_string");
}

bool pmix_load(char *why, size_t room)
{
	const char *path = param_text(PARAM_PMIX_LIBRARY);

	if (pmix.library)
		return true;
	if (path && file_is_special(path)) {
		snprintf(why, room, "WEFT_PMIX_LIBRARY %.80s is no regular file", path);
		return false;
	}
	pmix.library = dlopen(path ? path : "libpmix.so.2", RTLD_NOW | RTLD_LOCAL);
	if (!pmix.library) {
		const char *reason = dlerror();

		snprintf(why, room, "%.120s", reason ? reason : "dlopen failed");
		return false;
	}
	if (symbols_find())
		return true;
	snprintf(why, room, "%.80s has not the functions of PMIx",
		path ? path : "libpmix.so.2");
	dlclose(pmix.library);
	pmix.library = NULL;
	return false;
}

static enum err refused(const char *call, int status)
{
	return err_set(ERR_REMOTE,
		"%s of PMIx, by which ranks find each other, failed: %s (%d)", call,
		pmix.error(status), status);
}

static enum err begin(void)
{
	int status = pmix.is_begun ? 0 : pmix.init(&pmix.me, NULL, 0);

	if (status)
		return refused("PMIx_Init", status);
	pmix.is_begun = true;
	return OK;
}

/* The value is the library's memory, of malloc(): a number of it, then it is freed. */
static enum err value_number(struct pmix_value *value, int *number)
{
	uint16_t type = value->type;

	*number = type == TYPE_INT ? value->data.number : (int)value->data.unsigned32;
	free(value);
	return type == TYPE_INT || type == TYPE_UINT32
		       ? OK
		       : err_set(ERR_REMOTE, "PMIx gave the number of ranks as type %u",
				 type);
}

enum err pmix_job(int *rank, int *rank_count)
{
	struct pmix_name job;
	struct pmix_value *value = NULL;
	enum err e = begin();
	int status;

	if (e)
		return e;
	job = pmix.me;
	job.rank = RANK_WILDCARD;
	status = pmix.get(&job, "pmix.job.size", NULL, 0, &value);
	if (status || !value)
		return refused("PMIx_Get of the number of ranks", status);
	e = value_number(value, rank_count);
	if (!e)
		*rank = (int)pmix.me.rank;
	return e;
}

static enum err value_put(const char *key, char *text)
{
	struct pmix_value value = {.type = TYPE_STRING, .data.string = text};
	int status = pmix.put(SCOPE_GLOBAL, key, &value);

	if (status)
		return refused("PMIx_Put", status);
	status = pmix.commit();
	return status ? refused("PMIx_Commit", status) : OK;
}

/* With what was put: the others need not ask for it one by one. An older library, whose
 * values are narrower, finds no key where the second begins and passes it over. */
static enum err wait_all(int timeout_s)
{
	struct pmix_info info[2] = {
		{.key = "pmix.collect", .value = {TYPE_BOOL, {.flag = true}}},
		{.key = "pmix.timeout", .value = {TYPE_INT, {.number = timeout_s}}}};
	int status = pmix.fence(NULL, 0, info, timeout_s > 0 ? 2 : 1);

	return status ? refused("PMIx_Fence", status) : OK;
}

enum err pmix_share(const char *key, char *text, size_t room, int timeout_s)
{
	struct pmix_name first;
	struct pmix_value *value = NULL;
	enum err e = begin();
	int status;

	if (!e && !pmix.me.rank)
		e = value_put(key, text);
	if (!e)
		e = wait_all(timeout_s);
	if (e || !pmix.me.rank)
		return e;
	first = pmix.me;
	first.rank = 0;
	status = pmix.get(&first, key, NULL, 0, &value);
	if (status || !value)
		return refused("PMIx_Get", status);
	if (value->type == TYPE_STRING && value->data.string &&
		strlen(value->data.string) < room)
		snprintf(text, room, "%s", value->data.string);
	else
		e = err_set(ERR_REMOTE, "PMIx gave another value than rank 0 has put");
	if (value->type == TYPE_STRING)
		free(value->data.string);
	free(value);
	return e;
}

void pmix_unload(void)
{
	if (pmix.is_begun)
		pmix.finalize(NULL, 0);
	pmix.is_begun = false;
}
