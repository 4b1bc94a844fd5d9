#include "exec/host/tell.h"

/* So many messages a move has with that rank. */
static uint32_t move_count(const struct program *program, const struct move *move,
	const struct host_message *message)
{
	uint32_t count = 0;

	for (uint32_t i = 0; message->is_send && i < move->sent_count; i++)
		count += program->sents[move->sent_first + i].rank == message->peer;
	for (uint32_t i = 0; !message->is_send && i < move->wait_count; i++) {
		const struct wait *wait = &program->waits[move->wait_first + i];

		count += wait->kind == WAIT_DATA && wait->rank == message->peer;
	}
	return count;
}

void *tell_began(const struct host_call *call, struct host_message *message)
{
	const struct host_teller *teller = call->engine->teller;
	const struct program *program = call->shape->program;
	const struct lane_moves *moves = &program->lanes[message->lane];
	uint32_t count = 0;

	if (!teller || !call->spec->told)
		return NULL;
	for (uint32_t i = 0; i < moves->count; i++)
		count += move_count(program, &moves->moves[i], message);
	message->count = count * call->shape->tile_count;
	return teller->began(call->spec->told, message);
}

void tell_over(const struct host_teller *teller, void *told)
{
	if (told)
		teller->over(told);
}
