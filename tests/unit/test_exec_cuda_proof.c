/* What the GPU is given is what is proved: the lists of all schedules are read back from
 * the bytes that go to the device, as programs, and the checker proves those. What it
 * does not know of the device is looked at here: that moves keep no order among each
 * other, who is told of a step, and how long a message with flags is. */
#include <sys/wait.h>
#include <unistd.h>

#include "device_lists.h"
#include "sched/check_mem.h"
#include "test.h"

enum { RANKS = 64, DEPTH = 4, MANY = 0x7fffffff };

/* The programs that were read, and the schedules that say what they are for. */
struct proof {
	const struct sched_kind *kind;
	uint32_t n, root;
	struct sched scheds[RANKS];
	struct program programs[RANKS];
	struct program *list[RANKS];
};

static struct proof proof;

static void proof_begin(const struct sched_kind *kind, uint32_t n, uint32_t root)
{
	memset(&proof, 0, sizeof(proof));
	proof.kind = kind;
	proof.n = n;
	proof.root = root;
	for (uint32_t r = 0; r < n; r++) {
		EQ(catalog_write(kind, n, r, root, &proof.scheds[r]), OK);
		proof.programs[r] = (struct program){.coll = kind->coll,
			.rank_count = n,
			.rank = r,
			.root = root,
			.chunk_count = proof.scheds[r].chunk_count,
			.lane_count = 1,
			.depth = 1};
		proof.list[r] = &proof.programs[r];
	}
}

/* Room for all that a rank's list can hold. */
static void program_room(
	struct program *program, uint32_t moves, uint32_t places, uint32_t waits)
{
	program->places = calloc(places + 1, sizeof(*program->places));
	program->waits = calloc(waits + 1, sizeof(*program->waits));
	for (uint32_t l = 0; l < program->lane_count; l++)
		program->lanes[l].moves = calloc(moves + 1, sizeof(struct move));
}

static void proof_end(void)
{
	for (uint32_t r = 0; r < proof.n; r++) {
		for (uint32_t l = 0; l < SCHED_LANES_MAX; l++)
			free(proof.programs[r].lanes[l].moves);
		free(proof.programs[r].places);
		free(proof.programs[r].waits);
		sched_fini(&proof.scheds[r]);
	}
}

static struct check_args args_of(enum lower_mode mode, uint32_t depth, bool in_place)
{
	return (struct check_args){.kind = proof.kind,
		.rank_count = proof.n,
		.root = proof.root,
		.mode = mode,
		.depth = depth,
		.in_place = in_place};
}

static void proved(enum lower_mode mode, uint32_t depth, bool in_place)
{
	const struct check_args args = args_of(mode, depth, in_place);
	struct check_report report;
	enum err e = check_programs(proof.scheds, proof.list, &args, &report);

	if (e)
		fprintf(stderr, "%s %s of %u ranks, root %u, %s place: %s\n",
			coll_name(proof.kind->coll), proof.kind->name, proof.n,
			proof.root, in_place ? "in" : "out of", report.text);
	EQ(e, OK);
}

static bool has_in_place(void)
{
	return proof.kind->coll != COLL_ALL_TO_ALL;
}

/* ---- lists of moves ---- */

static void move_read(struct program *program, const struct dev_move *from,
	const struct dev_place *places)
{
	struct lane_moves *lane = &program->lanes[0];

	lane->moves[lane->count++] = (struct move){.op = (uint8_t)from->op,
		.publish = true,
		.count = from->count,
		.input_first = program->place_count,
		.input_count = from->input_count,
		.output_first = program->place_count + from->input_count,
		.output_count = from->output_count,
		.insn = (uint16_t)lane->count};
	for (uint32_t i = 0; i < (uint32_t)from->input_count + from->output_count; i++) {
		const struct dev_place *place = &places[from->first + i];

		program->places[program->place_count++] = (struct place){
			.rank = place->rank,
			.space = place->space,
			.chunk = (uint16_t)place->chunk};
	}
}

