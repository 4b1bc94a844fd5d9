/*
 * drive_lines.h - connections of a plugin with both ends in this process, and messages on
 * them whose bytes are known.
 */
#ifndef TEST_DRIVE_LINES_H
#define TEST_DRIVE_LINES_H

#include <stdint.h>
#include <time.h>

#include "drive_world.h"

enum {
	STEPS = 8, /* under way on a connection, as in NCCL */
	STEP_BYTES = 512 << 10,
	MESSAGES = 60,
	HANDLE_BYTES = 128,
	WAIT_S = 60, /* no result is judged by it: it ends what hangs */
};

struct end {
	void *comm, *known;
	char *data; /* STEPS steps */
	char *seen; /* .. as this program may touch them */
	bool is_gpu;
	void *requests[STEPS];
	uint64_t posted, done;
	uint64_t filled; /* messages whose bytes are there */
};

struct line {
	struct world *world;
	char handle[HANDLE_BYTES];
	void *listener;
	struct end send, recv;
	unsigned seed;
};

time_t deadline(void);

/* DRIVE_GPU has the ends whose memory is a GPU's, `send` and `recv`, with `dmabuf` behind
 * where it is to be registered so. */
bool is_on_gpu(const char *end);

/* A listener; and lines between two worlds, with memory. */
void line_listen(struct line *line, struct world *from, struct world *to);
void lines_open(struct line *lines, int count, struct world *from, struct world *to);

/* `order` turns the order of its three parts round. */
void line_close(struct line *line, int order);
void end_forget(struct end *end);
void end_free(struct end *end);

/* One message more, if it is its time. */
void send_post(struct line *line);
void recv_post(struct line *line);

/* Have a GPU see what came. */
void line_flush(struct line *line, uint64_t message, int size);

/* What is done of it. */
void line_sent(struct line *line);
void line_receive(struct line *line);

/* All messages of all lines, to the end. */
void lines_run(struct line *lines, int count);

#endif
