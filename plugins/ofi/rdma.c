#include "rdma.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"
#include "setting.h"
#include "state.h"

enum {
	HEARD = 32, /* invitations that a sender hears; more wait in the provider's hands
		     */
	EAGER_ROOM = 16, /* short messages that nobody has asked for yet */
	/* There are twice as many places, so that one is not used again at once: a
	 * completion may be told twice. */
	EARS = 2 * HEARD,
	LAPS = 2 * EAGER_ROOM,
	EAGER_BYTES_MAX = 8192,
	SEQUENCE_BITS = 10,
	PART_BITS = 2,
	LENGTH_SHIFT = 32,
	LINE_BYTES = 128 /* parts end where a line of LL128 does */
};
_Static_assert(1 << PART_BITS == RAILS_MAX, "a part for each rail");

struct invitation {
	uint64_t address, keys[RAILS_MAX];
	uint64_t bytes;
	uint32_t sequence;
	uint32_t taken; /* short messages that the receiver has done with */
	int32_t label;
	uint32_t ordinal; /* among those with this label */
	uint32_t check, spare;
};

struct eager {
	int32_t label;
	uint32_t ordinal, bytes;
	unsigned char data[EAGER_BYTES_MAX];
};

/* What is sent, or heard, again and again. */
struct ear {
	struct ofi_request request;
	struct invitation invitation;
};

struct lap {
	struct ofi_request request;
	struct ofi_request copy; /* .. into memory of a GPU */
	bool is_given;		 /* what came is where it belongs */
	struct eager eager;
};

struct outgoing {
	struct eager eager;
	uint32_t number;	  /* of the short message */
	struct ofi_request *user; /* of the sender's requests; or NULL */
};

/* Messages with one of NCCL's tags, so far. */
struct label {
	int label;
	uint32_t count;
};

struct sender {
	uint32_t invited;	    /* messages that the other end has asked for so far */
	uint32_t first;		    /* .. of which all before are used */
	uint32_t eagers, taken;	    /* short messages sent, and done with */
	bool is_used[REQUESTS_MAX]; /* as the invitations */
	uint32_t rail;		    /* for the next message */
	bool is_waiting;	    /* libfabric has not taken all parts */
	struct invitation invitations[REQUESTS_MAX]; /* by sequence */
	struct ear ears[EARS];
	struct outgoing out[EAGER_ROOM];
};

struct receiver {
	struct ear said[EARS]; /* what goes out */
	uint32_t next_said;    /* the sequence of the next */
	struct lap laps[LAPS];
};

struct rdma_end {
	struct known *known;  /* all of this, where that is wanted */
	uint32_t sequence;    /* of the next message */
	uint32_t heard;	      /* ears or laps, in turn, that are listened by */
	uint32_t taken;	      /* what came by them */
	uint32_t failures;    /* of the port, as seen last */
	struct label *labels; /* owned */
	uint32_t label_count;
	union {
		struct sender sender;
		struct receiver receiver;
	};
};

/* ---- numbers ---- */

uint32_t rdma_number(struct rdma_part part)
{
	return part.receiver << (SEQUENCE_BITS + 2 * PART_BITS) |
	       (part.sequence & ((1u << SEQUENCE_BITS) - 1)) << (2 * PART_BITS) |
	       part.part << PART_BITS | (part.count - 1);
}

struct rdma_part rdma_part(uint32_t number)
{
	return (struct rdma_part){.receiver = number >> (SEQUENCE_BITS + 2 * PART_BITS),
		.sequence = number >> (2 * PART_BITS) & ((1u << SEQUENCE_BITS) - 1),
		.part = number >> PART_BITS & (RAILS_MAX - 1),
		.count = (number & (RAILS_MAX - 1)) + 1};
}

