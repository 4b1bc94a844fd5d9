/* Names of plugins: the usual one, lists, `none`, files and suffixes, the newest version
 * first, and a sentence for each that is no plugin. */
#include "base/plugin_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "log_text.h"
#include "test.h"

static char log_path[] = "/tmp/weft-plugin-file-XXXXXX";

static struct plugin_kind kind = {.file = "env",
	.title = "ENV",
	.called = "test plugin",
	.symbol = "ncclEnvPlugin_v",
	.newest = 9,
	.oldest = 1,
	.param = PARAM_TUNER_PLUGIN,
	.subsystem = LOG_ENV,
	.otherwise = "nothing is lost"};

static void names_set(const char *list)
{
	if (list)
		setenv("NCCL_TUNER_PLUGIN", list, 1);
	else
		unsetenv("NCCL_TUNER_PLUGIN");
	param_forget(PARAM_TUNER_PLUGIN);
	EQ(truncate(log_path, 0), 0);
}

/* The names of a list, with a space behind each. */
static const char *names_of(const char *list)
{
	static char all[4 * PLUGIN_ASKED_BYTES];
	char asked[PLUGIN_ASKED_BYTES];
	struct plugin_names names;

	names_set(list);
	names = plugin_names(&kind);
	all[0] = '\0';
	while (plugin_names_next(&kind, &names, asked)) {
		strcat(all, asked);
		strcat(all, " ");
	}
	return all;
}

static void lists(void)
{
	char longer[2 * PLUGIN_ASKED_BYTES];

	EQ_STR(names_of(NULL), "libnccl-env.so ");
	EQ_STR(names_of("a"), "a ");
	EQ_STR(names_of(" a,,b ,c"), "a b c ");
	EQ_STR(names_of("a,None,b"), "a ");
	EQ_STR(names_of("none"), "");
	EQ_STR(names_of(",,"), "");
	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	EQ(strlen(names_of(longer)), PLUGIN_ASKED_BYTES); /* cut, and a space */
}

static void files(void)
{
	struct plugin_library library;

	names_set("test1");
	TRUE(plugin_file_find(&kind, &library));
	EQ(library.version, 1);
	EQ_STR(library.name, "EnvTest");
	EQ(log_count(log_path, "ENV/Plugin: Failed to find ncclEnvPlugin_v9 symbol."), 1);
	plugin_file_refuse(&kind, &library, "is slow");
	EQ(log_count(log_path, "the test plugin EnvTest (v1) is slow; nothing is lost"),
		1);
	plugin_file_unload(&library);
	TRUE(!library.handle);
	names_set("nowhere," WEFT_PLUGIN_FOLDER "/libnccl-env-test2.so,test1");
	TRUE(plugin_file_find(&kind, &library));
	EQ(library.version, 2);
	EQ(log_count(log_path, "no test plugin nowhere: libnccl-env-nowhere.so cannot"),
		1);
	plugin_file_unload(&library);
}

static void no_plugins(void)
{
	char fifo[] = "/tmp/weft-plugin-fifo-XXXXXX";
	struct plugin_library library;

	names_set(NULL);
	TRUE(!plugin_file_find(&kind, &library)); /* nobody has asked for it */
	EQ(log_count(log_path, "WARN"), 0);
	EQ(log_count(log_path, "Could not find: libnccl-env.so."), 1);
	kind.is_quiet = true;
	names_set(NULL);
	TRUE(!plugin_file_find(&kind, &library));
	EQ(log_count(log_path, "Could not find"), 0);
	names_set("STATIC_PLUGIN"); /* this program, which is none */
	TRUE(!plugin_file_find(&kind, &library));
	EQ(log_count(log_path, "the test plugin STATIC_PLUGIN exports no"), 1);
	EQ(close(mkstemp(fifo)), 0);
	names_set(fifo); /* empty */
	TRUE(!plugin_file_find(&kind, &library));
	EQ(log_count(log_path, "cannot be loaded"), 1);
	unlink(fifo);
	EQ(mkfifo(fifo, 0600), 0);
	names_set(fifo);
	TRUE(!plugin_file_find(&kind, &library));
	EQ(log_count(log_path, "which is no regular file; nothing is lost"), 1);
	unlink(fifo);
}

int main(void)
{
	EQ(close(mkstemp(log_path)), 0);
	setenv("NCCL_CONF_FILE", "/dev/null", 1);
	setenv("NCCL_ENV_PLUGIN", "none", 1);
	setenv("NCCL_DEBUG", "INFO", 1);
	setenv("NCCL_DEBUG_SUBSYS", "ALL", 1);
	setenv("NCCL_DEBUG_FILE", log_path, 1);
	lists();
	files();
	no_plugins();
	unlink(log_path);
	return 0;
}