static void page_read(struct program *program, const struct dev_page *page)
{
	const struct dev_move *moves = (const struct dev_move *)(page + 1);
	const struct dev_place *places =
		(const struct dev_place *)(moves + page->move_count);

	program_room(program, page->move_count, page->place_count, proof.n);
	for (uint32_t m = 0; m < page->move_count; m++)
		move_read(program, &moves[m], places);
}

/* Ranks leave when all have done their moves: block by block, so the last of them. */
static void ends_meet(struct program *program)
{
	for (uint32_t r = 0; r < proof.n; r++)
		if (r != program->rank && proof.programs[r].lanes[0].count)
			program->waits[program->drain_count++] = (struct wait){
				.rank = (uint16_t)r,
				.kind = WAIT_ACK,
				.position = proof.programs[r].lanes[0].count};
	program->wait_count = program->drain_count;
}

/* Which move, counted from 1, has read a cell and which has written it. */
struct touch {
	uint32_t reader, writer;
};

/* What a move reads no other writes, and what it writes no other touches: blocks do them
 * in any order, and all at once. */
static void places_touch(const struct mem *mem, const struct program *program,
	const struct move *move, uint32_t number, struct touch *touches)
{
	uint32_t inputs = move->input_count;

	for (uint32_t i = 0; i < inputs + move->output_count; i++)
		for (uint32_t c = 0; c < move->count; c++) {
			uint32_t cell = mem_cell(mem,
				&program->places[move->input_first + i], program->rank, 0,
				c);
			struct touch *touch = &touches[cell];

			TRUE(cell < mem->cell_count);
			TRUE(!touch->writer || touch->writer == number);
			if (i >= inputs) {
				TRUE(!touch->reader || touch->reader == number);
				touch->writer = number;
			} else {
				touch->reader = touch->reader && touch->reader != number
							? MANY
							: number;
			}
		}
}

static void order_is_none(bool in_place)
{
	const struct check_args args = args_of(MODE_DIRECT, 1, in_place);
	struct mem mem = {.programs = proof.list, .tile_count = 1, .lane_max = 1};
	struct touch *touches;
	uint32_t number = 0;

	EQ(mem_init(&mem, proof.scheds, &args), OK);
	touches = calloc(mem.cell_count, sizeof(*touches));
	TRUE(touches);
	for (uint32_t r = 0; r < proof.n; r++)
		for (uint32_t m = 0; m < proof.programs[r].lanes[0].count; m++)
			places_touch(&mem, &proof.programs[r],
				&proof.programs[r].lanes[0].moves[m], ++number, touches);
	free(touches);
	mem_fini(&mem);
}

static void pages_are_proved(const struct move_pages *pages, const struct steps_key *key)
{
	enum coll coll = key->kind->coll;
	uint32_t n = key->rank_count;

	proof_begin(key->kind, n, key->root);
	for (uint32_t r = 0; r < n; r++) {
		/* vectors that are cut for the device have a chunk for each rank */
		if (coll_is_vector(coll))
			proof.scheds[r].chunk_count = proof.programs[r].chunk_count = n;
		page_read(&proof.programs[r],
			(const struct dev_page *)((const char *)pages->data +
						  r * pages->page_bytes));
	}
	for (uint32_t r = 0; r < n; r++)
		ends_meet(&proof.programs[r]);
	for (int in_place = 0; in_place <= has_in_place(); in_place++) {
		proved(MODE_DIRECT, 1, in_place);
		order_is_none(in_place);
	}
	proof_end();
}

static void moves_are_proved(const struct sched_kind *kind, uint32_t n, uint32_t root)
{
	const struct steps_key key = {kind, n, root, 1};
	struct move_pages pages;

	EQ(lists_moves(kind->coll, n, root, &pages), OK);
	pages_are_proved(&pages, &key);
	free(pages.data);
}

/* ---- lists of steps ---- */

/* One lane's part of a block, as it is walked. */
struct reading {
	const struct dev_steps *block;
	struct program *program;
	uint32_t lane, page; /* page: its number in the block */
};

static const void *part_at(const struct dev_steps *block, uint32_t at, size_t bytes)
{
	return (const char *)block + at + bytes;
}

static const struct dev_step_place *step_places(
	const struct reading *at, const struct dev_step *step)
{
	return part_at(at->block, at->block->places_at,
		((size_t)at->page * at->block->place_stride + step->place_first) *
			sizeof(struct dev_step_place));
}

