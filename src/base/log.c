#include "base/log.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/fsize.h"
#include "base/param.h"

enum { LINE_BYTES = 2048, STAMP_BYTES = 128, HOST_BYTES = 64, PATH_BYTES = 1024 };
enum { WRITE_PATIENCE_MS = 1000 };

/*
 * What a level test needs, in one word, so that it is one load:
 *
 *   bit 63      set once the settings are read
 *   bits 32-39  the levels, a bit each
 *   bits 0-31   the subsystems
 */
#define READY (1ull << 63)

static _Atomic uint64_t settings;

/* Everything below is guarded by `lock`. param.c may log, but never while it reads one of
 * our own variables, so reading them under the lock cannot come back here. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int output = STDOUT_FILENO;
static unsigned stamp_levels; /* bit per enum log_level */
static char stamp_format[STAMP_BYTES];
static char host[HOST_BYTES];
static bool banner_done;

static _Thread_local int device_plus_1; /* so that 0, the initial value, is "none" */

struct word {
	const char *name;
	unsigned bit;
};

#define BIT(level) (1u << (level))

/* What NCCL_DEBUG's words stand for: each with those that are more severe. */
static const struct word levels[] = {{"VERSION", BIT(LOG_VERSION)},
	{"WARN", BIT(LOG_VERSION) | BIT(LOG_WARN)},
	{"ATTN", BIT(LOG_VERSION) | BIT(LOG_WARN) | BIT(LOG_ATTN)},
	{"INFO", BIT(LOG_VERSION) | BIT(LOG_WARN) | BIT(LOG_ATTN) | BIT(LOG_INFO)},
	{"ABORT", BIT(LOG_VERSION) | BIT(LOG_WARN) | BIT(LOG_ATTN) | BIT(LOG_INFO) |
			  BIT(LOG_ABORT)},
	{"TRACE", 0xff}, {NULL, 0}};

/* The levels one by one, as lists name them. */
static const struct word single_levels[] = {{"VERSION", BIT(LOG_VERSION)},
	{"WARN", BIT(LOG_WARN)}, {"ATTN", BIT(LOG_ATTN)}, {"INFO", BIT(LOG_INFO)},
	{"ABORT", BIT(LOG_ABORT)}, {"TRACE", BIT(LOG_TRACE)}, {"ALL", 0xff}, {NULL, 0}};

static const struct word subsystems[] = {{"INIT", LOG_INIT}, {"COLL", LOG_COLL},
	{"P2P", LOG_P2P}, {"SHM", LOG_SHM}, {"NET", LOG_NET}, {"GRAPH", LOG_GRAPH},
	{"TUNING", LOG_TUNING}, {"ENV", LOG_ENV}, {"ALLOC", LOG_ALLOC},
	{"CALL", LOG_CALL}, {"PROXY", LOG_PROXY}, {"NVLS", LOG_NVLS},
	{"BOOTSTRAP", LOG_BOOTSTRAP}, {"REG", LOG_REG}, {"PROFILE", LOG_PROFILE},
	{"RAS", LOG_RAS}, {"DESTROY", LOG_DESTROY}, {"ALLOC_HOST", LOG_ALLOC_HOST},
	{"ALL", LOG_ALL}, {NULL, 0}};

static unsigned word_find(const struct word *words, const char *name, size_t bytes)
{
	for (; words->name; words++)
		if (strlen(words->name) == bytes &&
			!strncasecmp(words->name, name, bytes))
			return words->bit;
	return 0;
}

/* "A,B" is A and B; "^A,B" is all but A and B. Unknown words count for nothing. */
static unsigned list_parse(const struct word *words, const char *list)
{
	bool is_inverted = *list == '^';
	unsigned bits = 0;

	for (list += is_inverted; *list;) {
		size_t bytes = strcspn(list, ",");

		bits |= word_find(words, list, bytes);
		list += bytes;
		list += *list == ',';
	}
	return is_inverted ? ~bits : bits;
}

static void host_read(void)
{
	if (gethostname(host, sizeof(host)))
		strcpy(host, "unknown");
	host[sizeof(host) - 1] = '\0';
	host[strcspn(host, ".")] = '\0';
}

/* Expand %h, %p and %% of NCCL_DEBUG_FILE; false when it does not fit. */
static bool path_expand(const char *from, char *to, size_t room)
{
	size_t used = 0;

	for (; *from && used < room; from++) {
		size_t left = room - used;
		int n;

		if (from[0] == '%' && from[1] == 'h')
			n = snprintf(to + used, left, "%s", host);
		else if (from[0] == '%' && from[1] == 'p')
			n = snprintf(to + used, left, "%d", (int)getpid());
		else
			n = snprintf(to + used, left, "%c", *from);
		used += (size_t)n;
		from += from[0] == '%' && from[1] && strchr("hp%", from[1]);
	}
	return used < room;
}

