#include "page.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "ranks.h"

enum { POLL_US = 100 };

const char *const step_names[STEP_COUNT] = {"start", "id", "init", "split or shrink",
	"call", "revoke", "renew", "call again", "abort", "destroy",
	"wait for the resumed", "finished"};

void seat_bad(struct seat *seat, const char *format, ...)
{
	va_list arguments;

	if (seat->bad[0])
		return;
	va_start(arguments, format);
	vsnprintf(seat->bad, sizeof(seat->bad), format, arguments);
	va_end(arguments);
}

bool word_wait(_Atomic int *word, int least, uint64_t limit_us)
{
	uint64_t end = patient_us() + limit_us;

	while (atomic_load(word) < least) {
		if (patient_us() > end)
			return false;
		usleep(POLL_US);
	}
	return true;
}
