/* An environment plugin as others write them, for the version that ENV_VERSION says: it
 * knows three variables, writes down how it began and ended, and fails on demand. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
enum { INFO = 3, SUBSYSTEM_ENV = 128 };

typedef int ncclResult_t;
typedef void (*ncclDebugLogger_t)(
	int level, unsigned long flags, const char *file, int line, const char *fmt, ...);

static ncclDebugLogger_t logger;

static void note(const char *what)
{
	const char *path = getenv("ENV_TEST_FILE");
	FILE *file = path ? fopen(path, "a") : NULL;

	if (!file)
		return;
	fprintf(file, "%s\n", what);
	fclose(file);
}

static ncclResult_t begin(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix)
{
	char text[64];

	snprintf(text, sizeof(text), "begun for %u.%u.%u%s", major, minor, patch, suffix);
	note(text);
	return getenv("ENV_TEST_FAULT") ? 2 : 0;
}

#if ENV_VERSION == 1
#define ncclEnvPlugin ncclEnvPlugin_v1
static ncclResult_t init(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix)
{
	return begin(major, minor, patch, suffix);
}
#else
#define ncclEnvPlugin ncclEnvPlugin_v2
static ncclResult_t init(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix,
	ncclDebugLogger_t log)
{
	logger = log;
	return begin(major, minor, patch, suffix);
}
#endif

static ncclResult_t finalize(void)
{
	note("ended");
	return 0;
}

static const char *get(const char *name)
{
	if (logger)
		logger(INFO, SUBSYSTEM_ENV, __FILE__, __LINE__, "asked for %s", name);
	if (!strcmp(name, "NCCL_ALGO"))
		return "Tree";
	if (!strcmp(name, "WEFT_TILE"))
		return "4096";
	if (!strcmp(name, "WEFT_SPIN"))
		return "many";
	return NULL;
}

EXPORT const struct {
	const char *name;
#if ENV_VERSION == 1
	ncclResult_t (*init)(uint8_t, uint8_t, uint8_t, const char *);
#else
	ncclResult_t (*init)(uint8_t, uint8_t, uint8_t, const char *, ncclDebugLogger_t);
#endif
	ncclResult_t (*finalize)(void);
	const char *(*get)(const char *);
} ncclEnvPlugin = {"EnvTest", init, finalize, get};
