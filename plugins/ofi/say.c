#include "say.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

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