static const struct dev_step_wait *step_waits(
	const struct reading *at, const struct dev_step *step)
{
	return part_at(at->block, at->block->waits_at,
		((size_t)at->page * at->block->wait_stride + step->wait_first) *
			sizeof(struct dev_step_wait));
}

static const struct dev_step *step_at(const struct reading *at, uint32_t index)
{
	return part_at(at->block, at->block->steps_at,
		((size_t)at->page * at->block->step_stride + index) *
			sizeof(struct dev_step));
}

static uint32_t waits_of(const struct dev_step *step)
{
	return (uint32_t)step->local_count + step->ack_count + step->data_count;
}

static void waits_read(
	const struct reading *at, const struct dev_step *step, struct move *move)
{
	struct program *program = at->program;
	const struct dev_step_wait *waits = step_waits(at, step);

	move->wait_first = program->wait_count;
	move->wait_count = waits_of(step);
	for (uint32_t i = 0; i < move->wait_count; i++) {
		TRUE(waits[i].kind ==
			(i < step->local_count ? WAIT_LOCAL
				: i < (uint32_t)step->local_count + step->ack_count
					? WAIT_ACK
					: WAIT_DATA));
		TRUE(waits[i].kind != WAIT_ACK || waits[i].back == step->back);
		program->waits[program->wait_count++] = (struct wait){
			.rank = waits[i].rank,
			.lane = waits[i].lane,
			.kind = waits[i].kind,
			.position = waits[i].position,
			.back = waits[i].back};
	}
}

/* The first chunk of a move: its places are the move's. */
static void first_read(
	const struct reading *at, const struct dev_step *step, struct move *move)
{
	const struct dev_step_place *places = step_places(at, step);
	struct program *program = at->program;

	*move = (struct move){.op = step->op,
		.count = 1,
		.input_first = program->place_count,
		.input_count = step->input_count,
		.output_first = program->place_count + step->input_count,
		.output_count = step->output_count,
		.insn = (uint16_t)(step->position - 1)};
	waits_read(at, step, move);
	for (uint32_t i = 0; i < (uint32_t)step->input_count + step->output_count; i++) {
		EQ(places[i].part, 0);
		program->places[program->place_count++] = (struct place){
			.rank = places[i].rank,
			.space = places[i].space,
			.chunk = places[i].chunk,
			.period = places[i].period,
			.slot = places[i].slot};
	}
}

/* The others: they do the same, one chunk further on, and wait for nothing. */
static void other_read(
	const struct reading *at, const struct dev_step *step, struct move *move)
{
	const struct dev_step_place *places = step_places(at, step);

	EQ(step->op, move->op);
	EQ(step->input_count, move->input_count);
	EQ(step->output_count, move->output_count);
	EQ(waits_of(step), 0);
	for (uint32_t i = 0; i < move->input_count + move->output_count; i++) {
		const struct place *first = &at->program->places[move->input_first + i];
		bool is_slot = places[i].space == STEPS_SPACE_STAGE;

		EQ(places[i].rank, first->rank);
		EQ(places[i].space, first->space);
		EQ(places[i].part, is_slot ? move->count : 0);
		EQ(places[i].chunk, first->chunk + (is_slot ? 0 : move->count));
		EQ(places[i].slot, first->slot);
	}
	move->count++;
}

static void step_read(const struct reading *at, const struct dev_step *step)
{
	struct lane_moves *lane = &at->program->lanes[at->lane];

	TRUE(step->position == lane->count || step->position == lane->count + 1);
	if (step->position == lane->count + 1) {
		first_read(at, step, &lane->moves[lane->count++]);
	} else {
		TRUE(!lane->moves[lane->count - 1].publish); /* the last part tells */
		other_read(at, step, &lane->moves[lane->count - 1]);
	}
	lane->moves[lane->count - 1].publish = step->tell != 0;
}

typedef void step_visit(const struct reading *at, const struct dev_step *step);

