/*
 * agenda.h - who is to be stepped next: sleepers by the instant they wake.
 *
 * A binary heap with room for every lane; a lane is on it at most once, so adding cannot
 * fail.
 */
#ifndef EXEC_SIM_AGENDA_H
#define EXEC_SIM_AGENDA_H

#include <stdint.h>

#include "base/err.h"

struct wake {
	uint64_t at_ps;
	uint32_t turn; /* among equals, the lowest first */
	uint32_t lane; /* of all lanes of all ranks */
};

struct agenda {
	struct wake *wakes; /* owned */
	uint32_t count, room;
};

enum err agenda_init(struct agenda *agenda, uint32_t room);
void agenda_fini(struct agenda *agenda);

void agenda_add(struct agenda *agenda, const struct wake *wake);

/* Take the earliest off. There must be one. */
struct wake agenda_take(struct agenda *agenda);

#endif
