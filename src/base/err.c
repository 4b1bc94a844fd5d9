#include "base/err.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

/* The newest sentence of the whole process, for a thread that itself saw no failure: a
 * helper thread fails, the application's thread asks. Guarded by `lock`. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char newest[ERR_TEXT_BYTES];

/* This thread's own sentence or, while `is_own` is false, its copy of `newest`. */
static _Thread_local char text[ERR_TEXT_BYTES];
static _Thread_local bool is_own, is_hushed;

enum err err_set(enum err code, const char *format, ...)
{
	int saved = errno;
	char fresh[ERR_TEXT_BYTES];
	va_list args;

	/* An argument may be err_last() itself, hence not straight into `text`. */
	va_start(args, format);
	vsnprintf(fresh, sizeof(fresh), format, args);
	va_end(args);
	memcpy(text, fresh, sizeof(text));
	is_own = true;
	if (is_hushed) {
		errno = saved;
		return code;
	}
	pthread_mutex_lock(&lock);
	memcpy(newest, fresh, sizeof(newest));
	pthread_mutex_unlock(&lock);
	log_warn("%s", fresh);
	errno = saved;
	return code;
}

void err_adopt(const char *sentence)
{
	snprintf(text, sizeof(text), "%s", sentence);
	is_own = true;
}

void err_hush(void)
{
	is_hushed = true;
}

const char *err_last(void)
{
	if (!is_own) {
		pthread_mutex_lock(&lock);
		memcpy(text, newest, sizeof(text));
		pthread_mutex_unlock(&lock);
	}
	return text;
}

const char *err_name(enum err code)
{
	switch (code) {
	case OK:
		return "no error";
	case ERR_CUDA:
		return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
	case ERR_SYSTEM:
		return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
	case ERR_INTERNAL:
		return "internal error - please report this issue to the NCCL developers";
	case ERR_ARGUMENT:
		return "invalid argument (run with NCCL_DEBUG=WARN for details)";
	case ERR_USAGE:
		return "invalid usage (run with NCCL_DEBUG=WARN for details)";
	case ERR_REMOTE:
		return "remote process exited or there was a network error";
	case ERR_PROGRESS:
		return "NCCL operation in progress";
	case ERR_TIMEOUT:
		return "timeout";
	case ERR_AGAIN:
		break;
	}
	return "unknown result code";
}