static void steps_walk(const struct dev_steps *block, step_visit *visit)
{
	struct reading at = {.block = block};

	for (uint32_t r = 0; r < proof.n; r++)
		for (at.lane = 0; at.lane < block->lane_count; at.lane++)
			for (uint32_t p = 0; p < block->page_count; p++) {
				at.program = &proof.programs[r];
				at.page = (r * block->lane_count + at.lane) *
						  block->page_count +
					  p;
				for (uint32_t i = 0; i < block->step_stride; i++)
					if (!step_at(&at, i)->op)
						break;
					else
						visit(&at, step_at(&at, i));
			}
}

/* Chunk `part` of the move after which a lane has retired `position`; NULL: none. */
static const struct dev_step *step_find(const struct dev_steps *block, uint32_t rank,
	uint32_t lane, uint32_t position, uint32_t part)
{
	struct reading at = {.block = block};

	for (uint32_t p = 0; p < block->page_count; p++) {
		at.page = (rank * block->lane_count + lane) * block->page_count + p;
		for (uint32_t i = 0; i < block->step_stride && step_at(&at, i)->op; i++)
			if (step_at(&at, i)->position == position && !part--)
				return step_at(&at, i);
	}
	return NULL;
}

static uint32_t lane_length(uint32_t rank, uint32_t lane)
{
	return proof.programs[rank].lanes[lane].count;
}

/* Whoever is waited for says so, in the words of that wait: with flags, steps that only
 * send say nothing. */
static void wait_is_told(const struct dev_steps *block, const struct dev_step_wait *wait)
{
	uint32_t last = proof.programs[wait->rank]
				.lanes[wait->lane]
				.moves[wait->position - 1]
				.count -
			1;
	const struct dev_step *step = step_find(
		block, wait->rank, wait->lane, wait->position, last);
	uint32_t heard = wait->kind == WAIT_DATA    ? TELL_DATA
			 : wait->kind == WAIT_LOCAL ? TELL_LOCAL
			 : wait->back		    ? TELL_ACK | TELL_ACK_LATER
						    : TELL_ACK;

	TRUE(step);
	EQ(wait->length, lane_length(wait->rank, wait->lane));
	TRUE(step->tell & heard);
}

/* A slot's flag is the position of its sender, who sends as much as is looked at. */
static void slot_is_flagged(const struct reading *at, const struct dev_step *step,
	const struct dev_step_place *place, const struct dev_step_wait *wait)
{
	const struct dev_step *sender = step_find(
		at->block, wait->rank, wait->lane, wait->position, place->part);

	TRUE(sender);
	EQ(place->rank, wait->rank);
	EQ(place->position, wait->position);
	EQ(place->length, wait->length);
	EQ(sender->bound, step->bound);
}

/* The data waits of the move that this step is a part of. */
static const struct dev_step *step_waiting;
static struct reading at_waiting;

static void step_judge(const struct reading *at, const struct dev_step *step)
{
	const struct dev_step_place *places = step_places(at, step);
	const struct dev_step_wait *waits;

	EQ(step->length, lane_length(at->program->rank, at->lane));
	for (uint32_t i = 0; i < waits_of(step); i++)
		wait_is_told(at->block, &step_waits(at, step)[i]);
	if (!step_waiting || step_waiting->position != step->position ||
		at_waiting.program != at->program || at_waiting.lane != at->lane) {
		step_waiting = step;
		at_waiting = *at;
	}
	waits = step_waits(&at_waiting, step_waiting) + step_waiting->local_count +
		step_waiting->ack_count;
	for (uint32_t i = 0; i < step->input_count; i++)
		if (places[i].space == STEPS_SPACE_STAGE)
			slot_is_flagged(at, step, &places[i], waits++);
	for (uint32_t i = step->input_count;
		i < (uint32_t)step->input_count + step->output_count; i++)
		if (places[i].space == STEPS_SPACE_STAGE) {
			EQ(places[i].rank, at->program->rank);
			EQ(places[i].position, step->position);
			EQ(places[i].length, step->length);
		}
}