/* Point `output` at the file; stdout when it cannot be opened. Opening /dev/stdout would
 * truncate the file a shell has redirected it to, hence the two names. Append mode keeps
 * the lines of processes that share a file whole. */
static void output_open(const char *pattern)
{
	char path[PATH_BYTES];
	int fd;

	if (!strcmp(pattern, "/dev/stdout"))
		return;
	if (!strcmp(pattern, "/dev/stderr")) {
		output = STDERR_FILENO;
		return;
	}
	if (!path_expand(pattern, path, sizeof(path)))
		return;
	fd = file_create(path, O_APPEND, 0644);
	if (fd >= 0)
		output = fd;
}

/* A copy of the format with `_` turned into a space, which a shell passes on more easily.
 */
static void stamp_read(void)
{
	const char *format = param_text(PARAM_DEBUG_TIMESTAMP_FORMAT);
	const char *list = param_text(PARAM_DEBUG_TIMESTAMP_LEVELS);

	snprintf(stamp_format, sizeof(stamp_format), "%s", format ? format : "");
	for (char *c = stamp_format; *c; c++)
		if (*c == '_')
			*c = ' ';
	stamp_levels = list_parse(single_levels, list ? list : "");
}

static uint64_t settings_read(void)
{
	const char *debug = param_text(PARAM_DEBUG);
	const char *more = param_text(PARAM_DEBUG_LEVELS);
	const char *list = param_text(PARAM_DEBUG_SUBSYS);
	const char *file = param_text(PARAM_DEBUG_FILE);
	uint64_t on = debug ? word_find(levels, debug, strlen(debug)) : 0;
	uint64_t fresh;

	on |= list_parse(single_levels, more ? more : "") & 0xff;
	fresh = READY | on << 32 | list_parse(subsystems, list ? list : "");
	host_read();
	stamp_read();
	if (file && on & ~(uint64_t)BIT(LOG_VERSION))
		output_open(file);
	return fresh;
}

/* Out of line, so that asking stays short. */
static __attribute__((noinline)) uint64_t settings_first(void)
{
	int saved = errno;
	uint64_t now;

	pthread_mutex_lock(&lock);
	now = atomic_load_explicit(&settings, memory_order_relaxed);
	if (!(now & READY)) {
		now = settings_read();
		atomic_store_explicit(&settings, now, memory_order_release);
	}
	pthread_mutex_unlock(&lock);
	errno = saved;
	return now;
}

static uint64_t settings_get(void)
{
	uint64_t now = atomic_load_explicit(&settings, memory_order_acquire);

	return now & READY ? now : settings_first();
}

bool log_is_on(enum log_level level, unsigned subsystem)
{
	uint64_t now = settings_get();

	if (!(now >> 32 & BIT(level)))
		return false;
	return level <= LOG_WARN || level == LOG_ATTN ||
	       (now & subsystem & UINT32_MAX) != 0;
}

/* Digits of a `%1f` .. `%9f` at `from`, else 0. */
static int fraction_digits(const char *from)
{
	return from[0] == '%' && from[1] >= '1' && from[1] <= '9' && from[2] == 'f'
		       ? from[1] - '0'
		       : 0;
}

/* strftime() knows no fractions of a second: put them in first. */
static size_t stamp_print(char *to, size_t room)
{
	char format[STAMP_BYTES + 64];
	size_t used = 0;
	struct timespec now;
	struct tm parts;

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &parts);
	for (const char *c = stamp_format; *c && used + 10 < sizeof(format); c++) {
		int digits = fraction_digits(c);

		if (digits) {
			char nine[16];

			snprintf(nine, sizeof(nine), "%09u",
				(unsigned)now.tv_nsec % 1000000000u);
			memcpy(format + used, nine, (size_t)digits);
			used += (size_t)digits;
			c += 2;
			continue;
		}
		format[used++] = *c;
		if (c[0] == '%' && c[1])
			format[used++] = *++c;
	}
	format[used] = '\0';
	used = strftime(to, room, format, &parts);
	to[used] = '\0';
	return used;
}

/* Lines are lost from now on; the reason goes where it can still be read, once. */
static void output_is_full(void)
{
	static const char why[] =
		"NCCL WARN the log cannot grow: the limit on the size of files, ulimit "
		"-f, is too low\n";
	static bool is_said;
	ssize_t n = 0;

	if (!is_said)
		n = write(STDERR_FILENO, why, sizeof(why) - 1);
	is_said = true;
	(void)n;
}

