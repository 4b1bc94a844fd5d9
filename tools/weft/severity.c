#include "weft/severity.h"

const char *severity_name(enum severity severity)
{
	static const char *const names[SEVERITY_COUNT] = {[SEVERITY_NOTE] = "note",
		[SEVERITY_PERFORMANCE] = "performance",
		[SEVERITY_FATAL] = "fatal"};

	return names[severity];
}
