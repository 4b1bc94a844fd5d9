/*
 * Sends and receives on device memory. A case is a list of messages; every rank sends and
 * receives its own in one group, and afterwards what it has is compared, byte by byte,
 * with what the list says, the gaps between the messages too.
 */
#include <unistd.h>

#include "parts.h"
#include "value.h"

enum { MESSAGES_MAX = 1024, GAP = 64, FILLER = 0xa5 };

struct message {
	int from, to;
	size_t count;
};

struct exchange {
	struct message *messages;
	int count;
	ncclDataType_t type;
	size_t shift;	   /* bytes before the first message */
	bool is_recv_late; /* all sends first; else all receives */
	int turn;
};

/* What is sent and what is received, of one seat. */
struct side {
	size_t bytes;
	char *gpu, *host;
};

struct sides {
	struct side sent, received;
};

/* ---- layout ---- */

static size_t message_bytes(const struct exchange *x, const struct message *message)
{
	return message->count * type_size(x->type);
}

static bool is_mine(const struct message *message, int rank, bool sent)
{
	return (sent ? message->from : message->to) == rank;
}

/* Where message `index` lies at its sender or receiver; the whole length for the number
 * of messages. */
static size_t offset_of(const struct exchange *x, int rank, bool sent, int index)
{
	size_t offset = GAP + x->shift, unit = 16;

	for (int i = 0; i < index; i++)
		if (is_mine(&x->messages[i], rank, sent))
			offset += (message_bytes(x, &x->messages[i]) + GAP + unit - 1) /
				  unit * unit;
	return offset;
}

static void message_fill(const struct exchange *x, int index, char *to)
{
	const struct message *message = &x->messages[index];
	size_t bytes = message_bytes(x, message);
	unsigned seed = (unsigned)(message->from * 31 + message->to * 17 + index * 7 +
				   x->turn * 101);

	for (size_t i = 0; i < bytes; i++)
		to[i] = (char)(seed + (unsigned)(i * 13) + (unsigned)(i >> 8));
}

static void side_open(const struct exchange *x, const struct seat *seat, bool sent,
	bool with_data, struct side *side)
{
	side->bytes = offset_of(x, seat->rank, sent, x->count) + GAP;
	side->host = malloc(side->bytes);
	HOLDS(side->host);
	memset(side->host, FILLER, side->bytes);
	for (int i = 0; with_data && i < x->count; i++)
		if (is_mine(&x->messages[i], seat->rank, sent))
			message_fill(
				x, i, side->host + offset_of(x, seat->rank, sent, i));
}

static void sides_open(const struct exchange *x, const struct seat *seat, struct sides *s)
{
	side_open(x, seat, true, true, &s->sent);
	side_open(x, seat, false, false, &s->received);
	for (int i = 0; i < 2; i++) {
		struct side *side = i ? &s->received : &s->sent;

		side->gpu = gpu_alloc(side->bytes);
		gpu_write(side->gpu, side->host, side->bytes, seat->stream);
	}
	gpu_wait(seat->stream);
}

static void side_check(const struct exchange *x, const struct seat *seat,
	const struct side *side, bool sent)
{
	struct side want;

	side_open(x, seat, sent, true, &want);
	gpu_read(side->host, side->gpu, side->bytes, seat->stream);
	for (size_t i = 0; i < want.bytes; i++)
		if (side->host[i] != want.host[i]) {
			rank_context("rank %d of %d, turn %d, type %d: byte %zu of %zu "
				     "%s is %02x, not %02x",
				seat->rank, seat->rank_count, x->turn, x->type, i,
				want.bytes, sent ? "sent" : "received",
				(unsigned char)side->host[i],
				(unsigned char)want.host[i]);
			holds(false, "what the messages say", __FILE__, __LINE__);
		}
	free(want.host);
}

static void sides_close(
	const struct exchange *x, const struct seat *seat, struct sides *s)
{
	side_check(x, seat, &s->sent, true);
	side_check(x, seat, &s->received, false);
	for (int i = 0; i < 2; i++) {
		struct side *side = i ? &s->received : &s->sent;

		gpu_free(side->gpu);
		free(side->host);
	}
}

/* ---- calls ---- */

