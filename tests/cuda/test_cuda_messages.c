/*
 * Messages whose two ends are not alike: put into groups differently, of lengths on both
 * sides of what goes another way, made when others are under way, on several streams; and
 * those that do not fit or never come. What fits arrives, and every wait ends.
 */
#include <unistd.h>

#include "log_text.h"
#include "parts.h"

enum { LIMIT_US = 10 * 1000 * 1000, SOON_US = 20 * 1000, POLL_US = 200 };

/* ---- a list of messages, the same in all ranks ---- */

enum { MESSAGES_MAX = 96, GUARD = 32, FILLER = 0xc3 };

struct message {
	int from, to, round;
	size_t bytes, at; /* at: where it is in what is sent, and in what is received */
};

struct list {
	struct message messages[MESSAGES_MAX];
	int count;
	size_t bytes;
};

static void list_add(struct list *list, int from, int to, size_t bytes)
{
	HOLDS(list->count < MESSAGES_MAX);
	list->messages[list->count++] = (struct message){
		.from = from, .to = to, .bytes = bytes, .at = list->bytes + GUARD};
	list->bytes += (bytes + 2 * GUARD + 15) / 16 * 16;
}

static unsigned char byte_of(int message, size_t i)
{
	return (unsigned char)((unsigned)message * 37 + i * 11 + (i >> 9));
}

struct end {
	struct rank *rank;
	struct seat *seat;
	struct list *list;
	char *in, *out, *host;
};

static void end_open(
	struct end *end, struct rank *rank, struct crew *crew, struct list *list)
{
	*end = (struct end){.rank = rank, .seat = &crew->seats[0], .list = list};
	end->in = gpu_alloc(list->bytes);
	end->out = gpu_alloc(list->bytes);
	end->host = malloc(list->bytes);
	HOLDS(end->host);
	memset(end->host, FILLER, list->bytes);
	gpu_write(end->out, end->host, list->bytes, end->seat->stream);
	gpu_wait(end->seat->stream);
	for (int m = 0; m < list->count; m++)
		for (size_t i = 0; i < list->messages[m].bytes; i++)
			end->host[list->messages[m].at + i] = (char)byte_of(m, i);
	gpu_write(end->in, end->host, list->bytes, end->seat->stream);
	gpu_wait(end->seat->stream);
}

/* What came, and nothing beside it. */
static void end_check(const struct end *end)
{
	const struct list *list = end->list;

	gpu_read(end->host, end->out, list->bytes, end->seat->stream);
	for (int m = 0; m < list->count; m++) {
		const struct message *message = &list->messages[m];
		bool is_ours = message->to == end->rank->rank;

		rank_context("rank %d, message %d of %zu bytes from %d to %d",
			end->rank->rank, m, message->bytes, message->from, message->to);
		for (size_t i = 0; i < message->bytes; i++)
			EQ((unsigned char)end->host[message->at + i],
				is_ours ? byte_of(m, i) : (unsigned char)FILLER);
		for (size_t i = 0; i < GUARD; i++) {
			EQ((unsigned char)end->host[message->at - 1 - i], FILLER);
			EQ((unsigned char)end->host[message->at + message->bytes + i],
				FILLER);
		}
	}
	rank_context("%s", "");
}

static void end_close(struct end *end)
{
	end_check(end);
	gpu_free(end->in);
	gpu_free(end->out);
	free(end->host);
}

static void message_call(const struct end *end, int m, bool is_send, cu_stream stream)
{
	const struct message *message = &end->list->messages[m];

	if (is_send)
		OK(ncclSend(end->in + message->at, message->bytes, ncclUint8, message->to,
			end->seat->comm, (cudaStream_t)stream));
	else
		OK(ncclRecv(end->out + message->at, message->bytes, ncclUint8,
			message->from, end->seat->comm, (cudaStream_t)stream));
}

/* ---- groups that are not alike ---- */

/* What the sender sends in one group is received by single calls, or the other way
 * round. Twelve messages are more than are under way at a time. */
