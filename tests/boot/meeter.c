/*
 * meeter: one rank of a meeting, for check-hosts. `meeter RANK COUNT FILE [--stay]`: rank
 * 0 makes the id and leaves it in FILE for the others, unless NCCL_COMM_ID says where to
 * meet. It prints what came of it. With --stay it opens the control channel, says
 * `settled`, and prints who is lost until FILE.end is there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/host.h"
#include "base/param.h"
#include "boot/boot.h"
#include "boot/control.h"

struct record {
	uint32_t rank;
	struct control_peer peer;
};

static uint32_t rank, rank_count;
static const char *file;

static int failed(void)
{
	printf("rank %u: %s\n", rank, err_last());
	return 1;
}

static enum err id_share(struct boot_id *id)
{
	char path[512];
	FILE *stream;
	enum err e = OK;

	if (getenv("NCCL_COMM_ID"))
		return boot_id_create(id);
	snprintf(path, sizeof(path), "%s.new", file);
	if (rank == 0) {
		e = boot_id_create(id);
		stream = fopen(path, "we");
		if (!stream || fwrite(id, sizeof(*id), 1, stream) != 1 ||
			fclose(stream) || rename(path, file))
			return err_set(ERR_SYSTEM, "%s: %m", path);
		return e;
	}
	while (!(stream = fopen(file, "re")))
		usleep(5000);
	if (fread(id, sizeof(*id), 1, stream) != 1)
		e = err_set(ERR_SYSTEM, "%s: %m", file);
	fclose(stream);
	return e;
}

static void on_message(
	void *arg, uint32_t from, uint32_t kind, const void *bytes, size_t size)
{
	(void)arg;
	printf("rank %u: rank %u says %u: %.*s\n", rank, from, kind, (int)size,
		(const char *)bytes);
}

static void on_lost(void *arg, uint32_t lost, const char *why)
{
	(void)arg;
	printf("rank %u: rank %u is lost: %s\n", rank, lost, why);
}

static enum err stay(struct control *control)
{
	char path[512];
	enum err e;

	printf("rank %u: settled\n", rank);
	e = control_send(control, CONTROL_ALL, 1, "hello all", 9);
	if (!e)
		e = control_send(control, (rank + 1) % rank_count, 2, "hello you", 9);
	snprintf(path, sizeof(path), "%s.end", file);
	while (!e && access(path, F_OK))
		usleep(20000);
	return e;
}

static enum err keep_in_touch(struct meeting *meeting, const struct record *records)
{
	struct control_peer *peers = calloc(rank_count, sizeof(*peers));
	struct control_args args = {.rank = rank,
		.rank_count = rank_count,
		.peers = peers,
		.on_message = on_message,
		.on_lost = on_lost};
	struct control *control = NULL;
	enum err e = peers ? OK : err_set(ERR_SYSTEM, "no memory");

	for (uint32_t i = 0; i < rank_count && !e; i++)
		peers[i] = records[i].peer;
	boot_key(meeting, "control", args.key);
	if (!e)
		e = control_open(&args, &control);
	if (!e)
		e = control_settle(control, clock_ns() + 10 * CLOCK_SEC, NULL);
	e = boot_agree(meeting, e, true);
	if (!e)
		e = stay(control);
	control_close(control);
	free(peers);
	return e;
}

int main(int argc, char **argv)
{
	struct record mine = {0}, *records;
	struct boot_args args = {.id_count = 1, .record = &mine};
	struct meeting *meeting = NULL;
	struct boot_id id;
	uint32_t hosts = 0;
	char name[64];
	bool stays = argc > 4;

	if (argc < 4)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	rank = args.rank = mine.rank = (uint32_t)atoi(argv[1]);
	rank_count = args.rank_count = (uint32_t)atoi(argv[2]);
	file = argv[3];
	records = calloc(rank_count, sizeof(*records));
	args.ids = &id;
	args.record_bytes = sizeof(mine);
	if (!records || host_identity(name, sizeof(name), &mine.peer.host) ||
		id_share(&id) || (stays && control_listen(&mine.peer.addr)) ||
		boot_meet(&args, records, &meeting))
		return failed();
	if (boot_gather(meeting, OK, &mine, sizeof(mine), records))
		return failed();
	for (uint32_t i = 0; i < rank_count; i++) {
		bool is_first = records[i].rank == i;

		for (uint32_t j = 0; j < i; j++)
			is_first = is_first &&
				   records[j].peer.host != records[i].peer.host;
		hosts += is_first;
	}
	printf("rank %u: met %u ranks on %u hosts\n", rank, rank_count, hosts);
	if (stays ? keep_in_touch(meeting, records) : boot_agree(meeting, OK, true))
		return failed();
	boot_leave(meeting);
	if (stays)
		control_unlisten();
	free(records);
	return 0;
}
