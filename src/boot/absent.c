#include "boot/absent.h"

#include <stdbool.h>
#include <stdio.h>

/* The longest entry, ", 65534-65535", and the ".." that ends a list cut short. */
enum { ENTRY_BYTES = 24 };

uint32_t absent_print(
	const unsigned char *came, uint32_t rank_count, char *text, size_t room)
{
	uint32_t absent = 0;
	size_t used = 0;
	bool is_cut = false;

	for (uint32_t rank = 0; rank < rank_count; rank++) {
		const char *comma = absent ? ", " : "";
		uint32_t first = rank;

		if (came[rank])
			continue;
		while (rank + 1 < rank_count && !came[rank + 1])
			rank++;
		absent += rank - first + 1;
		if (is_cut)
			continue;
		is_cut = used + 2 * ENTRY_BYTES > room;
		if (is_cut)
			used += (size_t)snprintf(text + used, room - used, ", ..");
		else if (first == rank)
			used += (size_t)snprintf(
				text + used, room - used, "%s%u", comma, first);
		else
			used += (size_t)snprintf(
				text + used, room - used, "%s%u-%u", comma, first, rank);
	}
	return absent;
}
