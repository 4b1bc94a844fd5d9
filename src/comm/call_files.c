#include "comm/call_files.h"

#include <stdatomic.h>
#include <sys/resource.h>

enum { PART = 4 };

static _Atomic uint64_t taken;

uint32_t call_files_take(uint32_t threads, uint32_t each)
{
	uint64_t before = atomic_load(&taken), room;
	struct rlimit limit;
	uint32_t count;

	if (threads <= 1 || getrlimit(RLIMIT_NOFILE, &limit))
		return threads;
	do {
		room = limit.rlim_cur / PART;
		room = room > before ? (room - before) / (each ? each : 1) : 0;
		count = room < threads ? (uint32_t)room : threads;
		if (count <= 1)
			return 1;
	} while (!atomic_compare_exchange_weak(
		&taken, &before, before + (uint64_t)count * each));
	return count;
}

void call_files_give(uint32_t files)
{
	atomic_fetch_sub(&taken, files);
}