static void calls_of(const struct exchange *x, const struct seat *seat,
	const struct sides *s, bool sent)
{
	cudaStream_t stream = (cudaStream_t)seat->stream;

	for (int i = 0; i < x->count; i++) {
		const struct message *message = &x->messages[i];
		size_t offset = offset_of(x, seat->rank, sent, i);

		if (!is_mine(message, seat->rank, sent))
			continue;
		if (sent)
			OK(ncclSend(s->sent.gpu + offset, message->count, x->type,
				message->to, seat->comm, stream));
		else
			OK(ncclRecv(s->received.gpu + offset, message->count, x->type,
				message->from, seat->comm, stream));
	}
}

static void calls(
	const struct exchange *x, const struct seat *seat, const struct sides *s)
{
	calls_of(x, seat, s, x->is_recv_late);
	calls_of(x, seat, s, !x->is_recv_late);
}

/* Has this thread anything to say? A rank without messages makes no call at all. */
static bool takes_part(const struct crew *crew, const struct exchange *x)
{
	for (int s = 0; s < crew->count; s++)
		for (int i = 0; i < x->count; i++)
			if (is_mine(&x->messages[i], crew->seats[s].rank, true) ||
				is_mine(&x->messages[i], crew->seats[s].rank, false))
				return true;
	return false;
}

static void exchange_open(
	const struct crew *crew, const struct exchange *x, struct sides *sides)
{
	for (int s = 0; s < crew->count; s++)
		sides_open(x, &crew->seats[s], &sides[s]);
}

static void exchange_start(
	const struct crew *crew, const struct exchange *x, struct sides *sides)
{
	if (!takes_part(crew, x))
		return;
	OK(ncclGroupStart());
	for (int s = 0; s < crew->count; s++)
		calls(x, &crew->seats[s], &sides[s]);
	OK(ncclGroupEnd());
}

static void exchange_close(
	const struct crew *crew, const struct exchange *x, struct sides *sides)
{
	for (int s = 0; s < crew->count; s++)
		sides_close(x, &crew->seats[s], &sides[s]);
}

/* For a second round in the same memory, which may go another way between hosts. */
static void received_clear(
	const struct exchange *x, const struct seat *seat, struct side *side)
{
	side_check(x, seat, side, false);
	memset(side->host, FILLER, side->bytes);
	gpu_write(side->gpu, side->host, side->bytes, seat->stream);
	gpu_wait(seat->stream);
}

static void exchange_run(const struct crew *crew, const struct exchange *x)
{
	struct sides sides[CREW_MAX];

	exchange_open(crew, x, sides);
	exchange_start(crew, x, sides);
	for (int s = 0; s < crew->count; s++)
		received_clear(x, &crew->seats[s], &sides[s].received);
	exchange_start(crew, x, sides);
	exchange_close(crew, x, sides);
}

/* ---- lists of messages ---- */

static void message_add(struct exchange *x, int from, int to, size_t count)
{
	HOLDS(x->count < MESSAGES_MAX);
	x->messages[x->count++] = (struct message){from, to, count};
}

static void ring_add(struct exchange *x, int n, int step, size_t count)
{
	for (int i = 0; i < n; i++)
		message_add(x, i, (i + step) % n, count);
}

/* Every pair and oneself; `step` 0: all the same, else sizes differ and some are 0. */
static void all_add(struct exchange *x, int n, size_t count, size_t step)
{
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			message_add(x, i, j,
				step ? (size_t)(i * 5 + j * 3) % 4 * step : count);
}

/* ---- the parts ---- */

enum what { RING, ALL, UNEQUAL, ONE_WAY, SEVERAL, SELF, BIG, RANDOM };

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void messages_write(struct exchange *x, enum what what, int n)
{
	static const size_t sizes[] = {1, 0, 5000, 7, 300000};
	uint64_t random = 88172645463325252u + (uint64_t)x->turn;

	switch (what) {
	case RING:
		ring_add(x, n, 1, x->turn % 2 ? 3 : 30000);
		break;
	case ALL:
		all_add(x, n, x->turn % 2 ? 1 : 12345, 0);
		break;
	case UNEQUAL:
		all_add(x, n, 0, x->turn % 2 ? 1 : 7001);
		break;
	case ONE_WAY:
		message_add(x, x->turn % n, (x->turn + 1 + x->turn % 2) % n, 4000);
		break;
	case SEVERAL:
		for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			message_add(x, 0, 1, sizes[i]);
			message_add(x, 1, 0, sizes[i] / 2);
		}
		break;
	case SELF:
		ring_add(x, n, 0, 1000);
		ring_add(x, n, 0, 77);
		break;
	case BIG:
		ring_add(x, n, 1, 16 << 20);
		break;
	default:
		for (int i = 0; i < 40; i++) {
			uint64_t bits = random_next(&random);

			message_add(x, (int)(bits % (uint64_t)n),
				(int)((bits >> 20) % (uint64_t)n),
				(bits >> 40) % (x->turn % 2 ? 64 : 100000));
		}
	}
}