static void unlike(struct rank *rank)
{
	static const size_t sizes[] = {4, 0, 3000, 2047, 100000, 8, 6 << 20, 17, 6 << 20,
		(6 << 20) + 1, 5 << 20, 6 << 20, 1 << 20, 5 << 20};
	bool is_sent_in_one = part_value(rank);
	bool is_sender = rank->rank == 0;
	bool is_in_one = is_sent_in_one == is_sender;
	struct list list = {.count = 0};
	struct crew crew;
	struct end end;

	crew_open(&crew, rank);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		list_add(&list, 0, 1, sizes[i]);
	end_open(&end, rank, &crew, &list);
	rank_meet(rank);
	if (is_in_one)
		OK(ncclGroupStart());
	for (int m = 0; m < list.count && rank->rank < 2; m++)
		message_call(&end, m, is_sender, crew.seats[0].stream);
	if (is_in_one)
		OK(ncclGroupEnd());
	gpu_wait(crew.seats[0].stream);
	end_close(&end);
	crew_close(&crew);
}

/* Rank 0 receives from both others at once; what comes from the first of them waits for
 * what the second does when rank 0 has its message. */
static void crossed(struct rank *rank)
{
	struct list list = {.count = 0};
	cu_stream stream;
	struct crew crew;
	struct end end;

	crew_open(&crew, rank);
	stream = crew.seats[0].stream;
	list_add(&list, 1, 0, 5000);
	list_add(&list, 2, 0, 6000);
	list_add(&list, 2, 1, 7000);
	end_open(&end, rank, &crew, &list);
	rank_meet(rank);
	if (rank->rank == 0) {
		OK(ncclGroupStart());
		message_call(&end, 0, false, stream);
		message_call(&end, 1, false, stream);
		OK(ncclGroupEnd());
	} else if (rank->rank == 1) {
		message_call(&end, 2, false, stream);
		message_call(&end, 0, true, stream);
	} else {
		message_call(&end, 1, true, stream);
		message_call(&end, 2, true, stream);
	}
	gpu_wait(stream);
	end_close(&end);
	crew_close(&crew);
}

/* ---- patterns ---- */

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* On both sides of what a message may have to go through host memory. */
static size_t random_bytes(uint64_t bits, int n)
{
	size_t limit = (size_t)(4 << 20) / (size_t)n / 4096 * 4096;
	const size_t sizes[] = {0, 1, 7, 96, 1001, 2048, 4096, 70000, limit - 1, limit,
		limit + 1, limit + 5000};

	return sizes[bits % (sizeof(sizes) / sizeof(*sizes))];
}

/* Rounds of messages between any two ranks, also with themselves: a group each, on two
 * streams in turns, and nobody waits before the end. */
static void patterns(struct rank *rank)
{
	enum { ROUNDS = 6, OF_ROUND = 14 };
	int n = rank->rank_count;
	uint64_t state = 0x9e3779b97f4a7c15u + (uint64_t)n;
	struct list list = {.count = 0};
	cu_stream streams[2];
	struct crew crew;
	struct end end;

	crew_open(&crew, rank);
	for (int m = 0; m < ROUNDS * OF_ROUND; m++) {
		uint64_t bits = random_next(&state);

		list_add(&list, (int)(bits % (uint64_t)n),
			(int)((bits >> 16) % (uint64_t)n), random_bytes(bits >> 32, n));
		list.messages[m].round = m / OF_ROUND;
	}
	end_open(&end, rank, &crew, &list);
	streams[0] = crew.seats[0].stream;
	streams[1] = gpu_stream();
	rank_meet(rank);
	for (int round = 0; round < ROUNDS; round++) {
		OK(ncclGroupStart());
		for (int m = round * OF_ROUND; m < (round + 1) * OF_ROUND; m++) {
			if (list.messages[m].from == rank->rank)
				message_call(&end, m, true, streams[round % 2]);
			if (list.messages[m].to == rank->rank)
				message_call(&end, m, false, streams[round % 2]);
		}
		OK(ncclGroupEnd());
	}
	for (int i = 0; i < 2; i++)
		gpu_wait(streams[i]);
	end_close(&end);
	gpu_stream_end(streams[1]);
	crew_close(&crew);
}

/* A stream of rank 0's waits for a message when it makes its first one to another rank,
 * which must not wait for that stream: rank 1 sends when it is made. */
static void first_beside(struct rank *rank)
{
	struct list list = {.count = 0};
	cu_stream other;
	struct crew crew;
	struct end end;

	crew_open(&crew, rank);
	list_add(&list, 1, 0, 1000);
	list_add(&list, 0, 2, 3000);
	end_open(&end, rank, &crew, &list);
	other = gpu_stream();
	rank_meet(rank);
	if (rank->rank == 0) {
		/* a communicator's calls run in order: the send comes first */
		message_call(&end, 1, true, other);
		message_call(&end, 0, false, crew.seats[0].stream);
	} else if (rank->rank == 2) {
		message_call(&end, 1, false, crew.seats[0].stream);
	}
	rank_meet(rank);
	if (rank->rank == 1)
		message_call(&end, 0, true, crew.seats[0].stream);
	gpu_wait(other);
	end_close(&end);
	gpu_stream_end(other);
	crew_close(&crew);
}

