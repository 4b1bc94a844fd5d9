#include "base/ifname.h"

#include <stdlib.h>
#include <string.h>

/* One entry of a list against one name. */
static bool entry_matches(
	const char *entry, size_t bytes, const char *name, int port, bool is_exact)
{
	const char *colon = memchr(entry, ':', bytes);
	size_t head = colon ? (size_t)(colon - entry) : bytes;

	if (!head || strncmp(entry, name, head) || (is_exact && name[head]))
		return false;
	return !colon || !port || strtol(colon + 1, NULL, 10) == port;
}

bool ifname_chosen(const char *list, const char *name, int port)
{
	bool is_excluded = list[0] == '^', is_exact;
	bool found = false;

	list += is_excluded;
	is_exact = list[0] == '=';
	list += is_exact;
	while (*list && !found) {
		size_t bytes = strcspn(list, ",");

		found = entry_matches(list, bytes, name, port, is_exact);
		list += bytes + (list[bytes] == ',');
	}
	return found != is_excluded;
}

const char *ifname_turn(uint32_t turn)
{
	static const char *const turns[] = {
		"ib", "^docker,lo,virbr", "docker", "lo", "virbr"};

	return turn < sizeof(turns) / sizeof(*turns) ? turns[turn] : NULL;
}