static void block_is_proved(const struct dev_steps *block, const struct steps_key *key)
{
	uint32_t n = key->rank_count, depth = key->depth;

	proof_begin(key->kind, n, key->root);
	EQ(block->rank_count, n);
	EQ(block->depth, depth);
	for (uint32_t r = 0; r < n; r++) {
		struct program *program = &proof.programs[r];
		uint32_t pages = block->page_count;

		program->lane_count = block->lane_count;
		program->depth = depth;
		program->chunk_count = block->chunk_count;
		program->tmp_count = block->tmp_count;
		program->slot_count = program->slot_count_max = block->slot_count;
		program->slot_chunks = block->slot_chunks;
		program_room(program, pages * block->step_stride,
			pages * block->place_stride * block->lane_count,
			pages * block->wait_stride * block->lane_count);
	}
	steps_walk(block, step_read);
	step_waiting = NULL;
	steps_walk(block, step_judge);
	for (int in_place = 0; in_place <= has_in_place(); in_place++)
		proved(MODE_STAGED, depth, in_place);
	proof_end();
}

static void steps_are_proved(
	const struct sched_kind *kind, uint32_t n, uint32_t root, uint32_t depth)
{
	const struct steps_key key = {kind, n, root, depth};
	struct dev_steps *block;
	size_t bytes;

	EQ(lists_steps(&key, &block, &bytes), OK);
	block_is_proved(block, &key);
	free(block);
}

/* ---- what is wrong is found ---- */

/* Fields of what a lane has that a mistake could be in. */
enum mistake {
	STEP_TELL,
	STEP_BOUND,
	STEP_ACK_COUNT,
	STEP_LENGTH,
	PLACE_RANK,
	PLACE_SPACE,
	PLACE_CHUNK,
	PLACE_SLOT,
	PLACE_POSITION,
	WAIT_RANK,
	WAIT_POSITION,
	WAIT_BACK,
	MISTAKES
};

/* The next step at which this mistake can be made, counted down by `skip`. */
static uint32_t mistake_skip;
static enum mistake mistake_kind;
static bool is_mistaken;

static void place_spoil(struct dev_step_place *place)
{
	if (mistake_kind == PLACE_RANK)
		place->rank = (uint16_t)((place->rank + 1) % proof.n);
	else if (mistake_kind == PLACE_SPACE)
		place->space = place->space == SPACE_OUT ? SPACE_IN : SPACE_OUT;
	else if (mistake_kind == PLACE_CHUNK)
		place->chunk++;
	else if (mistake_kind == PLACE_SLOT)
		place->slot ^= 1;
	else
		place->position++;
}

static void wait_spoil(struct dev_step_wait *wait)
{
	if (mistake_kind == WAIT_RANK)
		wait->rank = (uint16_t)((wait->rank + 1) % proof.n);
	else if (mistake_kind == WAIT_POSITION)
		wait->position--;
	else
		wait->back++;
}

static void step_spoil(struct dev_step *step)
{
	if (mistake_kind == STEP_TELL)
		step->tell = 0;
	else if (mistake_kind == STEP_BOUND)
		step->bound++;
	else if (mistake_kind == STEP_ACK_COUNT)
		step->ack_count--;
	else
		step->length++;
}

static bool place_can(const struct dev_step_place *place)
{
	bool is_slot = place->space == STEPS_SPACE_STAGE;

	return mistake_kind < PLACE_SLOT || is_slot;
}

static bool step_can(const struct dev_step *step)
{
	if (mistake_kind == STEP_TELL)
		return step->tell;
	if (mistake_kind == STEP_ACK_COUNT)
		return step->ack_count;
	return mistake_kind != STEP_BOUND || step->input_count;
}

static bool is_its_turn(void)
{
	is_mistaken = !mistake_skip--;
	return is_mistaken;
}

static void step_mistake(const struct reading *at, const struct dev_step *step)
{
	uint32_t places = (uint32_t)step->input_count + step->output_count;

	if (is_mistaken)
		return;
	if (mistake_kind < PLACE_RANK && step_can(step) && is_its_turn())
		step_spoil((struct dev_step *)step);
	for (uint32_t i = 0; i < places && mistake_kind >= PLACE_RANK &&
			     mistake_kind < WAIT_RANK && !is_mistaken;
		i++)
		if (place_can(&step_places(at, step)[i]) && is_its_turn())
			place_spoil((struct dev_step_place *)&step_places(at, step)[i]);
	for (uint32_t i = 0;
		i < waits_of(step) && mistake_kind >= WAIT_RANK && !is_mistaken; i++)
		if (is_its_turn())
			wait_spoil((struct dev_step_wait *)&step_waits(at, step)[i]);
}

