#include "base/plugin_log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

enum { LINE_BYTES = 1024 };

void plugin_says(int level, unsigned long subsystems, const char *file, int line,
	const char *format, ...)
{
	unsigned mask = (unsigned)(subsystems & LOG_ALL);
	char text[LINE_BYTES];
	va_list args;

	(void)file;
	(void)line;
	if (level != LOG_WARN && level != LOG_ATTN &&
		(level != LOG_INFO || !log_is_on(LOG_INFO, mask)))
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	text[strcspn(text, "\n")] = '\0';
	if (level == LOG_WARN)
		log_warn("%s", text);
	else if (level == LOG_ATTN)
		log_attn("%s", text);
	else
		log_info(mask, "%s", text);
}
