#include "exec/sim/agenda.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

enum err agenda_init(struct agenda *agenda, uint32_t room)
{
	*agenda = (struct agenda){
		.wakes = calloc(room, sizeof(*agenda->wakes)), .room = room};
	return agenda->wakes ? OK : err_set(ERR_SYSTEM, "no memory for %u lanes", room);
}

void agenda_fini(struct agenda *agenda)
{
	free(agenda->wakes);
	*agenda = (struct agenda){0};
}

static bool is_before(const struct wake *a, const struct wake *b)
{
	return a->at_ps != b->at_ps ? a->at_ps < b->at_ps : a->turn < b->turn;
}

void agenda_add(struct agenda *agenda, const struct wake *wake)
{
	uint32_t at = agenda->count++;

	assert(agenda->count <= agenda->room);
	while (at > 0 && is_before(wake, &agenda->wakes[(at - 1) / 2])) {
		agenda->wakes[at] = agenda->wakes[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	agenda->wakes[at] = *wake;
}

struct wake agenda_take(struct agenda *agenda)
{
	struct wake *wakes = agenda->wakes, first = wakes[0], last;
	uint32_t at = 0, count;

	assert(agenda->count > 0);
	count = --agenda->count;
	last = wakes[count];
	for (uint32_t child = 1; child < count; child = 2 * at + 1) {
		if (child + 1 < count && is_before(&wakes[child + 1], &wakes[child]))
			child++;
		if (!is_before(&wakes[child], &last))
			break;
		wakes[at] = wakes[child];
		at = child;
	}
	wakes[at] = last;
	return first;
}
