#include "drive_group.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "drive_world.h"
#include "test.h"

enum {
	ROUNDS = 24,	 /* messages of each tag */
	GROUPS_OPEN = 4, /* groups asked for at once */
	SENDS_OPEN = 4,	 /* of each tag */
	PLACE_BYTES = 64 << 10,
	WAIT_S = 60
};
_Static_assert(GROUPS_OPEN *GROUP_MAX *PLACE_BYTES <= GROUP_BYTES, "they fit");

struct drive {
	struct group_end *send, *recv;
	int size;
	uint32_t asked, got;			     /* groups */
	uint32_t posted[GROUP_MAX], sent[GROUP_MAX]; /* messages of each tag */
	void *groups[GROUPS_OPEN];
	void *sends[GROUP_MAX][SENDS_OPEN];
};

/* Some empty, some short, some long. */
static size_t bytes_of(int tag, uint32_t round)
{
	static const size_t sizes[] = {64, PLACE_BYTES, 0, 5000, 8192, 20000, 1};

	return sizes[(round * 3 + (uint32_t)tag) % (sizeof(sizes) / sizeof(*sizes))];
}

static char byte_of(int tag, uint32_t round, size_t i)
{
	return (char)((unsigned)tag * 57 + round * 11 + (unsigned)i * 3 + 1);
}

/* Where a message of a tag is at either end. */
static size_t place_of(int tag, uint32_t round, int open)
{
	return ((size_t)(round % (uint32_t)open) * GROUP_MAX + (size_t)tag) * PLACE_BYTES;
}

/* In another order in each group. */
static int tag_of(const struct drive *drive, uint32_t round, int i)
{
	return (int)((round + (uint32_t)i * 3) % (uint32_t)drive->size);
}

static void group_ask(struct drive *drive)
{
	struct place places[GROUP_MAX];
	bool is_used[GROUP_MAX] = {false};
	uint32_t round = drive->asked;
	int count = 0;

	if (round == ROUNDS || round - drive->got == GROUPS_OPEN)
		return;
	for (int i = 0; count < drive->size; i++) {
		int tag = tag_of(drive, round, i) + i / drive->size;

		tag %= drive->size;
		if (is_used[tag])
			continue;
		is_used[tag] = true;
		places[count++] = (struct place){
			drive->recv->data + place_of(tag, round, GROUPS_OPEN),
			PLACE_BYTES, 1000 + tag};
	}
	EQ(net_recv_group(drive->recv->comm, places, count, drive->recv->known,
		   &drive->groups[round % GROUPS_OPEN]),
		ncclSuccess);
	drive->asked += drive->groups[round % GROUPS_OPEN] != NULL;
}

static void tag_send(struct drive *drive, int tag)
{
	uint32_t round = drive->posted[tag];
	size_t at = place_of(tag, round, SENDS_OPEN);
	struct place place = {drive->send->data + at, bytes_of(tag, round), 1000 + tag};
	void **request = &drive->sends[tag][round % SENDS_OPEN];

	if (round == ROUNDS || round - drive->sent[tag] == SENDS_OPEN)
		return;
	for (size_t i = 0; i < place.bytes; i++)
		drive->send->seen[at + i] = byte_of(tag, round, i);
	EQ(net_send_tagged(drive->send->comm, &place, drive->send->known, request),
		ncclSuccess);
	drive->posted[tag] += *request != NULL;
}

static void tag_test(struct drive *drive, int tag)
{
	uint32_t round = drive->sent[tag];
	int done = 0, bytes = -1;

	if (round == drive->posted[tag])
		return;
	EQ(net->test(drive->sends[tag][round % SENDS_OPEN], &done, &bytes), ncclSuccess);
	if (!done)
		return;
	EQ(bytes, bytes_of(tag, round));
	drive->sent[tag]++;
}

static bool group_test(struct drive *drive, int bytes[GROUP_MAX])
{
	int done = 0;

	if (drive->got == drive->asked)
		return false;
	EQ(net->test(drive->groups[drive->got % GROUPS_OPEN], &done, bytes), ncclSuccess);
	return done;
}