uint32_t rdma_parts(size_t bytes, int rail_count, size_t least, size_t *part_bytes)
{
	size_t count = bytes / (least ? least : 1);

	count = count < 1 ? 1 : count > (size_t)rail_count ? (size_t)rail_count : count;
	*part_bytes = (bytes + count - 1) / count;
	*part_bytes = (*part_bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
	while (count > 1 && *part_bytes * (count - 1) >= bytes)
		count--;
	return (uint32_t)count;
}

static uint32_t check_of(const struct invitation *invitation)
{
	const uint32_t *words = (const uint32_t *)invitation;
	uint32_t sum = 2166136261u;

	for (size_t i = 0; i < offsetof(struct invitation, check) / sizeof(*words); i++)
		sum = (sum ^ words[i]) * 16777619u;
	return sum;
}

/* ---- labels ---- */

static struct label *label_find(const struct rdma_end *end, int label)
{
	for (uint32_t i = 0; i < end->label_count; i++)
		if (end->labels[i].label == label)
			return &end->labels[i];
	return NULL;
}

/* NULL: there is no memory. */
static struct label *label_get(struct rdma_end *end, int label)
{
	struct label *found = label_find(end, label), *more;

	if (found)
		return found;
	more = realloc(end->labels, (end->label_count + 1) * sizeof(*more));
	if (!more) {
		say_wrong(OFI_SYSTEM, "no memory for a connection");
		return NULL;
	}
	end->labels = more;
	more[end->label_count] = (struct label){.label = label};
	return &more[end->label_count++];
}

/* ---- memory of its own ---- */

static int ear_hear(struct ofi_comm *comm, struct ear *ear)
{
	struct port_message message = {.data = &ear->invitation,
		.bytes = sizeof(ear->invitation),
		.known = comm->rdma->known,
		.tag = comm->call.answer};

	memset(&ear->request, 0, sizeof(ear->request));
	return port_recv(comm->port, &message, &ear->request);
}

static int lap_hear(struct ofi_comm *comm, struct lap *lap)
{
	struct port_message message = {.data = &lap->eager,
		.bytes = sizeof(lap->eager),
		.known = comm->rdma->known,
		.tag = comm->tag};

	memset(&lap->request, 0, sizeof(lap->request));
	lap->is_given = false;
	return port_recv(comm->port, &message, &lap->request);
}

/* Listen by the next. There being no room now is no failure. */
static int hear(struct ofi_comm *comm)
{
	bool is_sender = comm->kind == COMM_SENDER;
	uint32_t most = is_sender ? HEARD : EAGER_ROOM;
	struct rdma_end *end = comm->rdma;
	int result = OFI_OK;

	while (end->heard - end->taken < most && !result) {
		uint32_t next = end->heard;

		result = is_sender ? ear_hear(comm, &end->sender.ears[next % EARS])
				   : lap_hear(comm, &end->receiver.laps[next % LAPS]);
		if (!result)
			end->heard++;
	}
	return result == OFI_AGAIN ? OFI_OK : result;
}

int rdma_open(struct ofi_comm *comm)
{
	struct rdma_end *end;
	struct known_range range = {.bytes = sizeof(*end)};
	char remedy[SAY_REMEDY_BYTES];
	int rc = 0;

	comm->rdma = calloc(1, sizeof(*comm->rdma));
	end = comm->rdma;
	if (!end)
		return say_wrong(OFI_SYSTEM, "no memory for a connection");
	range.data = (char *)end;
	end->failures = comm->port->failures;
	if (comm->port->device->needs_known || comm->port->device->takes_gpu)
		rc = known_get(&comm->port->cache, &range, &end->known);
	if (rc)
		return say_wrong(OFI_SYSTEM, "%s does not register %zu bytes: %s%s",
			comm->port->device->name, sizeof(*end), strerror(rc),
			say_memlock(rc, remedy));
	return hear(comm);
}

/* All requests that are no message of the caller's, one after the other; NULL: no more.
 */
static struct ofi_request *own_request(struct ofi_comm *comm, uint32_t i)
{
	struct rdma_end *end = comm->rdma;

	if (comm->kind == COMM_SENDER)
		return i < EARS ? &end->sender.ears[i].request : NULL;
	if (i < EARS)
		return &end->receiver.said[i].request;
	i -= EARS;
	if (i < LAPS)
		return &end->receiver.laps[i].request;
	i -= LAPS;
	return i < LAPS ? &end->receiver.laps[i].copy : NULL;
}

uint32_t rdma_cancel(struct ofi_comm *comm, bool calls_off)
{
	struct rdma_end *end = comm->rdma;
	struct ofi_request *request;
	uint32_t left = 0;

	for (uint32_t i = 0; end && (request = own_request(comm, i)); i++)
		left += request_cancel(request, calls_off);
	if (!left && end && end->known) {
		known_put(&comm->port->cache, end->known);
		end->known = NULL;
	}
	return left;
}

void rdma_free(struct rdma_end *end)
{
	if (end)
		free(end->labels);
	free(end);
}

/* ---- the sender ---- */

/* The oldest invitation that is open: its receive still has its place, so all that are
 * open are fewer than REQUESTS_MAX. */
static void sender_advance(struct sender *sender)
{
	while (sender->first != sender->invited &&
		sender->is_used[sender->first % REQUESTS_MAX])
		sender->first++;
}

static int ear_take(struct ofi_comm *comm, struct ear *ear)
{
	struct rdma_end *end = comm->rdma;
	const struct invitation *got = &ear->invitation;
	const struct label *label;

	if (ear->request.why[0])
		return say_wrong(OFI_REMOTE, "invitations to %s failed: %s",
			comm->port->device->name, ear->request.why);
	if (ear->request.bytes != sizeof(*got) || got->check != check_of(got) ||
		got->sequence - end->sender.invited >= REQUESTS_MAX)
		return say_wrong(OFI_REMOTE,
			"what came to %s is no invitation to send: use the same plugin "
			"on "
			"all hosts",
			comm->port->device->name);
	sender_advance(&end->sender);
	if (got->sequence - end->sender.first >= REQUESTS_MAX)
		return say_wrong(OFI_REMOTE,
			"more than %d receives were asked for ahead of what is sent by "
			"%s: "
			"set OFI_NCCL_EARLY_COMPLETION=0 on all hosts",
			REQUESTS_MAX, comm->port->device->name);
	label = label_find(end, got->label);
	/* what was here already when it was asked for is not invited to */
	for (uint32_t i = end->sender.invited; i != got->sequence; i++)
		end->sender.is_used[i % REQUESTS_MAX] = true;
	end->sender.invitations[got->sequence % REQUESTS_MAX] = *got;
	/* a short message may have gone ahead for it */
	end->sender.is_used[got->sequence % REQUESTS_MAX] =
		label && (int32_t)(label->count - got->ordinal) > 0;
	end->sender.invited = got->sequence + 1;
	end->sender.taken = got->taken;
	return OFI_OK;
}

static int ears_move(struct ofi_comm *comm)
{
	struct rdma_end *end = comm->rdma;
	struct ear *ear = &end->sender.ears[end->taken % EARS];
	int result = OFI_OK;

	while (ear->request.is_done && !result) {
		result = ear_take(comm, ear);
		ear->request.is_done = false;
		ear = &end->sender.ears[++end->taken % EARS];
	}
	return result ? result : hear(comm);
}

/* The parts that libfabric has not taken yet. */
static int parts_push(struct ofi_comm *comm, struct ofi_request *request)
{
	const struct invitation *to =
		&comm->rdma->sender.invitations[request->sequence % REQUESTS_MAX];
	size_t part_bytes, least = (size_t)setting_int(SET_MIN_STRIPE_SIZE);
	int result = OFI_OK;

	rdma_parts(request->posted, comm->rail_count, least, &part_bytes);
	for (uint32_t i = 0; i < request->piece_count && !result; i++) {
		struct ofi_piece *piece = &request->pieces[i];
		size_t first = i * part_bytes, left = request->posted - first;
		struct port_write write = {.data = request->data + first,
			.bytes = left < part_bytes ? left : part_bytes,
			.known = request->known,
			.peer = comm->peers[piece->rail],
			.address = to->address + first,
			.key = to->keys[piece->rail],
			.number = rdma_number((struct rdma_part){comm->number,
				request->sequence, i, request->piece_count})};

		/* some providers do not tell the receiver how much was written */
		if (port_has_long_numbers(comm->port))
			write.number |= (uint64_t)write.bytes << LENGTH_SHIFT;
		if (!piece->is_asked)
			result = port_write(comm->port, &write, piece);
	}
	return result;
}

/* `sequence` is that of an invitation for it. */
static int invited_send(struct ofi_comm *comm, const struct port_message *message,
	uint32_t sequence, struct ofi_request *request)
{
	struct rdma_end *end = comm->rdma;
	const struct invitation *to = &end->sender.invitations[sequence % REQUESTS_MAX];
	size_t part_bytes, least = (size_t)setting_int(SET_MIN_STRIPE_SIZE);
	int result;

	if (message->bytes > to->bytes)
		return say_wrong(OFI_USAGE,
			"a message of %zu bytes is sent and %ju were asked for: the "
			"other "
			"end must ask for as many",
			message->bytes, (uintmax_t)to->bytes);
	request->sequence = sequence;
	request->posted = message->bytes;
	request->data = message->data;
	request->known = message->known;
	request->piece_count = rdma_parts(
		message->bytes, comm->rail_count, least, &part_bytes);
	for (uint32_t i = 0; i < request->piece_count; i++)
		request->pieces[i] = (struct ofi_piece){.request = request,
			.rail = (uint8_t)((end->sender.rail + i) %
					  (uint32_t)comm->rail_count)};
	result = parts_push(comm, request);
	if (request->is_asked) { /* some of it is on its way */
		end->sender.is_used[sequence % REQUESTS_MAX] = true;
		end->sender.rail++;
		end->sender.is_waiting |= result == OFI_AGAIN;
		return result == OFI_AGAIN ? OFI_OK : result;
	}
	return result;
}

static bool is_gpu(const void *known)
{
	return known && known_is_gpu(known);
}

/* Nobody has asked for it, but there is room for it. Memory of a GPU is not copied here.
 */
static int eager_send(struct ofi_comm *comm, const struct port_message *message,
	uint32_t ordinal, struct ofi_request *request)
{
	struct rdma_end *end = comm->rdma;
	struct outgoing *out = &end->sender.out[end->sender.eagers % EAGER_ROOM];
	struct port_message eager = {.data = &out->eager,
		.bytes = offsetof(struct eager, data) + message->bytes,
		.known = end->known,
		.peer = comm->peers[0],
		.tag = comm->tag};
	bool is_free = !out->user || out->user->is_done ||
		       out->user->sequence != out->number;
	int result;

	if ((int64_t)message->bytes > setting_int(SET_EAGER_MAX_SIZE) || !is_free ||
		is_gpu(message->known) ||
		end->sender.eagers - end->sender.taken >= EAGER_ROOM)
		return OFI_AGAIN;
	out->eager.label = message->label;
	out->eager.ordinal = ordinal;
	out->eager.bytes = (uint32_t)message->bytes;
	memcpy(out->eager.data, message->data, message->bytes);
	result = port_send(comm->port, &eager, request);
	if (result)
		return result;
	out->user = request;
	out->number = request->sequence = end->sender.eagers++;
	request->posted = message->bytes;
	return OFI_OK;
}

/* The oldest place for a message with this label. */
static bool is_invited(struct rdma_end *end, int label, uint32_t *sequence)
{
	struct sender *sender = &end->sender;

	sender_advance(sender);
	for (uint32_t i = sender->first; i != sender->invited; i++)
		if (!sender->is_used[i % REQUESTS_MAX] &&
			sender->invitations[i % REQUESTS_MAX].label == label) {
			*sequence = i;
			return true;
		}
	return false;
}

int rdma_send(struct ofi_comm *comm, const struct port_message *message,
	struct ofi_request *request)
{
	struct rdma_end *end = comm->rdma;
	struct label *label = label_get(end, message->label);
	int result = label ? ears_move(comm) : OFI_SYSTEM;
	uint32_t sequence;

	/* The caller may have no request left that it could test, so the invitation must
	 * be heard from here. */
	if (!result && !is_invited(end, message->label, &sequence)) {
		result = port_move(comm->port);
		if (!result)
			result = ears_move(comm);
	}
	if (result)
		return result;
	result = is_invited(end, message->label, &sequence)
			 ? invited_send(comm, message, sequence, request)
			 : eager_send(comm, message, label->count, request);
	label->count += !result;
	return result;
}

/* ---- the receiver ---- */

/* Requests are taken in turn, as messages are numbered. */
static struct ofi_request *request_of(struct ofi_comm *comm, uint32_t sequence)
{
	struct ofi_request *request = &comm->requests[sequence % REQUESTS_MAX];
	uint32_t differs = request->sequence ^ sequence;

	if (!request->is_used || request->is_done ||
		differs & ((1u << SEQUENCE_BITS) - 1))
		return NULL;
	return request;
}

/* Into memory of a GPU: the card reads it from here. OFI_AGAIN until it has. */
static int lap_copy(struct ofi_comm *comm, struct lap *lap, struct ofi_request *request)
{
	struct port_write read = {.data = request->data,
		.bytes = lap->eager.bytes,
		.known = request->known,
		.address = port_address(comm->port, comm->rdma->known, lap->eager.data),
		.key = port_key(comm->port, comm->rdma->known, 0)};

	if (!lap->copy.is_asked) {
		int result;

		memset(&lap->copy, 0, sizeof(lap->copy));
		lap->copy.piece_count = 1;
		lap->copy.pieces[0].request = &lap->copy;
		result = port_read_own(comm->port, &read, &lap->copy.pieces[0]);
		if (result)
			return result;
	}
	if (!lap->copy.is_done)
		return OFI_AGAIN;
	lap->copy.is_asked = false;
	if (lap->copy.why[0])
		snprintf(request->why, sizeof(request->why), "%s", lap->copy.why);
	return OFI_OK;
}

static int lap_give(struct ofi_comm *comm, struct lap *lap, struct ofi_request *request)
{
	bool fits = lap->eager.bytes <= request->posted;
	int result = fits && lap->eager.bytes && is_gpu(request->known)
			     ? lap_copy(comm, lap, request)
			     : OFI_OK;

	if (result)
		return result;
	request->bytes = lap->eager.bytes;
	request->is_done = true;
	if (fits && !is_gpu(request->known))
		memcpy(request->data, lap->eager.data, lap->eager.bytes);
	else if (!fits)
		snprintf(request->why, sizeof(request->why),
			"a message of %u bytes came, and %zu were asked for",
			lap->eager.bytes, request->posted);
	return OFI_OK;
}

static int lap_check(const struct ofi_comm *comm, const struct lap *lap)
{
	size_t head = offsetof(struct eager, data);
	const struct ofi_request *request = &lap->request;

	if (!request->why[0] && request->bytes >= head &&
		request->bytes == head + lap->eager.bytes)
		return OFI_OK;
	return say_wrong(OFI_REMOTE, "a short message to %s failed: %s",
		comm->port->device->name,
		request->why[0] ? request->why : "it is cut off");
}

/* Who has asked for it? NULL: nobody yet. */
static struct ofi_request *request_for(struct ofi_comm *comm, const struct lap *lap)
{
	uint32_t likely = lap->eager.ordinal;

	for (uint32_t i = 0; i < REQUESTS_MAX; i++) {
		struct ofi_request *request =
			&comm->requests[(likely + i) % REQUESTS_MAX];

		if (request->is_used && !request->is_done &&
			request->label == lap->eager.label &&
			request->ordinal == lap->eager.ordinal)
			return request;
	}
	return NULL;
}

static int lap_move(struct ofi_comm *comm, struct lap *lap)
{
	struct ofi_request *request;
	int result;

	if (!lap->request.is_done || lap->is_given)
		return OFI_OK;
	result = lap_check(comm, lap);
	if (result)
		return result;
	request = request_for(comm, lap);
	result = request ? lap_give(comm, lap, request) : OFI_AGAIN;
	lap->is_given = !result;
	return result == OFI_AGAIN ? OFI_OK : result;
}

/* Short messages that came, to those who have asked for them. */
static int laps_move(struct ofi_comm *comm)
{
	struct rdma_end *end = comm->rdma;
	struct lap *lap = &end->receiver.laps[end->taken % LAPS];

	/* one may wait for its receive while others behind it need not */
	for (uint32_t i = end->taken; i != end->heard; i++) {
		int result = lap_move(comm, &end->receiver.laps[i % LAPS]);

		if (result)
			return result;
	}
	while (end->taken != end->heard && lap->is_given) {
		lap->request.is_done = lap->is_given = false;
		lap = &end->receiver.laps[++end->taken % LAPS];
	}
	return hear(comm);
}

/* Is the message here already? Then nobody is to be asked for it: who sent it may have
 * closed its end since. */
static bool is_here(const struct rdma_end *end, const struct ofi_request *request)
{
	for (uint32_t i = end->taken; i != end->heard; i++) {
		const struct lap *lap = &end->receiver.laps[i % LAPS];

		if (lap->request.is_done && lap->eager.label == request->label &&
			lap->eager.ordinal == request->ordinal)
			return true;
	}
	return false;
}

static int invitation_send(struct ofi_comm *comm, const struct ofi_request *request)
{
	struct rdma_end *end = comm->rdma;
	struct ear *said = &end->receiver.said[request->sequence % EARS];
	struct invitation *invitation = &said->invitation;
	struct port_message letter = {.data = invitation,
		.bytes = sizeof(*invitation),
		.known = end->known,
		.peer = comm->peers[0],
		.tag = comm->answer_tag};

	if (said->request.is_asked && !said->request.is_done)
		return OFI_AGAIN;
	*invitation = (struct invitation){
		.address = port_address(comm->port, request->known, request->data),
		.bytes = request->posted,
		.sequence = request->sequence,
		.taken = end->taken,
		.label = request->label,
		.ordinal = request->ordinal};
	for (int i = 0; i < comm->rail_count; i++)
		invitation->keys[i] = port_key(comm->port, request->known, i);
	invitation->check = check_of(invitation);
	memset(&said->request, 0, sizeof(said->request));
	return port_send(comm->port, &letter, &said->request);
}

/* Invite to what was asked for, in order, as far as there is room now. */
static int invitations_push(struct ofi_comm *comm)
{
	struct rdma_end *end = comm->rdma;
	int result = OFI_OK;

	while (end->receiver.next_said != end->sequence && !result) {
		uint32_t next = end->receiver.next_said;
		const struct ofi_request *request = &comm->requests[next % REQUESTS_MAX];

		/* it may have been done without, and even be in use again */
		if (request->sequence == next && !request->is_done &&
			!is_here(end, request))
			result = invitation_send(comm, request);
		end->receiver.next_said += !result;
	}
	return result == OFI_AGAIN ? OFI_OK : result;
}

/* What may be done early is, when its invitation has left. Its bytes are written without
 * this end; the completions that tell of them find no request and are passed over. */
static void early_move(struct ofi_comm *comm)
{
	struct rdma_end *end = comm->rdma;

	for (int i = 0; i < REQUESTS_MAX; i++) {
		struct ofi_request *request = &comm->requests[i];
		const struct ear *said = &end->receiver.said[request->sequence % EARS];

		if (!request->is_used || request->is_done || !request->is_early ||
			(int32_t)(end->receiver.next_said - request->sequence) <= 0)
			continue;
		/* its place is taken again only when it has left */
		request->is_done = said->invitation.sequence != request->sequence ||
				   (said->request.is_done && !said->request.why[0]);
	}
}

/* Of those that are asked for together only the first can be without room: invitations of
 * the others are sent later, by rdma_move(). */
int rdma_recv(struct ofi_comm *comm, const struct port_message *message,
	struct ofi_request *request)
{
	struct rdma_end *end = comm->rdma;
	struct label *label = label_get(end, message->label);
	int result = label ? port_move(comm->port) : OFI_SYSTEM;

	if (!result)
		result = laps_move(comm);
	if (result)
		return result;
	request->sequence = end->sequence++;
	request->label = message->label;
	request->ordinal = label->count++;
	request->posted = message->bytes;
	request->data = message->data;
	request->known = message->known;
	request->is_early = message->is_early;
	request->is_asked = true;
	result = invitations_push(comm);
	if (result || message->is_behind || end->receiver.next_said == end->sequence)
		return result;
	end->sequence--;
	label->count--;
	return OFI_AGAIN;
}

void comm_arrived(struct ofi_port *port, uint64_t number, size_t bytes)
{
	struct rdma_part part = rdma_part((uint32_t)number);
	struct ofi_comm *comm = part.receiver < port->receiver_room
					? port->receivers[part.receiver]
					: NULL;
	struct ofi_request *request = comm ? request_of(comm, part.sequence) : NULL;

	if (!request || request->arrived & 1u << part.part)
		return; /* it came twice, or to one that is closed */
	request->arrived |= 1u << part.part;
	request->bytes += port_has_long_numbers(port) ? number >> LENGTH_SHIFT : bytes;
	request->is_done = request->arrived == (1u << part.count) - 1;
}

/* ---- both ---- */

/* An invitation that failed to one who had sent already is of no matter. */
static bool is_needed(struct ofi_comm *comm, uint32_t i)
{
	if (comm->kind == COMM_SENDER || i >= EARS)
		return true;
	return request_of(comm, comm->rdma->receiver.said[i].invitation.sequence);
}

/* A failure of what the caller knows nothing of. */
static int own_check(struct ofi_comm *comm)
{
	struct rdma_end *end = comm->rdma;
	struct ofi_request *request;

	if (end->failures == comm->port->failures)
		return OFI_OK;
	end->failures = comm->port->failures;
	for (uint32_t i = 0; (request = own_request(comm, i)); i++)
		if (request->why[0] && is_needed(comm, i))
			return say_wrong(OFI_REMOTE, "a message by %s failed: %s",
				comm->port->device->name, request->why);
	return OFI_OK;
}

static int parts_move(struct ofi_comm *comm)
{
	int result = OFI_OK;

	comm->rdma->sender.is_waiting = false;
	for (int i = 0; i < REQUESTS_MAX && !result; i++)
		if (comm->requests[i].is_used && !comm->requests[i].is_done)
			result = parts_push(comm, &comm->requests[i]);
	comm->rdma->sender.is_waiting = result == OFI_AGAIN;
	return result == OFI_AGAIN ? OFI_OK : result;
}

int rdma_move(struct ofi_comm *comm)
{
	int result = port_move(comm->port);

	if (!result)
		result = comm->kind == COMM_SENDER ? ears_move(comm) : laps_move(comm);
	if (!result && comm->kind == COMM_RECEIVER)
		result = invitations_push(comm);
	if (!result && comm->kind == COMM_RECEIVER && comm->port->device->ends_early)
		early_move(comm);
	if (!result)
		result = own_check(comm);
	if (!result && comm->kind == COMM_SENDER && comm->rdma->sender.is_waiting)
		result = parts_move(comm);
	return result;
}
