#include "sched/text_read.h"

#include <stdlib.h>
#include <string.h>

struct cursor {
	const char *at;
	uint32_t line;
	struct text_family *family;
	uint32_t rank, lane; /* whose instructions come next; lane + 1 heads were read */
	bool headed;
};

static enum err bad(const struct cursor *cur, const char *what)
{
	return err_set(ERR_ARGUMENT, "schedule text, line %u: %s", cur->line, what);
}

static void skip_blanks(struct cursor *cur)
{
	while (*cur->at == ' ' || *cur->at == '\t')
		cur->at++;
}

static bool at_line_end(const struct cursor *cur)
{
	return *cur->at == '\n' || *cur->at == '\0';
}

/* Take `word` if it comes next, as a whole word where it ends in a letter. */
static bool take(struct cursor *cur, const char *word)
{
	size_t length = strlen(word);
	char last = word[length - 1], next;

	skip_blanks(cur);
	if (strncmp(cur->at, word, length))
		return false;
	next = cur->at[length];
	if (last >= 'a' && last <= 'z' && ((next >= 'a' && next <= 'z') || next == '_'))
		return false;
	cur->at += length;
	return true;
}

static bool take_number(struct cursor *cur, uint32_t max, uint32_t *number)
{
	uint32_t value = 0;

	skip_blanks(cur);
	if (*cur->at < '0' || *cur->at > '9')
		return false;
	for (; *cur->at >= '0' && *cur->at <= '9'; cur->at++) {
		value = 10 * value + (uint32_t)(*cur->at - '0');
		if (value > max)
			return false;
	}
	*number = value;
	return true;
}

/* A step with its sign, as in chunk-1. */
static bool take_step(struct cursor *cur, int8_t *step)
{
	bool negative = *cur->at == '-';
	uint32_t number;

	if (*cur->at != '-' && *cur->at != '+')
		return false;
	cur->at++;
	if (*cur->at < '0' || *cur->at > '9' ||
		!take_number(cur, INT8_MAX + (negative ? 1u : 0u), &number))
		return false;
	*step = (int8_t)(negative ? -(int)number : (int)number);
	return true;
}

static bool take_space(struct cursor *cur, enum space *space)
{
	static const char *const names[SPACE_COUNT] = {"in", "out", "tmp"};

	for (int i = 0; i < SPACE_COUNT; i++)
		if (take(cur, names[i])) {
			*space = (enum space)i;
			return true;
		}
	return false;
}

static bool take_chunk(struct cursor *cur, uint16_t *chunk)
{
	uint32_t number;

	if (*cur->at != '[')
		return false;
	cur->at++;
	if (!take_number(cur, UINT16_MAX, &number) || *cur->at != ']')
		return false;
	cur->at++;
	*chunk = (uint16_t)number;
	return true;
}

/* recv, recvs, send, sends, each with #N or without. */
static bool take_connection(
	struct cursor *cur, const char *const words[2], bool *fan, uint8_t *first)
{
	uint32_t number = 0;

	*fan = take(cur, words[1]);
	if (!*fan && !take(cur, words[0]))
		return false;
	if (*cur->at == '#') {
		cur->at++;
		if (!take_number(cur, PROG_PEERS_MAX - 1, &number))
			return false;
	}
	*first = (uint8_t)number;
	return true;
}

/* What an instruction packs into bits, while it is read. */
struct operands {
	enum space src, dst;
	bool fan;
};

static enum err read_input(struct cursor *cur, struct insn *insn, struct operands *op)
{
	static const char *const words[2] = {"recv", "recvs"};

	if (!insn->op && take(cur, "acc")) {
		if (!take_space(cur, &op->dst) || !take_chunk(cur, &insn->dst))
			return bad(cur, "acc needs a place, like out[0]");
		insn->op |= IN_ACC;
	} else if (!(insn->op & (IN_SRC | IN_RECV)) && take_space(cur, &op->src)) {
		if (!take_chunk(cur, &insn->src))
			return bad(cur, "a space needs a chunk, like in[0]");
		insn->op |= IN_SRC;
	} else if (!(insn->op & IN_RECV) &&
		   take_connection(cur, words, &op->fan, &insn->rx)) {
		insn->op |= (uint8_t)(op->fan ? IN_RECV | FAN_IN : IN_RECV);
	} else {
		return bad(cur, "expected acc, a place or recv, in that order");
	}
	return OK;
}

static enum err read_output(struct cursor *cur, struct insn *insn, struct operands *op)
{
	static const char *const words[2] = {"send", "sends"};
	enum space was = op->dst;
	uint16_t chunk = insn->dst;

	if (!(insn->op & (OUT_DST | OUT_SEND)) && take_space(cur, &op->dst)) {
		if (!take_chunk(cur, &insn->dst))
			return bad(cur, "a space needs a chunk, like out[0]");
		if (insn->op & IN_ACC && (was != op->dst || chunk != insn->dst))
			return bad(cur, "acc and the destination differ");
		insn->op |= OUT_DST;
	} else if (!(insn->op & OUT_SEND) &&
		   take_connection(cur, words, &op->fan, &insn->tx)) {
		insn->op |= (uint8_t)(op->fan ? OUT_SEND | FAN_OUT : OUT_SEND);
	} else {
		return bad(cur, "expected a place or send, in that order");
	}
	return OK;
}

