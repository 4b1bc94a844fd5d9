#include "say.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/log.h"

enum { TEXT_BYTES = 512 };

static plugin_log *say;

void say_open(plugin_log *log)
{
	say = log;
}

void say_info(const char *format, ...)
{
	char text[TEXT_BYTES];
	va_list args;

	if (!say)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	say(LOG_INFO, LOG_INIT | LOG_NET, __FILE__, __LINE__, "NET/OFI %s", text);
}

int say_wrong(int result, const char *format, ...)
{
	char text[TEXT_BYTES];
	va_list args;

	if (!say)
		return result;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	say(LOG_WARN, LOG_ALL, __FILE__, __LINE__, "NET/OFI %s", text);
	return result;
}