static void p2p_messages(struct rank *rank)
{
	struct message *messages = malloc(MESSAGES_MAX * sizeof(*messages));
	enum what what = (enum what)part_value(rank);
	struct crew crew;

	HOLDS(messages);
	crew_open(&crew, rank);
	for (int turn = 0; turn < (what == BIG ? 2 : 6); turn++) {
		struct exchange x = {.messages = messages,
			.type = ncclUint32,
			.is_recv_late = turn & 2,
			.turn = turn};

		messages_write(&x, what, crew.rank_count);
		exchange_run(&crew, &x);
	}
	for (int i = 0; i < crew.count && crew.count == 1; i++)
		comm_check(crew.seats[i].comm, crew.seats[i].stream);
	crew_close(&crew);
	free(messages);
}

static void p2p_types(struct rank *rank)
{
	struct message messages[2 * CREW_MAX];
	struct crew crew;

	crew_open(&crew, rank);
	for (int type = 0; type < ncclNumTypes; type++)
		for (size_t step = 0; step < 4; step++) {
			struct exchange x = {.messages = messages,
				.type = (ncclDataType_t)type,
				.turn = type};

			x.shift = step * type_size(x.type);
			ring_add(&x, crew.rank_count, 1, 1 + step * 501);
			exchange_run(&crew, &x);
		}
	crew_close(&crew);
}

/* Many exchanges follow each other on the stream; the host waits once. */
static void p2p_chain(struct rank *rank)
{
	enum { TURNS = 12 };
	static const enum what whats[] = {RING, ONE_WAY, ALL};
	struct message *messages[TURNS];
	struct sides sides[TURNS][CREW_MAX];
	struct exchange xs[TURNS];
	struct crew crew;

	crew_open(&crew, rank);
	for (int t = 0; t < TURNS; t++) {
		messages[t] = malloc(MESSAGES_MAX * sizeof(**messages));
		xs[t] = (struct exchange){
			.messages = messages[t], .type = ncclUint32, .turn = t};
		messages_write(&xs[t], whats[t % 3], crew.rank_count);
		exchange_open(&crew, &xs[t], sides[t]);
	}
	for (int t = 0; t < TURNS; t++)
		exchange_start(&crew, &xs[t], sides[t]);
	for (int t = 0; t < TURNS; t++) {
		exchange_close(&crew, &xs[t], sides[t]);
		free(messages[t]);
	}
	crew_close(&crew);
}

/* ---- refused ---- */

/* The last seat's message to itself has two lengths, or, with a value, is longer
 * than its memory. What goes round is right. */
static void refused_calls(const struct crew *crew, void *data, size_t count, bool is_long)
{
	size_t sent = is_long ? count + 1 : count, received = sent - !is_long;

	for (int i = 0; i < crew->count; i++) {
		const struct seat *seat = &crew->seats[i];
		cudaStream_t stream = (cudaStream_t)seat->stream;
		int n = crew->count, right = crew->seats[(i + 1) % n].rank;
		int left = crew->seats[(i + n - 1) % n].rank;
		bool is_last = i == n - 1;

		OK(ncclSend(data, 1, ncclUint32, right, seat->comm, stream));
		OK(ncclRecv(data, 1, ncclUint32, left, seat->comm, stream));
		OK(ncclSend(data, is_last ? sent : 2, ncclUint32, seat->rank, seat->comm,
			stream));
		OK(ncclRecv(data, is_last ? received : 2, ncclUint32, seat->rank,
			seat->comm, stream));
	}
}

static void refused_checked(const struct crew *crew, bool is_long)
{
	enum { COUNT = 1000 };
	int last = crew->seats[crew->count - 1].rank;
	void *data = gpu_alloc(COUNT * sizeof(uint32_t));
	char sentence[128];

	if (is_long)
		snprintf(sentence, sizeof(sentence),
			"the send buffer of 4004 bytes at %p goes beyond", data);
	else
		snprintf(sentence, sizeof(sentence),
			"rank %d sends 4000 bytes and rank %d receives 3996", last, last);
	OK(ncclGroupStart());
	refused_calls(crew, data, COUNT, is_long);
	GIVES(ncclGroupEnd(), is_long ? ncclInvalidArgument : ncclInvalidUsage);
	gpu_sentence(sentence);
	crew_wait(crew);
	gpu_free(data);
}