/* The sizes come in the order in which the places were given. */
static void group_check(const struct drive *drive, const int bytes[GROUP_MAX])
{
	uint32_t round = drive->got;
	size_t sum = 0, wanted = 0;

	for (int tag = 0; tag < drive->size; tag++) {
		const char *data = drive->recv->seen + place_of(tag, round, GROUPS_OPEN);

		sum += (size_t)bytes[tag];
		wanted += bytes_of(tag, round);
		for (size_t i = 0; i < bytes_of(tag, round); i++)
			EQ(data[i], byte_of(tag, round, i));
	}
	EQ(bytes[0], bytes_of(tag_of(drive, round, 0), round));
	EQ(sum, wanted);
}

void group_drive(struct group_end *send, struct group_end *recv, int size,
	void (*flush)(void *line), void *line)
{
	struct drive drive = {.send = send, .recv = recv, .size = size};
	time_t until = time(NULL) + WAIT_S;
	uint32_t turn = 0;

	while (drive.got < ROUNDS) {
		int bytes[GROUP_MAX];

		/* the first tag goes ahead of all others */
		for (int tag = 0; tag < size; tag++)
			if (!tag || turn % 3 == 0)
				tag_send(&drive, tag);
		if (turn % 2)
			group_ask(&drive);
		for (int tag = size - 1; tag >= 0; tag--)
			tag_test(&drive, tag);
		if (group_test(&drive, bytes)) {
			flush(line);
			group_check(&drive, bytes);
			drive.got++;
		}
		turn++;
		TRUE(time(NULL) < until);
	}
	for (int tag = 0; tag < size; tag++)
		while (drive.sent[tag] < ROUNDS) {
			tag_test(&drive, tag);
			TRUE(time(NULL) < until);
		}
}

/* ---- done early ---- */

static void *asked(struct group_end *end, bool is_send, size_t at, size_t bytes)
{
	void *request = NULL;

	for (time_t until = time(NULL) + WAIT_S; !request; TRUE(time(NULL) < until))
		EQ(is_send ? net_send(end->comm, end->data + at, bytes, end->known,
				     &request)
			   : net_recv(end->comm, end->data + at, bytes, end->known,
				     &request),
			ncclSuccess);
	return request;
}

static int tested(void *request)
{
	int done = 0;

	EQ(net->test(request, &done, NULL), ncclSuccess);
	return done;
}

/* More of them than a sender can remember, who is kept by a tag that nobody asks for. */
static void ahead_drive(struct group_end *send, struct group_end *recv)
{
	enum { AHEAD = 140, BYTES = 64, STRANGE_TAG = 99 };
	struct place place = {send->data, BYTES, STRANGE_TAG};
	void *request = NULL;

	for (int i = 0; i < AHEAD; i++) {
		void *received = asked(recv, false, 0, BYTES);

		for (time_t until = time(NULL) + WAIT_S; !tested(received);
			TRUE(time(NULL) < until))
			continue;
	}
	may_fail = true;
	for (time_t until = time(NULL) + WAIT_S; !failure; TRUE(time(NULL) < until))
		if (went(net_send_tagged(send->comm, &place, send->known, &request)))
			TRUE(!request);
	TRUE(strstr(said, "more than 128 receives were asked for ahead"));
	may_fail = false;
}

void early_drive(struct group_end ends[2], bool is_early)
{
	enum { MESSAGES = 300, LONG = 20000, LOOKS = 2000 };
	struct group_end *send = &ends[0], *recv = &ends[1];

	for (int i = 0; i < MESSAGES; i++) {
		size_t bytes = i % 3 ? 64 : LONG, at = (size_t)(i % 8) * PLACE_BYTES;
		void *received = asked(recv, false, at, bytes), *sent = NULL;
		int done = 0;

		memset(recv->seen + at, 0, bytes);
		for (int look = 0; !done && look < LOOKS; look++)
			done = tested(received);
		EQ(done, is_early);
		memset(send->seen + at, i % 251 + 1, bytes);
		sent = asked(send, true, at, bytes);
		for (time_t until = time(NULL) + WAIT_S; !done || sent;
			TRUE(time(NULL) < until)) {
			done = done || tested(received);
			sent = sent && tested(sent) ? NULL : sent;
		}
		for (size_t b = 0; b < bytes; b++)
			EQ(recv->seen[at + b], (char)(i % 251 + 1));
	}
	if (is_early)
		ahead_drive(send, recv);
}
