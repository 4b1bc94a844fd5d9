#include "topo/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void report_add(struct discover_report *report, const char *format, ...)
{
	char *sentence;
	va_list list;

	if (report->sentence_count == REPORT_SENTENCES_MAX)
		return;
	sentence = report->sentences[report->sentence_count];
	va_start(list, format);
	vsnprintf(sentence, REPORT_SENTENCE_BYTES, format, list);
	va_end(list);
	for (uint32_t i = 0; i < report->sentence_count; i++)
		if (!strcmp(report->sentences[i], sentence))
			return;
	report->sentence_count++;
}