/* By the last rank; the others call nothing, which could fail when it has. */
static void p2p_refused(struct rank *rank)
{
	struct crew crew;

	crew_open(&crew, rank);
	if (rank->rank == rank->rank_count - 1)
		refused_checked(&crew, part_value(rank));
	crew_abort(&crew);
}

/* ---- that do not come to their end, between hosts ---- */

/* The communicator tells of a failure, and the stream goes on. */
static void error_wait(const struct seat *seat, const char *sentence)
{
	ncclResult_t error = ncclSuccess;

	while (!error || !gpu_is_done(seat->stream)) {
		error_note_state(&error, seat->comm);
		rank_context("rank %d has error %d (%s)", seat->rank, error,
			ncclGetLastError(seat->comm));
		usleep(1000);
	}
	HOLDS(strstr(ncclGetLastError(seat->comm), sentence));
}

/* The receiver sees it, and the sender hears of it. */
static void p2p_two_lengths(struct rank *rank)
{
	enum { LONG = 100000, SHORT = 99999 };
	bool is_long_sent = part_value(rank);
	int sent = is_long_sent ? LONG : SHORT, received = is_long_sent ? SHORT : LONG;
	char sentence[128];
	struct crew crew;
	void *data;

	if (!has_hosts())
		return;
	crew_open(&crew, rank);
	data = gpu_alloc(LONG * sizeof(uint32_t));
	if (rank->rank == 0)
		OK(ncclSend(data, (size_t)sent, ncclUint32, 1, crew.seats->comm,
			(cudaStream_t)crew.seats->stream));
	else
		OK(ncclRecv(data, (size_t)received, ncclUint32, 0, crew.seats->comm,
			(cudaStream_t)crew.seats->stream));
	snprintf(sentence, sizeof(sentence),
		"rank 1 receives %d bytes from rank 0, which sends %d: a send and its "
		"receive must have the same size",
		4 * received, 4 * sent);
	error_wait(crew.seats, sentence);
	crew_abort(&crew);
	gpu_free(data);
}

/* Who aborts a message: its sender while nobody receives it, or the other rank then, or
 * its sender on its way. */
enum aborted { BY_SENDER, BY_RECEIVER, ON_ITS_WAY };

static void p2p_abort(struct rank *rank)
{
	enum aborted how = (enum aborted)part_value(rank);
	size_t count = how == ON_ITS_WAY ? 2 << 20
					 : 48 << 20; /* more than sockets keep */
	struct crew crew;
	struct seat *seat = crew.seats;
	void *data;

	if (!has_hosts())
		return;
	crew_open(&crew, rank);
	data = gpu_alloc(count);
	comm_check(seat->comm, seat->stream);
	rank_meet(rank);
	if (rank->rank == 0)
		OK(ncclSend(data, count, ncclUint8, 1, seat->comm,
			(cudaStream_t)seat->stream));
	else if (how == ON_ITS_WAY)
		OK(ncclRecv(data, count, ncclUint8, 0, seat->comm,
			(cudaStream_t)seat->stream));
	if (rank->rank == 0 && how != ON_ITS_WAY) {
		usleep(20000);
		HOLDS(!gpu_is_done(seat->stream));
	}
	if (how != ON_ITS_WAY)
		rank_meet(rank);
	if (rank->rank == (how == BY_RECEIVER))
		OK(ncclCommAbort(seat->comm));
	gpu_wait(seat->stream);
	rank_meet(rank);
	if (rank->rank != (how == BY_RECEIVER))
		OK(ncclCommAbort(seat->comm));
	gpu_stream_end(seat->stream);
	gpu_free(data);
}

/* ---- with collectives ---- */

enum { WORDS = 20000 };

struct mixed {
	uint32_t *data, *sum, *all;
};

static void collectives(const struct seat *seat)
{
	struct mixed *mixed = seat->own;
	cudaStream_t stream = (cudaStream_t)seat->stream;

	OK(ncclAllReduce(
		mixed->data, mixed->sum, WORDS, ncclUint32, ncclSum, seat->comm, stream));
	OK(ncclAllGather(mixed->data, mixed->all, WORDS, ncclUint32, seat->comm, stream));
}

