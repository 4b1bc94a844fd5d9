#include "sched/write.h"

#include <assert.h>

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
