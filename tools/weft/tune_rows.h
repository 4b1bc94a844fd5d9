/*
 * tune_rows.h - what the model chooses for every size of one collective, and where it
 * changes its mind.
 */
#ifndef TOOLS_WEFT_TUNE_ROWS_H
#define TOOLS_WEFT_TUNE_ROWS_H

#include "tune/model.h"

struct tune_net;

/* nccl-tests' sizes: 8 bytes to 8 GiB. */
enum { TUNE_SIZE_FIRST = 3, TUNE_SIZE_LAST = 33 };
enum { TUNE_ROWS = TUNE_SIZE_LAST - TUNE_SIZE_FIRST + 1 };

struct tune_row {
	uint64_t bytes;	     /* larger of both buffers */
	bool usable;	     /* every rank has an element, and something is allowed */
	double algbw, busbw; /* GB/s */
	struct model_choice choice;
};

/* Neighbouring rows with one algorithm and protocol. */
struct tune_run {
	enum algo algo;
	enum proto proto;
	uint64_t last; /* bytes */
};

struct tune_rows {
	enum model_func func;
	struct tune_row rows[TUNE_ROWS];
	struct tune_run runs[TUNE_ROWS];
	int run_count;
};

/* `call` gives function, type and operator; `net` a plugin's say, NULL none. */
void tune_rows_fill(const struct model *model, const struct model_call *call,
	const struct tune_net *net, struct tune_rows *rows);

enum { TUNE_SIZE_TEXT = 16 };
/* "8 B", "512 KiB", "8 GiB". */
void tune_size_text(uint64_t bytes, char text[TUNE_SIZE_TEXT]);

#endif
