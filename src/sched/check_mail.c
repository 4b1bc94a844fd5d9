#include "sched/check_mail.h"

#include <stdlib.h>

#include "sched/pair.h"

enum { LETTERS_MIN = 8 };

enum err mail_init(struct mail *mail, struct program *const *programs,
	const struct check_args *args, struct mem *mem)
{
	uint32_t total = 0;
	struct mail made = {.programs = programs,
		.hosts = args->hosts,
		.mem = mem,
		.rank_count = args->rank_count};

	made.first = calloc(args->rank_count, sizeof(*made.first));
	if (!made.first)
		return err_set(
			ERR_SYSTEM, "no memory to check %u ranks", args->rank_count);
	for (uint32_t r = 0; r < args->rank_count; r++) {
		made.first[r] = total;
		total += programs[r]->net_tx_count;
	}
	made.flows = calloc(total + 1u, sizeof(*made.flows));
	if (!made.flows) {
		free(made.first);
		return err_set(ERR_SYSTEM, "no memory for %u connections", total);
	}
	*mail = made;
	return OK;
}

void mail_fini(struct mail *mail)
{
	uint32_t last = mail->rank_count - 1;

	for (uint32_t i = 0;
		mail->flows && i < mail->first[last] + mail->programs[last]->net_tx_count;
		i++)
		free(mail->flows[i].letters);
	free(mail->flows);
	free(mail->first);
	*mail = (struct mail){0};
}

static struct flow *flow_find(
	const struct mail *mail, uint32_t from, uint32_t lane, uint32_t to)
{
	const struct program *program = mail->programs[from];

	for (uint32_t i = 0; i < program->net_tx_count; i++)
		if (program->net_tx[i].rank == to && program->net_tx[i].lane == lane)
			return &mail->flows[mail->first[from] + i];
	return NULL;
}

static bool is_inbox(const struct place *place)
{
	return place->space == PLACE_INBOX || place->space == PLACE_INBOX_IN;
}

static const char *judge_places(const struct mail *mail, const struct program *program,
	uint32_t first, uint32_t count)
{
	for (uint32_t i = first; i < first + count; i++) {
		const struct place *place = &program->places[i];

		if (is_inbox(place) !=
			ranks_are_apart(mail->hosts, place->rank, program->rank))
			return is_inbox(place) ? "has an inbox for its own host"
					       : "reaches into another host's memory";
	}
	return NULL;
}

const char *mail_judge(
	const struct mail *mail, const struct program *program, const struct move *move)
{
	const char *what = judge_places(
		mail, program, move->input_first, move->input_count);

	if (!what)
		what = judge_places(
			mail, program, move->output_first, move->output_count);
	for (uint32_t i = 0; i < move->wait_count && !what; i++) {
		const struct wait *wait = &program->waits[move->wait_first + i];

		if (wait->kind == WAIT_ACK &&
			ranks_are_apart(mail->hosts, wait->rank, program->rank))
			what = "waits for a position of another host";
	}
	for (uint32_t i = 0; i < move->sent_count && !what; i++) {
		const struct sent *sent = &program->sents[move->sent_first + i];

		if (program->places[sent->place].rank != program->rank)
			what = "sends what is another rank's";
		else if (!ranks_are_apart(mail->hosts, sent->rank, program->rank))
			what = "sends over the network within its host";
	}
	return what;
}

bool mail_is_data(
	const struct mail *mail, const struct program *program, const struct wait *wait)
{
	return wait->kind == WAIT_DATA &&
	       ranks_are_apart(mail->hosts, wait->rank, program->rank);
}

static bool flow_grow(struct flow *flow)
{
	uint32_t room = flow->room ? 2 * flow->room : LETTERS_MIN;
	struct posting *letters;

	if (flow->count < flow->room)
		return true;
	letters = realloc(flow->letters, room * sizeof(*letters));
	if (!letters)
		return false;
	flow->letters = letters;
	flow->room = room;
	return true;
}

