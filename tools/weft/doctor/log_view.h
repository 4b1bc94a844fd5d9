/*
 * log_view.h - who talks to whom by which transport, as a table of letters and as a
 * picture. Rows send, columns receive; with many ranks a cell stands for several.
 */
#ifndef TOOLS_WEFT_DOCTOR_LOG_VIEW_H
#define TOOLS_WEFT_DOCTOR_LOG_VIEW_H

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "weft/doctor/log_facts.h"

enum { LOG_VIEW_CELLS = 64, LOG_VIEW_RINGS = 4 };

/* In order of speed: a cell of several connections shows the slowest. */
enum log_way { WAY_NONE, WAY_P2P, WAY_SHM, WAY_GDR, WAY_NET, WAY_COUNT };

struct log_view {
	uint32_t cells;	   /* rows and columns; 0: the log has no connections */
	uint32_t per_cell; /* ranks that one stands for */
	uint32_t rank_count;
	uint8_t way[LOG_VIEW_CELLS][LOG_VIEW_CELLS];
	uint32_t connections[LOG_VIEW_CELLS][LOG_VIEW_CELLS];
	uint64_t totals[WAY_COUNT];
	char hosts[LOG_VIEW_CELLS][FACTS_NAME_BYTES]; /* of a cell's first rank, or "" */
	uint32_t ring_count;
	uint32_t rings[LOG_VIEW_RINGS]; /* the first different ones: their channels */
};

void log_view_make(const struct log_facts *facts, struct log_view *view);
void log_view_print(
	FILE *file, const struct log_facts *facts, const struct log_view *view);
void log_view_svg(FILE *file, const struct log_facts *facts, const struct log_view *view);

/* "P2P", "SHM", "NET with GPUDirect", "NET". */
const char *log_way_name(enum log_way way);

/* The next rank of a ring's text, which is moved behind it; false at its end. */
bool log_ring_next(const char **text, uint32_t *rank);

#endif