/* In a process of its own: does the proof end it? One of the two is given. */
static bool is_found(const struct dev_steps *block, const struct move_pages *pages,
	const struct steps_key *key)
{
	pid_t pid = fork();
	int status;

	TRUE(pid >= 0);
	if (!pid) {
		TRUE(freopen("/dev/null", "w", stderr));
		if (block)
			block_is_proved(block, key);
		else
			pages_are_proved(pages, key);
		_exit(0);
	}
	EQ(waitpid(pid, &status, 0), pid);
	return status;
}

/* One mistake in a block that is right; false when there is no such place any more. */
static bool step_mistake_is_made(const struct steps_key *key, uint32_t place)
{
	struct dev_steps *block;
	size_t bytes;

	EQ(lists_steps(key, &block, &bytes), OK);
	proof.n = key->rank_count;
	mistake_skip = place;
	is_mistaken = false;
	steps_walk(block, step_mistake);
	if (is_mistaken)
		TRUE(is_found(block, NULL, key));
	free(block);
	return is_mistaken;
}

/* In a ring nothing is waited for that something else waits for as well. */
static uint32_t step_mistakes_are_found(void)
{
	const struct steps_key key = {catalog_find(COLL_ALL_REDUCE, "ring"), 3, 0, 2};
	uint32_t count = 0;

	for (mistake_kind = 0; mistake_kind < MISTAKES; mistake_kind++)
		for (uint32_t i = 0; step_mistake_is_made(&key, i); i++)
			count++;
	return count;
}

static bool move_mistake_is_made(
	const struct steps_key *key, uint32_t rank, uint32_t index)
{
	struct move_pages pages;
	struct dev_page *page;
	struct dev_place *place;
	bool is_there;

	EQ(lists_moves(key->kind->coll, key->rank_count, 0, &pages), OK);
	page = (struct dev_page *)((char *)pages.data + rank * pages.page_bytes);
	place = (struct dev_place *)((struct dev_move *)(page + 1) + page->move_count) +
		index / 2;
	is_there = index / 2 < page->place_count;
	if (is_there && index % 2)
		place->chunk = (place->chunk + 1) % key->rank_count;
	else if (is_there)
		place->rank = (uint16_t)((place->rank + 1) % key->rank_count);
	if (is_there)
		TRUE(is_found(NULL, &pages, key));
	free(pages.data);
	return is_there;
}

static uint32_t move_mistakes_are_found(void)
{
	const struct steps_key key = {catalog_find(COLL_ALL_REDUCE, "direct"), 3, 0, 1};
	uint32_t count = 0;

	for (uint32_t rank = 0; rank < key.rank_count; rank++)
		for (uint32_t i = 0; move_mistake_is_made(&key, rank, i); i++)
			count++;
	return count;
}

/* ---- all of them ---- */

static void kind_is_proved(const struct sched_kind *kind, uint32_t n)
{
	uint32_t roots = coll_has_root(kind->coll) ? n : 1;

	for (uint32_t root = 0; root < roots; root += n < 9 ? 1 : (n - 1) / 2) {
		if (!strcmp(kind->name, "direct"))
			moves_are_proved(kind, n, root);
		steps_are_proved(kind, n, root, DEPTH);
		if (n <= 9)
			steps_are_proved(kind, n, root, 2);
	}
}

int main(void)
{
	const struct sched_kind *kind;
	uint32_t count = 0;

	printf("%u mistakes in steps and %u in moves are found\n",
		step_mistakes_are_found(), move_mistakes_are_found());
	fflush(stdout);
	for (uint32_t i = 0; (kind = catalog_plain_at(i)); i++)
		for (uint32_t n = 1; n <= RANKS && n <= kind->rank_max; n++) {
			kind_is_proved(kind, n);
			count++;
		}
	printf("%u schedules of 1 to %d ranks, as the GPU has them\n", count, RANKS);
	return 0;
}
