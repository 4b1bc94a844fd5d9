#include "exec/host/tide.h"

size_t tide_come(const struct host_tide *tide)
{
	uint32_t parts = atomic_load_explicit(tide->come, memory_order_acquire) -
			 tide->first;

	return parts < tide->count ? parts * tide->part_bytes : SIZE_MAX;
}

void tide_tell(const struct host_tide *tide, size_t bytes)
{
	size_t parts = bytes / tide->part_bytes;
	uint32_t told = parts < tide->count ? (uint32_t)parts : tide->count - 1;

	uint32_t now = atomic_load_explicit(tide->done, memory_order_relaxed);

	while (now - tide->first < told &&
		!atomic_compare_exchange_weak_explicit(tide->done, &now,
			tide->first + told, memory_order_acq_rel, memory_order_relaxed))
		;
}