/* Rank 0 sends and leaves; what it has sent arrives. */
static void sent_and_left(struct rank *rank)
{
	struct list list = {.count = 0};
	struct crew crew;
	struct end end;

	crew_open(&crew, rank);
	list_add(&list, 0, 1, 100);
	list_add(&list, 0, 1, part_value(rank) ? 6 << 20 : 3000);
	end_open(&end, rank, &crew, &list);
	rank_meet(rank);
	if (rank->rank)
		usleep(5 * SOON_US);
	for (int m = 0; m < list.count; m++)
		message_call(&end, m, rank->rank == 0, crew.seats[0].stream);
	OK(ncclCommDestroy(crew.seats[0].comm));
	end_close(&end);
	gpu_stream_end(crew.seats[0].stream);
}

/* ---- what does not fit, or does not come ---- */

struct victim {
	struct rank *rank;
	struct crew crew;
	ncclResult_t error; /* the first, of a call or of the communicator */
	char *data;
};

enum { ROOM = 8 << 20 };

static void victim_open(struct victim *victim, struct rank *rank)
{
	*victim = (struct victim){.rank = rank};
	crew_open(&victim->crew, rank);
	victim->data = gpu_alloc(ROOM);
	comm_check(victim->crew.seats[0].comm, victim->crew.seats[0].stream);
	rank_meet(rank);
}

static void victim_close(struct victim *victim)
{
	rank_meet(victim->rank);
	crew_abort(&victim->crew);
	gpu_free(victim->data);
}

static void victim_calls(struct victim *victim, size_t bytes)
{
	const struct seat *seat = &victim->crew.seats[0];
	cudaStream_t stream = (cudaStream_t)seat->stream;

	if (seat->rank == 0)
		error_note(&victim->error,
			ncclSend(victim->data, bytes, ncclUint8, 1, seat->comm, stream));
	else
		error_note(&victim->error,
			ncclRecv(victim->data, bytes, ncclUint8, 0, seat->comm, stream));
}

/* There is an error, and the stream has finished. */
static void victim_is_told(struct victim *victim)
{
	const struct seat *seat = &victim->crew.seats[0];
	uint64_t end = patient_us() + LIMIT_US;

	while (!victim->error || !gpu_is_done(seat->stream)) {
		error_note_state(&victim->error, seat->comm);
		rank_context("rank %d has error %d (%s)", seat->rank, victim->error,
			ncclGetLastError(seat->comm));
		HOLDS(patient_us() < end);
		usleep(POLL_US);
	}
	rank_context("%s", "");
}

/* Two lengths, of the kinds that a part's value says; or, when a sender is far ahead, of
 * an early message. */
enum lengths { SHORT_SHORT, SHORT_LONG, LONG_SHORT, LONG_LONG, FAR_AHEAD };

static void lengths(struct rank *rank)
{
	static const size_t sent[] = {100, 100, 6 << 20, 6 << 20, 64};
	static const size_t received[] = {96, 6 << 20, 100, 5 << 20, 60};
	enum lengths what = (enum lengths)part_value(rank);
	struct victim victim;
	char sentence[64];

	victim_open(&victim, rank);
	if (what == FAR_AHEAD && rank->rank == 0) {
		OK(ncclGroupStart()); /* and so that streams need not be waited for */
		for (int i = 0; i < 40; i++)
			victim_calls(&victim, i == 1 ? sent[what] : 8);
		error_note(&victim.error, ncclGroupEnd());
	} else if (what == FAR_AHEAD) {
		victim_calls(&victim, 8);
		victim_calls(&victim, received[what]);
	} else {
		victim_calls(&victim, rank->rank ? received[what] : sent[what]);
	}
	victim_is_told(&victim);
	EQ(victim.error, ncclInvalidUsage);
	snprintf(sentence, sizeof(sentence), "sends %zu bytes and rank 1 receives %zu",
		sent[what], received[what]);
	gpu_sentence(sentence);
	victim_close(&victim);
}

/* Rank 1 receives what nobody sends, or rank 0 sends what nobody receives, and one of
 * the two, or the one that waits, aborts. */