/* write() that the limit on the size of files cannot turn into a signal. */
static ssize_t output_write(const char *line, size_t bytes)
{
	struct fsize hold;
	ssize_t n;

	fsize_begin(&hold);
	n = write(output, line, bytes);
	if (n < 0 && *fsize_hint(errno)) {
		output_is_full();
		errno = EFBIG;
	}
	fsize_end(&hold);
	return n;
}

/* A reader that has stopped must not stop us: after a second the line is lost. */
static void line_write(const char *line, size_t bytes)
{
	while (bytes > 0) {
		ssize_t n = output_write(line, bytes);

		if (n >= 0) {
			line += n;
			bytes -= (size_t)n;
		} else if (errno == EAGAIN) {
			struct pollfd wait = {.fd = output, .events = POLLOUT};

			if (poll(&wait, 1, WRITE_PATIENCE_MS) == 0)
				return;
		} else if (errno != EINTR) {
			return;
		}
	}
}

/* Texts carry names and messages from outside: no control byte may forge a line. */
static void line_clean(char *text)
{
	for (; *text; text++)
		if (iscntrl((unsigned char)*text))
			*text = ' ';
}

__attribute__((format(printf, 3, 0))) static void line_print(
	enum log_level level, const char *name, const char *format, va_list args)
{
	char line[LINE_BYTES], device[16] = "";
	int saved = errno;
	size_t used = 0;
	int n;

	if (device_plus_1 > 0)
		snprintf(device, sizeof(device), "[%d] ", device_plus_1 - 1);
	pthread_mutex_lock(&lock);
	if (stamp_levels & BIT(level))
		used = stamp_print(line, STAMP_BYTES + 64);
	n = snprintf(line + used, sizeof(line) - used, "%s:%d:%d %sNCCL %s ", host,
		(int)getpid(), (int)gettid(), device, name);
	used += (size_t)n;
	errno = saved; /* for %m */
	vsnprintf(line + used, sizeof(line) - used - 1, format, args);
	line_clean(line + used);
	used += strlen(line + used);
	line[used++] = '\n';
	line_write(line, used);
	pthread_mutex_unlock(&lock);
	errno = saved;
}

void log_info(unsigned subsystem, const char *format, ...)
{
	va_list args;

	if (!log_is_on(LOG_INFO, subsystem))
		return;
	va_start(args, format);
	line_print(LOG_INFO, "INFO", format, args);
	va_end(args);
}

void log_warn(const char *format, ...)
{
	va_list args;

	if (!log_is_on(LOG_WARN, LOG_ALL))
		return;
	va_start(args, format);
	line_print(LOG_WARN, "WARN", format, args);
	va_end(args);
}

void log_attn(const char *format, ...)
{
	va_list args;

	if (!log_is_on(LOG_ATTN, LOG_ALL))
		return;
	va_start(args, format);
	line_print(LOG_ATTN, "ATTN", format, args);
	va_end(args);
}

void log_set_device(int device)
{
	device_plus_1 = device < 0 ? 0 : device + 1;
}

void log_reset(void)
{
	pthread_mutex_lock(&lock);
	if (output > STDERR_FILENO)
		close(output);
	output = STDOUT_FILENO;
	param_forget(PARAM_DEBUG);
	param_forget(PARAM_DEBUG_LEVELS);
	param_forget(PARAM_DEBUG_SUBSYS);
	param_forget(PARAM_DEBUG_FILE);
	param_forget(PARAM_DEBUG_TIMESTAMP_FORMAT);
	param_forget(PARAM_DEBUG_TIMESTAMP_LEVELS);
	atomic_store_explicit(&settings, 0, memory_order_release);
	pthread_mutex_unlock(&lock);
}

/* As NCCL: a bare line for those who asked only for it, an INFO line among others. */
void log_banner(const char *version)
{
	char line[256];
	bool is_first;
	int n;

	if (!log_is_on(LOG_VERSION, LOG_ALL))
		return;
	pthread_mutex_lock(&lock);
	is_first = !banner_done;
	banner_done = true;
	pthread_mutex_unlock(&lock);
	if (!is_first)
		return;
	if (log_is_on(LOG_INFO, LOG_ALL)) {
		log_info(LOG_ALL, "NCCL version %s", version);
		return;
	}
	n = snprintf(line, sizeof(line), "NCCL version %s\n", version);
	pthread_mutex_lock(&lock);
	line_write(line, n < (int)sizeof(line) ? (size_t)n : sizeof(line) - 1);
	pthread_mutex_unlock(&lock);
}