static void mixed_open(struct crew *crew, struct mixed *mixed, int turn)
{
	size_t bytes = WORDS * sizeof(uint32_t);

	for (int i = 0; i < crew->count; i++) {
		mixed[i] = (struct mixed){gpu_alloc(bytes), gpu_alloc(bytes),
			gpu_alloc((size_t)crew->rank_count * bytes)};
		crew->seats[i].own = &mixed[i];
		words_give(&crew->seats[i], mixed[i].data, WORDS, turn);
	}
}

static void mixed_close(struct crew *crew, struct mixed *mixed, int turn)
{
	for (int i = 0; i < crew->count; i++) {
		struct seat *seat = &crew->seats[i];

		words_check(seat, mixed[i].sum, WORDS, -1, turn);
		for (int r = 0; r < crew->rank_count; r++)
			words_check(seat, mixed[i].all + r * WORDS, WORDS, r, turn);
		gpu_free(mixed[i].data);
		gpu_free(mixed[i].sum);
		gpu_free(mixed[i].all);
	}
}

/* In one group, where every second rank has them the other way round, or one after the
 * other. */
static void mixed_start(const struct crew *crew, const struct exchange *x,
	struct sides *sides, bool in_one)
{
	OK(ncclGroupStart());
	for (int s = 0; s < crew->count; s++) {
		const struct seat *seat = &crew->seats[s];
		bool are_first = in_one && seat->rank % 2;

		if (are_first)
			calls(x, seat, &sides[s]);
		collectives(seat);
		if (in_one && !are_first)
			calls(x, seat, &sides[s]);
	}
	OK(ncclGroupEnd());
	if (!in_one)
		exchange_start(crew, x, sides);
}

static void p2p_mixed(struct rank *rank)
{
	bool in_one = part_value(rank);
	struct message messages[MESSAGES_MAX];
	struct sides sides[CREW_MAX];
	struct mixed mixed[CREW_MAX];
	struct crew crew;

	crew_open(&crew, rank);
	for (int turn = 0; turn < 4; turn++) {
		struct exchange x = {
			.messages = messages, .type = ncclUint32, .turn = turn};

		messages_write(&x, turn % 2 ? ALL : RING, crew.rank_count);
		mixed_open(&crew, mixed, turn);
		exchange_open(&crew, &x, sides);
		for (int again = 0; again < 3; again++)
			mixed_start(&crew, &x, sides, in_one);
		mixed_close(&crew, mixed, turn);
		exchange_close(&crew, &x, sides);
	}
	crew_close(&crew);
}

static const struct part parts[] = {
	{"ring", "2x1 4x1 1x2 1x4 g4", p2p_messages, .value = RING},
	{"all to all", "4x1 1x4 g4", p2p_messages, .value = ALL},
	{"unequal", "4x1 1x4 g4", p2p_messages, .value = UNEQUAL},
	{"one way", "4x1 1x4 g4", p2p_messages, .value = ONE_WAY},
	{"several", "2x1 4x1 1x2 g2", p2p_messages, .value = SEVERAL},
	{"self", "1x1 2x1 1x2 g2", p2p_messages, .value = SELF},
	{"big", "2x1 1x2 g2", p2p_messages, .value = BIG},
	{"random", "4x1 8x1 1x4 g8", p2p_messages, .value = RANDOM},
	{"types", "2x1 1x2 g3", p2p_types, .value = 0},
	{"chain", "4x1 1x4 g4", p2p_chain, .value = 0},
	{"self of two sizes", "1x1 2x1 1x2 g3", p2p_refused, .value = 0},
	{"self beyond its memory", "1x1 2x1 1x2 g3", p2p_refused, .value = 1},
	{"longer than its receive", "2x1", p2p_two_lengths, .value = 1},
	{"shorter than its receive", "2x1", p2p_two_lengths, .value = 0},
	{"aborted by its sender", "2x1", p2p_abort, .value = BY_SENDER},
	{"aborted by its receiver", "2x1", p2p_abort, .value = BY_RECEIVER},
	{"aborted on its way", "2x1", p2p_abort, .value = ON_ITS_WAY},
	{"mixed", "2x1 4x1 1x4 g4", p2p_mixed, .value = 1},
	{"back to back", "2x1 4x1 1x4 g4", p2p_mixed, .value = 0},
};

int main(int argc, char **argv)
{
	return parts_main(argc, argv, parts, sizeof(parts) / sizeof(*parts));
}
