/* Lines have NCCL's shape, levels and subsystems choose, and lines stay whole. */
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <regex.h>
#include <unistd.h>

#include "test.h"

static char folder[] = "/tmp/weft-log-XXXXXX";
static char path[256];
static char content[1 << 16];

/* Start over with these settings and an empty file named by %p. */
static void settings(const char *level, const char *subsystems, const char *levels)
{
	char pattern[256];

	snprintf(pattern, sizeof(pattern), "%s/a%%%%b.%%p", folder);
	snprintf(path, sizeof(path), "%s/a%%b.%d", folder, (int)getpid());
	unlink(path);
	setenv("NCCL_DEBUG", level, 1);
	setenv("NCCL_DEBUG_SUBSYS", subsystems, 1);
	setenv("NCCL_DEBUG_TIMESTAMP_LEVELS", levels, 1);
	setenv("NCCL_DEBUG_FILE", pattern, 1);
	log_reset();
}

static const char *output(void)
{
	FILE *file = fopen(path, "r");
	size_t bytes = 0;

	if (file) {
		bytes = fread(content, 1, sizeof(content) - 1, file);
		fclose(file);
	}
	content[bytes] = '\0';
	return content;
}

static void matches(const char *text, const char *pattern)
{
	regex_t regex;

	EQ(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
	if (regexec(&regex, text, 0, NULL, 0)) {
		fprintf(stderr, "\"%s\" does not match %s\n", text, pattern);
		exit(1);
	}
	regfree(&regex);
}

static void levels_choose(void)
{
	settings("warn", "ALL", "^ALL");
	TRUE(log_is_on(LOG_WARN, LOG_INIT));
	TRUE(!log_is_on(LOG_INFO, LOG_INIT));
	log_info(LOG_INIT, "not there");
	errno = ENOENT;
	log_warn("open %d: %m", 7);
	matches(output(),
		"^[^ ]+:[0-9]+:[0-9]+ NCCL WARN open 7: No such file or directory\n$");
	settings("nonsense", "ALL", "ALL");
	TRUE(!log_is_on(LOG_VERSION, LOG_ALL));
	settings("VERSION", "ALL", "ALL");
	TRUE(log_is_on(LOG_VERSION, LOG_ALL));
	TRUE(!log_is_on(LOG_WARN, LOG_ALL));
}

/* ATTN comes between WARN and INFO, whatever its number. */
static void attn_chooses(void)
{
	settings("ATTN", "ALL", "^ALL");
	TRUE(log_is_on(LOG_VERSION, LOG_ALL));
	TRUE(log_is_on(LOG_WARN, LOG_ALL));
	TRUE(log_is_on(LOG_ATTN, LOG_INIT));
	TRUE(!log_is_on(LOG_INFO, LOG_ALL));
	log_attn("look %d", 7);
	matches(output(), "^[^ ]+:[0-9]+:[0-9]+ NCCL ATTN look 7\n$");
	settings("WARN", "ALL", "^ALL");
	TRUE(!log_is_on(LOG_ATTN, LOG_ALL));
	settings("INFO", "NET", "^ALL");
	TRUE(log_is_on(LOG_ATTN, LOG_INIT)); /* of every subsystem, as warnings are */
	unsetenv("NCCL_DEBUG_TIMESTAMP_LEVELS");
	log_reset();
	unlink(path);
	log_attn("x");
	matches(output(), "^\\[[0-9]{4}-[^]]*\\] [^ ]+ NCCL ATTN x\n$");
}

/* Levels one by one, besides those of NCCL_DEBUG. */
static void levels_add(void)
{
	setenv("NCCL_DEBUG_LEVELS", "info,ATTN,nonsense", 1);
	settings("", "ALL", "^ALL");
	TRUE(log_is_on(LOG_INFO, LOG_NET));
	TRUE(log_is_on(LOG_ATTN, LOG_ALL));
	TRUE(!log_is_on(LOG_WARN, LOG_ALL));
	TRUE(!log_is_on(LOG_VERSION, LOG_ALL));
	settings("WARN", "ALL", "^ALL");
	TRUE(log_is_on(LOG_WARN, LOG_ALL));
	TRUE(log_is_on(LOG_INFO, LOG_ALL));
	TRUE(!log_is_on(LOG_TRACE, LOG_ALL));
	setenv("NCCL_DEBUG_LEVELS", "ALL", 1);
	settings("", "ALL", "^ALL");
	TRUE(log_is_on(LOG_TRACE, LOG_ALL));
	setenv("NCCL_DEBUG_LEVELS", "NONE", 1);
	settings("", "ALL", "^ALL");
	TRUE(!log_is_on(LOG_WARN, LOG_ALL));
	unsetenv("NCCL_DEBUG_LEVELS");
}

static void subsystems_choose(void)
{
	settings("INFO", "net,GRAPH,nonsense", "WARN");
	TRUE(log_is_on(LOG_INFO, LOG_NET));
	TRUE(log_is_on(LOG_INFO, LOG_GRAPH));
	TRUE(log_is_on(LOG_INFO, LOG_GRAPH | LOG_INIT));
	TRUE(!log_is_on(LOG_INFO, LOG_INIT));
	TRUE(log_is_on(LOG_WARN, LOG_INIT));
	settings("INFO", "^NET,GRAPH", "WARN");
	TRUE(!log_is_on(LOG_INFO, LOG_NET));
	TRUE(!log_is_on(LOG_INFO, LOG_GRAPH));
	TRUE(log_is_on(LOG_INFO, LOG_INIT));
	unsetenv("NCCL_DEBUG_SUBSYS");
	log_reset();
	TRUE(log_is_on(LOG_INFO, LOG_INIT));
	TRUE(log_is_on(LOG_INFO, LOG_BOOTSTRAP));
	TRUE(log_is_on(LOG_INFO, LOG_ENV));
	TRUE(!log_is_on(LOG_INFO, LOG_NET));
}

static void timestamps_and_devices(void)
{
	settings("INFO", "ALL", "WARN");
	log_set_device(3);
	log_info(LOG_INIT, "one\ntwo");
	log_set_device(-1);
	matches(output(), "^[^ ]+:[0-9]+:[0-9]+ \\[3\\] NCCL INFO one two\n$");
	settings("INFO", "ALL", "WARN");
	log_warn("x");
	matches(output(),
		"^\\[[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}\\] [^ ]+ NCCL WARN x\n$");
	setenv("NCCL_DEBUG_TIMESTAMP_FORMAT", "%%%3f|%T.%6f_", 1);
	settings("INFO", "ALL", "ALL");
	log_info(LOG_INIT, "x");
	matches(output(), "^%[0-9]{3}\\|[0-9:]{8}\\.[0-9]{6} [^ ]+ NCCL INFO x\n$");
	setenv("NCCL_DEBUG_TIMESTAMP_FORMAT", "", 1);
	settings("INFO", "ALL", "ALL");
	log_info(LOG_INIT, "x");
	matches(output(), "^[^ ]+:[0-9]+:[0-9]+ NCCL INFO x\n$");
}

static void *writer(void *unused)
{
	(void)unused;
	for (int i = 0; i < 100; i++)
		log_info(LOG_INIT, "abcdefghij klmnopqrst");
	return NULL;
}

static void lines_stay_whole(void)
{
	pthread_t threads[4];
	const char *at;
	int count = 0;

	settings("INFO", "ALL", "WARN");
	for (int i = 0; i < 4; i++)
		EQ(pthread_create(&threads[i], NULL, writer, NULL), 0);
	for (int i = 0; i < 4; i++)
		EQ(pthread_join(threads[i], NULL), 0);
	for (at = output(); *at; count++) {
		const char *end = strchr(at, '\n');

		TRUE(end && end - at > 21 &&
			!memcmp(end - 21, "abcdefghij klmnopqrst", 21));
		at = end + 1;
	}
	EQ(count, 400);
}

static void banner_comes_once(void)
{
	settings("WARN", "ALL", "WARN");
	log_banner("2.28.9");
	log_banner("2.28.9");
	EQ_STR(output(), "NCCL version 2.28.9\n");
}

int main(void)
{
	TRUE(mkdtemp(folder));
	setenv("NCCL_CONF_FILE", "/nonexistent", 1);
	levels_choose();
	attn_chooses();
	levels_add();
	subsystems_choose();
	timestamps_and_devices();
	lines_stay_whole();
	banner_comes_once();
	unlink(path);
	EQ(rmdir(folder), 0);
	return 0;
}