/* One message of a move. */
static const char *send_one(struct mail *mail, const struct program *program,
	const struct move *move, const struct sent *sent, const struct access *access)
{
	uint32_t lane = access->lane % mail->mem->lane_max;
	const struct place *place = &program->places[sent->place];
	struct flow *flow = flow_find(mail, program->rank, lane, sent->rank);
	struct posting letter = {.position = access->pos,
		.tile = access->tile,
		.number = mem_letter(mail->mem, access->lane),
		.chunk = sent->chunk,
		.move = move,
		.place = place};
	const char *what = NULL;

	if (!flow)
		return "sends over a connection it does not list";
	if (!flow_grow(flow)) {
		mail->mem->out_of_memory = true;
		return NULL;
	}
	flow->letters[flow->count++] = letter;
	for (uint32_t c = 0; c < move->count && !what; c++)
		what = mem_send(mail->mem,
			mem_cell(mail->mem, place, program->rank, access->tile, c),
			letter.number, access);
	return what;
}

const char *mail_send(struct mail *mail, const struct program *program,
	const struct move *move, const struct access *access)
{
	const char *what = NULL;

	for (uint32_t i = 0; i < move->sent_count && !what; i++)
		what = send_one(mail, program, move,
			&program->sents[move->sent_first + i], access);
	return what;
}

bool mail_has(const struct mail *mail, const struct program *program,
	const struct wait *wait, uint32_t position)
{
	const struct flow *flow = flow_find(mail, wait->rank, wait->lane, program->rank);

	return flow && flow->count > flow->taken &&
	       flow->letters[flow->count - 1].position >= position;
}

const char *mail_take(struct mail *mail, const struct program *program,
	const struct wait *wait, const struct posting *like, const struct access *access)
{
	struct flow *flow = flow_find(mail, wait->rank, wait->lane, program->rank);
	const struct posting *letter = &flow->letters[flow->taken++];
	const struct place inbox = {
		.rank = wait->rank, .space = PLACE_INBOX, .lane = wait->lane};
	const char *what = NULL;

	if (letter->position != like->position)
		return "takes another message than it waits for";
	if (letter->move->count != like->move->count || letter->chunk != like->chunk)
		return "takes a message of another length";
	if (letter->move->count > program->inbox_chunks)
		return "takes more than its inbox holds";
	for (uint32_t c = 0; c < letter->move->count && !what; c++) {
		uint32_t to = mem_cell(mail->mem, &inbox, program->rank, access->tile, c);

		if (to == MEM_NOWHERE)
			return "has no inbox for what it takes";
		what = mem_carry(mail->mem,
			mem_cell(mail->mem, letter->place, wait->rank, letter->tile, c),
			to, access);
	}
	return what;
}

bool mail_has_left(const struct mail *mail, const struct program *program,
	const struct wait *wait, uint32_t position)
{
	const struct flow *flow = flow_find(mail, program->rank, wait->lane, wait->rank);

	if (!flow)
		return false;
	return flow->taken == flow->count ||
	       flow->letters[flow->taken].position > position;
}

void mail_cover(struct mail *mail, const struct program *program, const struct wait *wait,
	uint32_t position, const struct access *access)
{
	struct flow *flow = flow_find(mail, program->rank, wait->lane, wait->rank);
	uint32_t lane = access->lane % mail->mem->lane_max;
	uint32_t *covered = &flow->covered[lane];

	for (; *covered < flow->taken; ++*covered) {
		const struct posting *letter = &flow->letters[*covered];

		if (letter->position > position)
			return;
		mail->mem->letters[letter->number].learned[lane] = access->pos;
	}
}

const char *mail_leave(const struct mail *mail, const struct program *program)
{
	for (uint32_t i = 0; i < program->net_tx_count; i++) {
		const struct flow *flow = &mail->flows[mail->first[program->rank] + i];
		uint32_t covered = 0;

		for (uint32_t lane = 0; lane < SCHED_LANES_MAX; lane++)
			if (flow->covered[lane] > covered)
				covered = flow->covered[lane];
		if (flow->taken < flow->count)
			return "sends what is never taken";
		if (covered < flow->count)
			return "returns while a message may still be leaving";
	}
	return NULL;
}
