/* Environment beats file beats default; bad values fall back and say so once. */
#include "base/param.h"

#include <limits.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "log_text.h"
#include "test.h"

static char folder[] = "/tmp/weft-param-XXXXXX";
static char conf[256], logged[256];

static void conf_write(void)
{
	FILE *file = fopen(conf, "w");

	TRUE(file);
	fputs("# a comment\nWEFT_SPIN=7\r\nWEFT_SPIN=8\n#WEFT_CMA=1\nnonsense\n=x\n"
	      "NCCL_HOSTID==a=b\nWEFT_TILE=0x100\nNCCL_ALGO=Ring\n",
		file);
	EQ(fclose(file), 0);
}

static void table_is_complete(void)
{
	enum param id;

	for (int i = 0; i < PARAM_COUNT; i++) {
		const struct param_info *info = param_info((enum param)i);

		TRUE(info->name && info->meaning);
		TRUE(!strncmp(info->name, "NCCL_", 5) ||
			!strncmp(info->name, "WEFT_", 5) ||
			!strncmp(info->name, "CUDA_", 5));
		TRUE(info->kind == PARAM_TEXT || info->lowest < info->highest);
		TRUE(param_find(info->name, &id));
		EQ(id, i);
	}
	TRUE(!param_find("NCCL_NONSENSE", &id));
	TRUE(!param_find("", &id));
}

static void sources_are_ranked(void)
{
	EQ(param_int(PARAM_SPIN), 7); /* the first line of a name wins */
	EQ(param_origin(PARAM_SPIN), PARAM_FROM_FILE);
	EQ_STR(param_text(PARAM_HOSTID), "=a=b");
	EQ(param_int(PARAM_TILE), 32); /* the environment's octal beats the file */
	EQ(param_origin(PARAM_TILE), PARAM_FROM_ENVIRONMENT);
	EQ(param_text(PARAM_ALGO) == NULL, 1); /* set to nothing hides the file */
	EQ(param_int(PARAM_CMA), -2);
	EQ(param_origin(PARAM_CMA), PARAM_FROM_DEFAULT);
	EQ(param_int(PARAM_ZERO_COPY), 1);
	EQ(param_int(PARAM_COMM_BLOCKING), INT_MIN);
	EQ_STR(param_text(PARAM_DEBUG_TIMESTAMP_LEVELS), "WARN,ATTN");
	EQ(param_text(PARAM_ISA) == NULL, 1);
}

static void bad_values_fall_back(void)
{
	EQ(param_int(PARAM_BOOT_TIMEOUT), 120); /* "12x" */
	EQ(param_origin(PARAM_BOOT_TIMEOUT), PARAM_FROM_DEFAULT);
	EQ(param_int(PARAM_TIMEOUT), 0); /* out of range */
	EQ(param_int(PARAM_BOOT_TIMEOUT), 120);
	EQ(log_count(logged,
		   "Invalid value 12x for WEFT_BOOT_TIMEOUT_SEC, using default 120."),
		1);
	EQ(log_count(logged, "Invalid value -3 for WEFT_TIMEOUT_SEC, using default 0."),
		1);
	EQ(log_count(logged, "NCCL INFO WEFT_SPIN set by environment to 7.\n"), 1);
	EQ(log_count(logged, "NCCL INFO NCCL_HOSTID set by environment to =a=b\n"), 1);
	EQ(log_count(logged, "NCCL_DEBUG"), 0);
	EQ_STR(param_text(PARAM_SECRET), "hush");
	EQ(log_count(logged, "hush"), 0);
}

static void forgetting_reads_again(void)
{
	const char *before = param_text(PARAM_HOSTID);

	setenv("NCCL_HOSTID", "new", 1);
	EQ_STR(param_text(PARAM_HOSTID), "=a=b");
	param_forget(PARAM_HOSTID);
	EQ_STR(param_text(PARAM_HOSTID), "new");
	EQ_STR(before, "=a=b"); /* still readable */
}

static void *reader(void *unused)
{
	(void)unused;
	for (int i = 0; i < 1000; i++) {
		EQ(param_int(PARAM_SHM_DISABLE), 1);
		if (i % 100 == 0)
			param_forget(PARAM_SHM_DISABLE);
	}
	return NULL;
}

/* A process of its own reads the file `conf`; WEFT_SPIN is what it finds, and the log
 * says this often why the file is passed over. */
static void file_gives(int64_t spin, const char *why, int times)
{
	int status;
	pid_t pid = fork();

	TRUE(pid >= 0);
	if (!pid) {
		EQ(param_int(PARAM_SPIN), spin);
		EQ(param_int(PARAM_CMA), -2);
		EQ(log_count(logged, why), times);
		_exit(0);
	}
	EQ(waitpid(pid, &status, 0), pid);
	EQ(status, 0);
	unlink(logged);
}

/* What is no file of settings is neither waited for nor read without an end. */
static void hostile_files(void)
{
	file_gives(7, "is not read", 0);
	setenv("NCCL_CONF_FILE", "/dev/zero", 1);
	file_gives(-1, "/dev/zero is not read: it is no regular file", 1);
	setenv("NCCL_CONF_FILE", "/dev/null", 1);
	file_gives(-1, "is not read", 0);
	setenv("NCCL_CONF_FILE", folder, 1);
	file_gives(-1, "no regular file", 1);
	setenv("NCCL_CONF_FILE", "/not/there", 1);
	file_gives(-1, "is not read", 0);
	setenv("NCCL_CONF_FILE", conf, 1);
	EQ(truncate(conf, 1 << 30), 0);
	file_gives(-1, "more than 1 MiB", 1);
	unlink(conf);
	EQ(mkfifo(conf, 0600), 0);
	file_gives(-1, "no regular file", 1);
	unlink(conf);
	conf_write();
}

int main(void)
{
	pthread_t threads[4];

	TRUE(mkdtemp(folder));
	snprintf(conf, sizeof(conf), "%s/conf", folder);
	snprintf(logged, sizeof(logged), "%s/log", folder);
	conf_write();
	setenv("NCCL_CONF_FILE", conf, 1);
	setenv("NCCL_DEBUG", "INFO", 1);
	setenv("NCCL_DEBUG_FILE", logged, 1);
	setenv("WEFT_TILE", "040", 1);
	setenv("NCCL_ALGO", "", 1);
	setenv("WEFT_BOOT_TIMEOUT_SEC", "12x", 1);
	setenv("WEFT_TIMEOUT_SEC", "-3", 1);
	setenv("NCCL_SHM_DISABLE", " 1 ", 1);
	setenv("WEFT_SECRET", "hush", 1);
	hostile_files();
	table_is_complete();
	sources_are_ranked();
	bad_values_fall_back();
	forgetting_reads_again();
	for (int i = 0; i < 4; i++)
		EQ(pthread_create(&threads[i], NULL, reader, NULL), 0);
	for (int i = 0; i < 4; i++)
		EQ(pthread_join(threads[i], NULL), 0);
	unlink(conf);
	unlink(logged);
	EQ(rmdir(folder), 0);
	return 0;
}