static enum err read_operands(struct cursor *cur, struct insn *insn)
{
	struct operands op = {SPACE_IN, SPACE_IN, false};
	enum err e;

	do {
		e = read_input(cur, insn, &op);
	} while (!e && take(cur, "+"));
	if (e)
		return e;
	if (!take(cur, "->"))
		return bad(cur, "expected ->");
	do {
		e = read_output(cur, insn, &op);
	} while (!e && take(cur, ","));
	insn->spaces = insn_spaces(op.src, op.dst);
	return e;
}

/* One word behind the operands. */
static enum err read_option(struct cursor *cur, struct insn *insn)
{
	uint32_t a = 0, b = 0;

	if (*cur->at == 'x') {
		cur->at++;
		if (insn->reps != 1 || !take_number(cur, UINT16_MAX, &a) || !a)
			return bad(cur, "x needs a number of repetitions");
		insn->reps = (uint16_t)a;
	} else if (take(cur, "count")) {
		if (insn->count != 1 || !take_number(cur, UINT16_MAX, &a) || !a)
			return bad(cur, "count needs a number of chunks");
		insn->count = (uint16_t)a;
	} else if (take(cur, "chunk")) {
		if (insn->stride || !take_step(cur, &insn->stride))
			return bad(cur, "chunk needs a step, like chunk-1");
	} else if (insn->op & FAN_IN && take(cur, "own")) {
		if (insn->stride || !take(cur, "+") || !take_number(cur, UINT8_MAX, &a) ||
			!a)
			return bad(cur, "own needs a place among recvs, like own+2");
		insn->stride = (int8_t)(uint8_t)a;
	} else if (take(cur, "peer")) {
		if (insn->conn_step || !take_step(cur, &insn->conn_step))
			return bad(cur, "peer needs a step, like peer+1");
	} else if (!(insn->op & OP_POST) && take(cur, "post")) {
		insn->op |= OP_POST;
	} else if (!(insn->spaces & SPACES_PUSH) && take(cur, "push")) {
		insn->spaces |= SPACES_PUSH;
	} else if (insn->wait_lane == WAIT_NONE && take(cur, "after")) {
		if (!take_number(cur, SCHED_LANES_MAX - 1, &a) || !take(cur, ".") ||
			!take_number(cur, UINT8_MAX, &b))
			return bad(cur, "after needs a lane and a count, like 0.1");
		insn->wait_lane = (uint8_t)a;
		insn->wait_pc = (uint8_t)b;
	} else {
		return bad(cur, "a word that is not known here, or is there twice");
	}
	return OK;
}

static enum err read_insn(struct cursor *cur)
{
	struct insn insn = {.count = 1, .reps = 1, .wait_lane = WAIT_NONE};
	struct prog *prog;
	uint32_t number;
	enum err e;

	if (!cur->headed)
		return bad(cur, "an instruction before the first head");
	prog = &cur->family->scheds[cur->rank].lanes[cur->lane];
	if (!take_number(cur, PROG_INSNS_MAX, &number) || number != prog->count)
		return bad(cur, "instructions must be numbered from 0");
	e = read_operands(cur, &insn);
	for (skip_blanks(cur); !e && !at_line_end(cur); skip_blanks(cur))
		e = read_option(cur, &insn);
	return e ? e : prog_emit(prog, &insn);
}

static enum err read_peers(struct cursor *cur, struct prog *prog, bool rx)
{
	uint32_t *count = rx ? &prog->rx_count : &prog->tx_count, peer;

	if (!take(cur, ",") || !take(cur, rx ? "rx" : "tx"))
		return bad(cur, "a head must name its peers: rx .., tx ..");
	if (take(cur, "-"))
		return OK;
	do {
		uint32_t before = *count;

		if (before == PROG_PEERS_MAX ||
			!take_number(cur, cur->family->rank_count - 1, &peer))
			return bad(cur, "peers are ranks, or -");
		if (rx)
			prog_rx(prog, peer);
		else
			prog_tx(prog, peer);
		if (prog->failed)
			return err_set(ERR_SYSTEM, "no memory for a peer");
		if (*count == before)
			return bad(cur, "the same peer twice");
		skip_blanks(cur);
	} while (*cur->at != ',' && !at_line_end(cur));
	return OK;
}

/* What every head repeats; read into a fresh schedule. */
static enum err read_title(struct cursor *cur, char *name, struct sched *sched)
{
	size_t length = strcspn(cur->at, " \t\n,");
	char word[TEXT_NAME_MAX];