enum given_up { RECEIVE_BY_OTHER, RECEIVE_BY_ITSELF, SEND_BY_OTHER, SEND_BY_ITSELF };

static void given_up(struct rank *rank)
{
	enum given_up what = (enum given_up)part_value(rank);
	bool is_send = what >= SEND_BY_OTHER;
	bool is_in_it = rank->rank == !is_send;
	bool is_by_itself = what == RECEIVE_BY_ITSELF || what == SEND_BY_ITSELF;
	struct victim victim;

	victim_open(&victim, rank);
	if (is_in_it)
		victim_calls(&victim, is_send ? 6 << 20 : 100);
	if (is_in_it) {
		usleep(SOON_US);
		HOLDS(!gpu_is_done(victim.crew.seats[0].stream));
	}
	rank_meet(rank);
	if (is_in_it == is_by_itself) {
		OK(ncclCommAbort(victim.crew.seats[0].comm));
		gpu_wait(victim.crew.seats[0].stream);
		rank_meet(rank);
		rank_meet(rank);
	} else {
		error_note_state(&victim.error, victim.crew.seats[0].comm);
		victim_is_told(&victim);
		rank_meet(rank);
		OK(ncclCommAbort(victim.crew.seats[0].comm));
		rank_meet(rank);
	}
	gpu_free(victim.data);
	gpu_stream_end(victim.crew.seats[0].stream);
}

/* Rank 0 dies while rank 1 waits: for a message of its, or for it to take the sixth
 * short one, or a long one. */
enum left_alone { RECEIVES, SENDS_MANY, SENDS_LONG };

static void left_alone(struct rank *rank)
{
	enum left_alone what = (enum left_alone)part_value(rank);
	struct victim victim;
	const struct seat *seat = &victim.crew.seats[0];
	cudaStream_t stream;

	victim_open(&victim, rank);
	stream = (cudaStream_t)seat->stream;
	if (rank->rank == 0) {
		usleep(2 * SOON_US);
		raise(SIGKILL);
	}
	OK(ncclGroupStart());
	if (what == RECEIVES)
		ncclRecv(victim.data, 100, ncclUint8, 0, seat->comm, stream);
	for (int i = 0; what != RECEIVES && i < (what == SENDS_MANY ? 6 : 1); i++)
		ncclSend(victim.data, what == SENDS_MANY ? 100 : 6 << 20, ncclUint8, 0,
			seat->comm, stream);
	error_note(&victim.error, ncclGroupEnd());
	victim_is_told(&victim);
	EQ(victim.error, ncclRemoteError);
	OK(ncclCommAbort(seat->comm)); /* crew_abort() would meet the dead */
	gpu_stream_end(seat->stream);
	gpu_free(victim.data);
}

#define FIRST_DIES .killed = 1u

static const struct part parts[] = {
	{"sent in one", "2x1 1x2", unlike, .value = 1},
	{"received in one", "2x1 1x2", unlike, .value = 0},
	{"crossed", "3x1 1x3", crossed, .value = 0},
	{"patterns", "2x1 3x1 5x1 8x1 1x4", patterns, .value = 0},
	{"first beside", "3x1", first_beside, .value = 0},
	{"sent and left", "2x1", sent_and_left, .value = 0},
	{"sent long and left", "2x1", sent_and_left, .value = 1},
	{"short and shorter", "2x1", lengths, .value = SHORT_SHORT},
	{"short and long", "2x1", lengths, .value = SHORT_LONG},
	{"long and short", "2x1", lengths, .value = LONG_SHORT},
	{"long and longer", "2x1", lengths, .value = LONG_LONG},
	{"far ahead", "2x1", lengths, .value = FAR_AHEAD},
	{"receive ended by the other", "2x1", given_up, .value = RECEIVE_BY_OTHER},
	{"receive given up", "2x1", given_up, .value = RECEIVE_BY_ITSELF},
	{"send ended by the other", "2x1", given_up, .value = SEND_BY_OTHER},
	{"send given up", "2x1", given_up, .value = SEND_BY_ITSELF},
	{"dead before it sends", "2x1", left_alone, .value = RECEIVES, FIRST_DIES},
	{"dead before it takes", "2x1", left_alone, .value = SENDS_MANY, FIRST_DIES},
	{"dead before it copies", "2x1", left_alone, .value = SENDS_LONG, FIRST_DIES},
};

int main(int argc, char **argv)
{
	return parts_main(argc, argv, parts, sizeof(parts) / sizeof(*parts));
}
