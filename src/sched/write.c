#include "sched/write.h"

#include <assert.h>
#include <stdlib.h>

enum { STEP_MAX = INT8_MAX };

struct writer write_begin(struct sched *sched, uint32_t chunk_count, uint32_t lane_count)
{
	assert(lane_count <= SCHED_LANES_MAX);
	sched->chunk_count = chunk_count;
	sched->lane_count = lane_count;
	return (struct writer){.sched = sched};
}

/* Fields an instruction has no use for are zero, so that equal schedules have equal
 * bytes and the text form is exact. */
static struct insn line_narrow(const struct sched_line *line)
{
	uint32_t op = line->op, reps = line->reps ? line->reps : 1;
	bool reads = op & IN_SRC, touches = op & (OUT_DST | IN_ACC);
	struct insn insn = {.wait_lane = WAIT_NONE};

	if (reps == 1)
		op &= ~(uint32_t)(FAN_IN | FAN_OUT);
	insn.op = (uint8_t)op;
	insn.spaces = insn_spaces(
		reads ? line->from : SPACE_IN, touches ? line->to : SPACE_IN);
	if (line->push)
		insn.spaces |= SPACES_PUSH;
	insn.rx = (uint8_t)(op & IN_RECV ? line->rx : 0);
	insn.tx = (uint8_t)(op & OUT_SEND ? line->tx : 0);
	insn.src = (uint16_t)(reads ? line->src : 0);
	insn.dst = (uint16_t)(touches ? line->dst : 0);
	insn.count = (uint16_t)(line->count ? line->count : 1);
	insn.reps = (uint16_t)reps;
	insn.stride = (int8_t)(reps > 1 ? line->stride : 0);
	if (op & FAN_IN)
		insn.stride = (int8_t)(uint8_t)line->own;
	insn.conn_step = (int8_t)(reps > 1 ? line->conn_step : 0);
	if (line->wait_pc) {
		insn.wait_lane = (uint8_t)line->wait_lane;
		insn.wait_pc = (uint8_t)line->wait_pc;
	}
	return insn;
}

void write_line(struct writer *writer, uint32_t lane, const struct sched_line *line)
{
	struct insn insn = line_narrow(line);

	assert(lane < writer->sched->lane_count);
	assert(line->rx < PROG_PEERS_MAX && line->tx < PROG_PEERS_MAX);
	assert(line->own <= UINT8_MAX);
	assert(line->wait_pc <= UINT8_MAX && line->src <= UINT16_MAX);
	assert(line->dst <= UINT16_MAX && line->count <= UINT16_MAX);
	if (!writer->error)
		writer->error = prog_emit(&writer->sched->lanes[lane], &insn);
}

void run_end(struct line_run *run)
{
	if (run->line.reps)
		write_line(run->writer, run->lane, &run->line);
	run->line.reps = 0;
}

/* How far each repetition is from the one before; the second one settles it. */
struct step {
	int value;
	bool known;
};

/* May repetition `reps` have `to` where repetition 0 has `from`? */
static bool step_fits(struct step *step, uint32_t from, uint32_t to, uint32_t reps)
{
	int64_t apart = (int64_t)to - (int64_t)from;

	if (!step->known)
		*step = (struct step){.value = (int)(apart / reps), .known = true};
	return apart == (int64_t)step->value * reps && abs(step->value) <= STEP_MAX;
}

static bool is_like(const struct sched_line *a, const struct sched_line *b)
{
	return a->op == b->op && a->from == b->from && a->to == b->to &&
	       a->count == b->count && a->push == b->push && !b->wait_pc &&
	       !(a->op & (FAN_IN | FAN_OUT));
}

/* Make `next` one more repetition of `line`, or say that it is none. */
static bool line_extend(struct sched_line *line, const struct sched_line *next)
{
	uint32_t op = line->op, reps = line->reps;
	struct step chunk = {line->stride, reps > 1}, conn = {line->conn_step, reps > 1};

	if (!reps || !is_like(line, next))
		return false;
	if (op & IN_SRC && !step_fits(&chunk, line->src, next->src, reps))
		return false;
	if (op & (OUT_DST | IN_ACC) && !step_fits(&chunk, line->dst, next->dst, reps))
		return false;
	if (op & IN_RECV && !step_fits(&conn, line->rx, next->rx, reps))
		return false;
	if (op & OUT_SEND && !step_fits(&conn, line->tx, next->tx, reps))
		return false;
	line->stride = chunk.value;
	line->conn_step = conn.value;
	line->reps++;
	return true;
}

void run_add(struct line_run *run, const struct sched_line *line)
{
	if (line_extend(&run->line, line))
		return;
	run_end(run);
	run->line = *line;
	if (!run->line.reps)
		run->line.reps = 1;
}

void write_rx_peers(
	struct writer *writer, uint32_t lane, uint32_t first, int step, uint32_t count)
{
	struct sched *sched = writer->sched;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t peer = write_mod(
			first + (int64_t)step * (int64_t)i, sched->rank_count);
		if (peer != sched->rank)
			prog_rx_new(&sched->lanes[lane], peer);
	}
}

void write_tx_peers(
	struct writer *writer, uint32_t lane, uint32_t first, int step, uint32_t count)
{
	struct sched *sched = writer->sched;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t peer = write_mod(
			first + (int64_t)step * (int64_t)i, sched->rank_count);
		if (peer != sched->rank)
			prog_tx_new(&sched->lanes[lane], peer);
	}
}

void write_recv_each(struct writer *writer, uint32_t lane)
{
	uint32_t n = writer->sched->rank_count, r = writer->sched->rank;
	struct sched_line line = {.op = IN_RECV | OUT_DST,
		.to = SPACE_OUT,
		.stride = 1,
		.conn_step = 1,
		.reps = r};

	if (r)
		write_line(writer, lane, &line);
	line.dst = r + 1;
	line.rx = r;
	line.reps = n - 1 - r;
	if (line.reps)
		write_line(writer, lane, &line);
}

uint32_t write_mod(int64_t x, uint32_t n)
{
	int64_t rest = x % (int64_t)n;

	return (uint32_t)(rest < 0 ? rest + (int64_t)n : rest);
}