	if (!length || length >= TEXT_NAME_MAX)
		return bad(cur, "a head begins with the name of the schedule");
	memcpy(name, cur->at, length);
	name[length] = '\0';
	cur->at += length;
	skip_blanks(cur);
	length = strcspn(cur->at, " \t\n,");
	if (length >= TEXT_NAME_MAX)
		return bad(cur, "no such collective");
	memcpy(word, cur->at, length);
	word[length] = '\0';
	cur->at += length;
	sched->coll = coll_find(word);
	if (sched->coll == COLL_COUNT)
		return bad(cur, "no such collective");
	if (!take(cur, ",") || !take(cur, "rank") ||
		!take_number(cur, TEXT_RANKS_MAX - 1, &sched->rank) || !take(cur, "of") ||
		!take_number(cur, TEXT_RANKS_MAX, &sched->rank_count) ||
		sched->rank >= sched->rank_count)
		return bad(cur, "expected rank R of N");
	if (coll_has_root(sched->coll) &&
		(!take(cur, ",") || !take(cur, "root") ||
			!take_number(cur, sched->rank_count - 1, &sched->root)))
		return bad(cur, "expected the root");
	if (!take(cur, ",") || !take(cur, "chunks") ||
		!take_number(cur, UINT16_MAX, &sched->chunk_count) || !sched->chunk_count)
		return bad(cur, "expected the number of chunks");
	return OK;
}

/* The first head says how many ranks there are and what the others must repeat. */
static enum err read_first(
	struct cursor *cur, const char *name, const struct sched *title)
{
	struct text_family *family = cur->family;

	family->scheds = calloc(title->rank_count, sizeof(*family->scheds));
	if (!family->scheds)
		return err_set(
			ERR_SYSTEM, "no memory for %u schedules", title->rank_count);
	family->rank_count = title->rank_count;
	memcpy(family->name, name, TEXT_NAME_MAX);
	return OK;
}

/* ", tmp N" where there is one. */
static bool read_tmp(struct cursor *cur, uint32_t *tmp)
{
	const char *before = cur->at;

	if (take(cur, ",") && take(cur, "tmp"))
		return take_number(cur, UINT16_MAX, tmp);
	cur->at = before;
	return true;
}

static enum err read_head(struct cursor *cur)
{
	struct text_family *family = cur->family;
	struct sched title = {0}, *sched;
	char name[TEXT_NAME_MAX] = "";
	uint32_t tmp = 0, lane;
	bool next_rank;
	enum err e = read_title(cur, name, &title);

	if (!e && !cur->headed)
		e = read_first(cur, name, &title);
	if (e)
		return e;
	next_rank = !cur->headed || title.rank == cur->rank + 1;
	if (strcmp(name, family->name) || title.rank_count != family->rank_count ||
		(!next_rank && title.rank != cur->rank) || (!cur->headed && title.rank) ||
		(cur->headed &&
			(title.coll != family->scheds[0].coll ||
				title.root != family->scheds[0].root ||
				title.chunk_count != family->scheds[0].chunk_count)))
		return bad(cur, "a head that does not follow the one before");
	sched = &family->scheds[title.rank];
	if (!read_tmp(cur, &tmp))
		return bad(cur, "tmp needs a number of chunks");
	if (next_rank) {
		*sched = title;
		sched->tmp_count = tmp;
	}
	if (tmp != sched->tmp_count || !take(cur, ",") || !take(cur, "lane") ||
		!take_number(cur, SCHED_LANES_MAX - 1, &lane) ||
		lane != sched->lane_count)
		return bad(cur, "lanes must be numbered from 0 and agree about tmp");
	sched->lane_count++;
	cur->rank = title.rank;
	cur->lane = lane;
	cur->headed = true;
	e = read_peers(cur, &sched->lanes[lane], true);
	return e ? e : read_peers(cur, &sched->lanes[lane], false);
}

static enum err read_line(struct cursor *cur)
{
	enum err e;

	if (*cur->at == '#') {
		cur->at += strcspn(cur->at, "\n");
		return OK;
	}
	skip_blanks(cur);
	if (at_line_end(cur))
		return OK;
	e = *cur->at >= '0' && *cur->at <= '9' ? read_insn(cur) : read_head(cur);
	if (e)
		return e;
	skip_blanks(cur);
	return at_line_end(cur) ? OK : bad(cur, "something follows the end of the line");
}

enum err text_read(const char *text, struct text_family *family)
{
	struct text_family f = {.name = ""};
	struct cursor cur = {.at = text, .line = 1, .family = &f};
	enum err e = OK;

	while (!e && *cur.at) {
		e = read_line(&cur);
		if (!e && *cur.at == '\n') {
			cur.at++;
			cur.line++;
		}
	}
	if (!e && (!cur.headed || cur.rank + 1 != f.rank_count))
		e = bad(&cur, "the text ends before the last rank");
	if (e) {
		text_family_fini(&f);
		return e;
	}
	*family = f;
	return OK;
}

void text_family_fini(struct text_family *family)
{
	for (uint32_t r = 0; family->scheds && r < family->rank_count; r++)
		sched_fini(&family->scheds[r]);
	free(family->scheds);
	*family = (struct text_family){.name = ""};
}
