#include "say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>

#include "base/log.h"

enum { TEXT_BYTES = 512 };

/* Every communicator brings it, from any thread; it is the same one. */
static _Atomic(plugin_log *) say;

void say_open(plugin_log *log)
{
	atomic_store(&say, log);
}

void say_info(const char *format, ...)
{
	plugin_log *log = atomic_load(&say);
	char text[TEXT_BYTES];
	va_list args;

	if (!log)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	log(LOG_INFO, LOG_INIT | LOG_NET, __FILE__, __LINE__, "NET/OFI %s", text);
}

int say_wrong(int result, const char *format, ...)
{
	plugin_log *log = atomic_load(&say);
	char text[TEXT_BYTES];
	va_list args;

	if (!log)
		return result;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	log(LOG_WARN, LOG_ALL, __FILE__, __LINE__, "NET/OFI %s", text);
	return result;
}

const char *say_memlock(int error, char text[SAY_REMEDY_BYTES])
{
	struct rlimit limit = {.rlim_cur = RLIM_INFINITY};

	text[0] = '\0';
	if (error != ENOMEM && error != EAGAIN && error != EPERM)
		return text;
	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (limit.rlim_cur == RLIM_INFINITY)
		snprintf(text, SAY_REMEDY_BYTES,
			"; see ulimit -l: it is unlimited here, so that the device or "
			"the "
			"kernel has no room (dmesg)");
	else
		snprintf(text, SAY_REMEDY_BYTES,
			"; see ulimit -l: this process may lock %ju KiB; let it lock "
			"all, "
			"in a container by IPC_LOCK or --ulimit memlock=-1",
			(uintmax_t)limit.rlim_cur / 1024);
	return text;
}
