/* An environment plugin of either version is asked instead of the environment and of the
 * files; one that does not start, or is not there, is named and left alone. */
#include "base/env_plugin.h"

#include <pthread.h>
#include <unistd.h>

#include "base/param.h"
#include "child.h"
#include "log_text.h"

static char log_path[] = "/tmp/weft-env-log-XXXXXX";
static char note_path[] = "/tmp/weft-env-note-XXXXXX";

/* A process in which the plugin is called so; its log and the plugin's notes are fresh.
 */
static void in_process(const char *plugin, void (*body)(void))
{
	int status;
	pid_t pid;

	EQ(truncate(log_path, 0), 0);
	EQ(truncate(note_path, 0), 0);
	pid = fork();
	TRUE(pid >= 0);
	if (!pid) {
		setenv("NCCL_ENV_PLUGIN", plugin, 1);
		body();
		exit(0); /* with what atexit() was told */
	}
	EQ(waitpid(pid, &status, 0), pid);
	EQ(status, 0);
}

static void plugin_answers(void)
{
	EQ_STR(param_text(PARAM_ALGO), "Tree");
	EQ(param_origin(PARAM_ALGO), PARAM_FROM_ENVIRONMENT);
	EQ(param_int(PARAM_TILE), 4096);
	EQ(param_int(PARAM_SPIN), -1); /* no number: the default */
	/* what it does not know is unset, whatever the environment has */
	TRUE(!param_text(PARAM_PROTO));
	EQ(param_int(PARAM_STALL), 5);
	param_forget(PARAM_TILE);
	EQ(param_int(PARAM_TILE), 4096);
}

static void environment_answers(void)
{
	EQ_STR(param_text(PARAM_ALGO), "Ring");
	EQ_STR(param_text(PARAM_PROTO), "LL");
	EQ(param_int(PARAM_STALL), 7);
}

static void *ask_all(void *unused)
{
	(void)unused;
	for (int i = 0; i < PARAM_COUNT; i++)
		param_origin((enum param)i);
	return NULL;
}

/* Many threads ask at once; nobody waits for ever and all see the same. */
static void threads_ask(void)
{
	pthread_t threads[8];

	for (int i = 0; i < 8; i++)
		EQ(pthread_create(&threads[i], NULL, ask_all, NULL), 0);
	for (int i = 0; i < 8; i++)
		EQ(pthread_join(threads[i], NULL), 0);
	plugin_answers();
}

static void versions(void)
{
	in_process("test1", plugin_answers);
	EQ(log_count(note_path, "begun for 2.32.3\n"), 1);
	EQ(log_count(note_path, "ended\n"), 1);
	EQ(log_count(log_path, "ENV/Plugin: Using EnvTest (v1)"), 1);
	in_process(WEFT_PLUGIN_FOLDER "/libnccl-env-test2.so", plugin_answers);
	EQ(log_count(note_path, "begun for 2.32.3\n"), 1);
	EQ(log_count(log_path, "ENV/Plugin: Using EnvTest (v2)"), 1);
	EQ(log_count(log_path, "asked for NCCL_ALGO"), 1);
	EQ(log_count(log_path, "asked for NCCL_DEBUG"), 0); /* the logger's */
	EQ(log_count(log_path, "WARN"), 0);
	in_process("test2", threads_ask);
	EQ(log_count(note_path, "begun"), 1);
}

static void failures(void)
{
	in_process("none", environment_answers);
	EQ(log_count(log_path, "WARN"), 0);
	in_process("not-there", environment_answers);
	EQ(log_count(log_path,
		   "no environment plugin not-there: libnccl-env-not-there.so cannot be "
		   "loaded"),
		1);
	in_process(WEFT_PLUGIN_FOLDER "/libnccl-net-test6.so", environment_answers);
	EQ(log_count(log_path, "exports no ncclEnvPlugin_v1 to _v2; the environment"), 1);
	setenv("ENV_TEST_FAULT", "init", 1);
	in_process("test2", environment_answers);
	EQ(log_count(log_path, "the environment plugin EnvTest (v2) could not start"), 1);
	EQ(log_count(note_path, "ended"), 0);
	unsetenv("ENV_TEST_FAULT");
	/* the first of a list that can be loaded */
	in_process("not-there,test1", plugin_answers);
	EQ(log_count(log_path, "WARN"), 1);
}

int main(void)
{
	EQ(close(mkstemp(log_path)), 0);
	EQ(close(mkstemp(note_path)), 0);
	setenv("NCCL_CONF_FILE", "/dev/null", 1);
	setenv("NCCL_DEBUG", "INFO", 1);
	setenv("NCCL_DEBUG_SUBSYS", "ALL", 1);
	setenv("NCCL_DEBUG_FILE", log_path, 1);
	setenv("ENV_TEST_FILE", note_path, 1);
	setenv("NCCL_ALGO", "Ring", 1);
	setenv("NCCL_PROTO", "LL", 1);
	setenv("WEFT_STALL_SEC", "7", 1);
	versions();
	failures();
	unlink(log_path);
	unlink(note_path);
	return 0;
}
