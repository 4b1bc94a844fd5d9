#include "sched/pair.h"

/* No instruction uses this connection. */
enum { CONN_NONE = PROG_PEERS_MAX };

static uint32_t peer_find(
	const uint16_t *peers, uint32_t count, uint32_t peer, uint32_t *hint)
{
	/* the rank itself is in nobody's list, so the lists behind it are one shorter */
	for (uint32_t i = *hint ? *hint - 1 : 0; i <= *hint + 1 && i < count; i++)
		if (peers[i] == peer)
			return *hint = i;
	for (uint32_t i = 0; i < count; i++)
		if (peers[i] == peer)
			return *hint = i;
	return CONN_NONE;
}

void pair_from(struct pair *pair, const struct sched *scheds, uint32_t from, uint32_t tx)
{
	const struct prog *send = &scheds[from].lanes[pair->lane], *recv;

	pair->from = from;
	pair->to = send->tx_peers[tx];
	recv = &scheds[pair->to].lanes[pair->lane];
	pair->send = (struct walk){.prog = send, .sends = true, .conn = tx};
	pair->recv = (struct walk){.prog = recv,
		.conn = peer_find(recv->rx_peers, recv->rx_count, from, &pair->hint)};
}

void pair_to(struct pair *pair, const struct sched *scheds, uint32_t to, uint32_t rx)
{
	const struct prog *recv = &scheds[to].lanes[pair->lane], *send;

	pair->to = to;
	pair->from = recv->rx_peers[rx];
	send = &scheds[pair->from].lanes[pair->lane];
	pair->recv = (struct walk){.prog = recv, .conn = rx};
	pair->send = (struct walk){.prog = send,
		.sends = true,
		.conn = peer_find(send->tx_peers, send->tx_count, to, &pair->hint)};
}

/* Which repetitions of an instruction use the connection: `count` from `turn` on. */
static uint32_t insn_uses(
	const struct walk *walk, const struct insn *insn, uint32_t *turn)
{
	uint8_t op = walk->sends ? OUT_SEND : IN_RECV;
	uint8_t fan = walk->sends ? FAN_OUT : FAN_IN;
	int32_t offset = (int32_t)walk->conn - (walk->sends ? insn->tx : insn->rx);
	int32_t turns = (int32_t)insn_turns(insn);
	int8_t step = insn->conn_step;

	*turn = 0;
	if (!(insn->op & op))
		return 0;
	if (insn->op & fan)
		return offset >= 0 && offset < insn->reps;
	if (turns == 1 || !step)
		return offset ? 0 : (uint32_t)turns;
	if (step == 1 || step == -1)
		offset *= step;
	else if (offset % step)
		return 0;
	else
		offset /= step;
	*turn = (uint32_t)offset;
	return offset >= 0 && offset < turns;
}

bool walk_on(struct walk *walk)
{
	while (!walk->left && walk->pc < walk->prog->count) {
		walk->insn = &walk->prog->insns[walk->pc++];
		walk->left = insn_uses(walk, walk->insn, &walk->turn);
		walk->first = walk->event + walk->turn;
		walk->event += insn_turns(walk->insn);
	}
	return walk->left;
}

static void walk_take(struct walk *walk, uint32_t count)
{
	walk->first += count;
	walk->turn += count;
	walk->left -= count;
}

enum err pair_next(struct pair *pair, struct encounter *meeting)
{
	struct walk *send = &pair->send, *recv = &pair->recv;
	bool more = walk_on(send);

	meeting->count = 0;
	if (walk_on(recv) && !more)
		return err_set(ERR_USAGE,
			"rank %u lane %u instruction %u receives from rank %u, which "
			"sends nothing more",
			pair->to, pair->lane, recv->pc - 1, pair->from);
	if (more && !recv->left)
		return err_set(ERR_USAGE,
			"rank %u lane %u sends to rank %u, which never receives",
			pair->from, pair->lane, pair->to);
	if (!more)
		return OK;
	if (send->insn->count != recv->insn->count)
		return err_set(ERR_USAGE,
			"rank %u lane %u instruction %u receives %u chunks, rank %u "
			"sends another number",
			pair->to, pair->lane, recv->pc - 1, recv->insn->count,
			pair->from);
	*meeting = (struct encounter){.send = send->insn,
		.recv = recv->insn,
		.sent = send->first,
		.received = recv->first,
		.sent_turn = send->turn,
		.recv_turn = recv->turn,
		.count = send->left < recv->left ? send->left : recv->left};
	walk_take(send, meeting->count);
	walk_take(recv, meeting->count);
	return OK;
}

