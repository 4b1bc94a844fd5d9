#include "sched/text.h"

static const char *const space_names[] = {"in", "out", "tmp", "stage"};

static void print_peers(
	FILE *file, const char *what, const uint16_t *peers, uint32_t count)
{
	fprintf(file, ", %s", what);
	for (uint32_t i = 0; i < count; i++)
		fprintf(file, " %u", peers[i]);
	if (!count)
		fputs(" -", file);
}

static void print_head(
	FILE *file, const char *name, const struct sched *sched, uint32_t lane)
{
	const struct prog *prog = &sched->lanes[lane];

	fprintf(file, "%s %s, rank %u of %u", name, coll_name(sched->coll), sched->rank,
		sched->rank_count);
	if (coll_has_root(sched->coll))
		fprintf(file, ", root %u", sched->root);
	fprintf(file, ", chunks %u", sched->chunk_count);
	if (sched->tmp_count)
		fprintf(file, ", tmp %u", sched->tmp_count);
	fprintf(file, ", lane %u", lane);
	print_peers(file, "rx", prog->rx_peers, prog->rx_count);
	print_peers(file, "tx", prog->tx_peers, prog->tx_count);
	fputc('\n', file);
}

static void print_connection(FILE *file, const char *what, bool fan, uint32_t first)
{
	fprintf(file, "%s%s", what, fan ? "s" : "");
	if (first)
		fprintf(file, "#%u", first);
}

static void print_operands(FILE *file, const struct insn *insn)
{
	const char *src = space_names[insn_src_space(insn)];
	const char *dst = space_names[insn_dst_space(insn)];
	const char *between = "";

	if (insn->op & IN_ACC) {
		fprintf(file, "acc %s[%u]", dst, insn->dst);
		between = " + ";
	}
	if (insn->op & IN_SRC) {
		fprintf(file, "%s%s[%u]", between, src, insn->src);
		between = " + ";
	}
	if (insn->op & IN_RECV) {
		fputs(between, file);
		print_connection(file, "recv", insn->op & FAN_IN, insn->rx);
	}
	fputs(" -> ", file);
	if (insn->op & OUT_DST)
		fprintf(file, "%s[%u]%s", dst, insn->dst,
			insn->op & OUT_SEND ? ", " : "");
	if (insn->op & OUT_SEND)
		print_connection(file, "send", insn->op & FAN_OUT, insn->tx);
}

void text_print_insn(FILE *file, const struct insn *insn)
{
	const char *gap = "  "; /* two blanks before the first word, one between them */

	print_operands(file, insn);
	if (insn->reps != 1) {
		fprintf(file, "%sx%u", gap, insn->reps);
		gap = " ";
	}
	if (insn->count != 1) {
		fprintf(file, "%scount %u", gap, insn->count);
		gap = " ";
	}
	if (insn->stride) {
		if (insn->op & FAN_IN)
			fprintf(file, "%sown+%u", gap, insn_own(insn));
		else
			fprintf(file, "%schunk%+d", gap, insn->stride);
		gap = " ";
	}
	if (insn->conn_step) {
		fprintf(file, "%speer%+d", gap, insn->conn_step);
		gap = " ";
	}
	if (insn->op & OP_POST) {
		fprintf(file, "%spost", gap);
		gap = " ";
	}
	if (insn->spaces & SPACES_PUSH) {
		fprintf(file, "%spush", gap);
		gap = " ";
	}
	if (insn->wait_lane != WAIT_NONE)
		fprintf(file, "%safter %u.%u", gap, insn->wait_lane, insn->wait_pc);
}

void text_print_sched(FILE *file, const char *name, const struct sched *sched)
{
	for (uint32_t lane = 0; lane < sched->lane_count; lane++) {
		print_head(file, name, sched, lane);
		for (uint32_t i = 0; i < sched->lanes[lane].count; i++) {
			fprintf(file, "%2u  ", i);
			text_print_insn(file, &sched->lanes[lane].insns[i]);
			fputc('\n', file);
		}
	}
}

static void print_place(FILE *file, const struct program *program,
	const struct place *place, uint32_t count)
{
	if (place->space == PLACE_STAGE)
		fprintf(file, "stage[%u.%u:%u]", place->lane, place->group, place->chunk);
	else if (place->space == PLACE_INBOX || place->space == PLACE_INBOX_IN)
		fprintf(file, "inbox[%u%s]", place->lane,
			place->space == PLACE_INBOX ? "" : " in");
	else if (count > 1)
		fprintf(file, "%s[%u..%u]", space_names[place->space], place->chunk,
			place->chunk + count - 1);
	else
		fprintf(file, "%s[%u]", space_names[place->space], place->chunk);
	if (place->rank != program->rank)
		fprintf(file, " of rank %u", place->rank);
}

static void print_wait(
	FILE *file, const struct program *program, const struct wait *wait, bool first)
{
	fputs(first ? "wait" : ",", file);
	if (wait->kind == WAIT_SENT)
		fputs(" sent to", file);
	if (wait->rank != program->rank)
		fprintf(file, " rank %u", wait->rank);
	if (program->lane_count > 1 || wait->rank == program->rank)
		fprintf(file, " lane %u", wait->lane);
	fprintf(file, " at %u", wait->position);
	if (wait->back)
		fprintf(file, " %u tile%s back", wait->back, wait->back > 1 ? "s" : "");
}

static void print_sents(
	FILE *file, const struct program *program, const struct move *move)
{
	if (!move->sent_count)
		return;
	fputs(move->output_count ? "; send " : "send ", file);
	print_place(file, program,
		&program->places[program->sents[move->sent_first].place], move->count);
	for (uint32_t i = 0; i < move->sent_count; i++)
		fprintf(file, "%s rank %u", i ? "," : " to",
			program->sents[move->sent_first + i].rank);
}

static void print_move(
	FILE *file, const struct program *program, const struct move *move, uint32_t at)
{
	const struct place *in = &program->places[move->input_first];
	const struct place *out = &program->places[move->output_first];

	for (uint32_t i = 0; i < move->wait_count; i++)
		print_wait(file, program, &program->waits[move->wait_first + i], !i);
	if (move->wait_count)
		fputs("; ", file);
	for (uint32_t i = 0; i < move->input_count; i++) {
		fputs(i ? " + " : "", file);
		print_place(file, program, &in[i], move->count);
	}
	for (uint32_t i = 0; i < move->output_count; i++) {
		fputs(i ? ", " : " -> ", file);
		print_place(file, program, &out[i], move->count);
	}
	if (move->op & OP_POST && move->output_count)
		fputs(" post", file);
	print_sents(file, program, move);
	if ((move->output_count || move->sent_count) && move->publish)
		fputs("; ", file);
	if (move->publish)
		fprintf(file, "publish %u", at + 1);
	else if (!move->output_count && !move->sent_count)
		fputs("pass", file); /* counted by a later announcement */
	fputc('\n', file);
}

void text_print_program(FILE *file, const struct program *program)
{
	for (uint32_t lane = 0; lane < program->lane_count; lane++) {
		fprintf(file, "%s, rank %u of %u, lane %u\n", coll_name(program->coll),
			program->rank, program->rank_count, lane);
		for (uint32_t i = 0; i < program->lanes[lane].count; i++) {
			fprintf(file, "%2u  ", i);
			print_move(file, program, &program->lanes[lane].moves[i], i);
		}
	}
	if (!program->drain_count)
		return;
	fputs("drain  ", file);
	for (uint32_t i = 0; i < program->drain_count; i++)
		print_wait(file, program, &program->waits[program->drain_first + i], !i);
	fputc('\n', file);
}
