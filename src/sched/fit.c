#include "sched/fit.h"

static bool chunks_fit(const struct sched *sched, const struct insn *insn, bool source)
{
	enum space space = source ? insn_src_space(insn) : insn_dst_space(insn);
	uint32_t chunks = space < SPACE_COUNT ? sched_chunks(sched, space) : 0;

	if ((source ? insn->src : insn->dst) >= chunks)
		return false;
	if (insn->count == 1) /* wherever it comes to stand */
		return true;
	for (uint32_t turn = 0; turn < insn_turns(insn); turn++)
		if (sched_chunk(sched, insn, source, turn) + (uint32_t)insn->count >
			chunks)
			return false;
	return true;
}

static bool conns_fit(
	const struct insn *insn, bool fan, uint8_t first, uint32_t conn_count)
{
	int32_t step = fan ? 1 : insn_turns(insn) > 1 ? insn->conn_step : 0;
	int32_t last = first + (insn->reps - 1) * step;

	return first < conn_count && last >= 0 && last < (int32_t)conn_count;
}

static bool insn_fits(
	const struct sched *sched, const struct prog *prog, const struct insn *insn)
{
	bool fan = insn->op & (FAN_IN | FAN_OUT);

	if (!insn->reps || !insn->count || !(insn->op & (OUT_DST | OUT_SEND)))
		return false;
	if (!(insn->op & (IN_SRC | IN_RECV | IN_ACC)))
		return false;
	if ((insn->op & FAN_IN && !(insn->op & IN_RECV)) ||
		(insn->op & FAN_OUT && !(insn->op & OUT_SEND)))
		return false;
	if (insn_own(insn) > insn->reps)
		return false;
	if (insn->op & IN_SRC && !chunks_fit(sched, insn, true))
		return false;
	if (insn->op & (OUT_DST | IN_ACC) && !chunks_fit(sched, insn, false))
		return false;
	if (insn->op & IN_RECV &&
		!(fan && !(insn->op & FAN_IN) ? insn->rx < prog->rx_count
					      : conns_fit(insn, insn->op & FAN_IN,
							insn->rx, prog->rx_count)))
		return false;
	if (insn->op & OUT_SEND &&
		!(fan && !(insn->op & FAN_OUT) ? insn->tx < prog->tx_count
					       : conns_fit(insn, insn->op & FAN_OUT,
							 insn->tx, prog->tx_count)))
		return false;
	if (insn->wait_lane == WAIT_NONE)
		return true;
	return insn->wait_lane < sched->lane_count &&
	       insn->wait_pc <= sched->lanes[insn->wait_lane].count;
}

static enum err lane_check(const struct sched *sched, uint32_t lane)
{
	const struct prog *prog = &sched->lanes[lane];

	for (uint32_t i = 0; i < prog->rx_count; i++)
		if (prog->rx_peers[i] >= sched->rank_count ||
			prog->rx_peers[i] == sched->rank)
			return err_set(ERR_USAGE, "rank %u lane %u receives from rank %u",
				sched->rank, lane, prog->rx_peers[i]);
	for (uint32_t i = 0; i < prog->tx_count; i++)
		if (prog->tx_peers[i] >= sched->rank_count ||
			prog->tx_peers[i] == sched->rank)
			return err_set(ERR_USAGE, "rank %u lane %u sends to rank %u",
				sched->rank, lane, prog->tx_peers[i]);
	for (uint32_t i = 0; i < prog->count; i++)
		if (!insn_fits(sched, prog, &prog->insns[i]))
			return err_set(ERR_USAGE,
				"rank %u lane %u instruction %u is out of range",
				sched->rank, lane, i);
	return OK;
}

enum err sched_fits(const struct sched *sched)
{
	enum err e = OK;

	for (uint32_t lane = 0; lane < sched->lane_count && !e; lane++)
		e = lane_check(sched, lane);
	return e;
}