/* The sender's value stands in a buffer that keeps it: peers may read it there. */
static bool is_lendable(const struct insn *insn)
{
	if (insn->op & OUT_DST)
		return insn_dst_space(insn) == SPACE_OUT;
	/* a value that exists only after an operator stands nowhere */
	return (insn->op & (IN_SRC | IN_RECV | IN_ACC | OP_POST)) == IN_SRC &&
	       insn_src_space(insn) != SPACE_TMP;
}

/* The receiver only copies: the sender may write the destination itself. */
static bool is_landable(const struct insn *insn)
{
	return (insn->op & (IN_SRC | IN_RECV | IN_ACC | FAN_IN | OUT_DST)) ==
		       (IN_RECV | OUT_DST) &&
	       insn_dst_space(insn) == SPACE_OUT;
}

static bool is_lent(const struct insn *send)
{
	return !(send->spaces & SPACES_PUSH) && is_lendable(send);
}

static bool may_land(const struct insn *recv, enum lower_mode mode)
{
	return mode == MODE_DIRECT && is_landable(recv);
}

enum how pair_how(const struct pair *pair, const struct encounter *meeting,
	const struct lower_args *args)
{
	if (ranks_are_apart(args->hosts, pair->from, pair->to))
		return HOW_SENT;
	if (args->mode == MODE_STAGED)
		return HOW_STAGED;
	if (is_lent(meeting->send))
		return HOW_LENT;
	return may_land(meeting->recv, args->mode) ? HOW_LANDED : HOW_STAGED;
}

bool insn_stands_in_source(const struct insn *insn)
{
	return (insn->op & (IN_SRC | IN_RECV | IN_ACC | OUT_DST | OP_POST)) == IN_SRC;
}

bool insn_stands(const struct insn *insn)
{
	return insn->op & OUT_DST || insn_stands_in_source(insn) ||
	       (insn->op & (IN_SRC | IN_RECV | IN_ACC | OP_POST)) == IN_ACC;
}

/* An instruction that reads or writes a vector says which chunk its value is of. */
static uint16_t insn_chunk(
	const struct sched *sched, const struct insn *insn, uint32_t turn)
{
	if (insn->op & IN_SRC && insn_src_space(insn) != SPACE_TMP)
		return sched_chunk(sched, insn, true, turn);
	if (insn->op & (OUT_DST | IN_ACC) && insn_dst_space(insn) != SPACE_TMP)
		return sched_chunk(sched, insn, false, turn);
	return CHUNK_ANY;
}

uint16_t pair_chunk(const struct pair *pair, const struct sched *scheds,
	const struct encounter *meeting, uint32_t k)
{
	const struct sched *from = &scheds[pair->from], *to = &scheds[pair->to];
	uint16_t chunk = CHUNK_ANY;

	if (!coll_is_vector(from->coll))
		return CHUNK_ANY; /* blocks are all of one length */
	chunk = insn_chunk(from, meeting->send, meeting->sent_turn + k);
	return chunk != CHUNK_ANY ? chunk
				  : insn_chunk(to, meeting->recv, meeting->recv_turn + k);
}

bool insn_takes_slot(const struct insn *send, enum how how)
{
	return how == HOW_STAGED || (how == HOW_SENT && !insn_stands(send));
}

bool lane_may_stage(const struct prog *prog)
{
	for (uint32_t i = 0; i < prog->count; i++)
		if (prog->insns[i].op & OUT_SEND && !is_lent(&prog->insns[i]))
			return true;
	return false;
}

bool lane_may_be_staged_to(const struct prog *prog, enum lower_mode mode)
{
	for (uint32_t i = 0; i < prog->count; i++)
		if (prog->insns[i].op & IN_RECV && !may_land(&prog->insns[i], mode))
			return true;
	return false;
}
