/* Ranks that are lost where the root does not see it by itself: before the first of those
 * that a process speaks for has come, or when they are silent after all have met; and a
 * porch that lets nobody in. Ranks are processes. */
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/param.h"
#include "boot/boot.h"
#include "boot/visit.h"
#include "test.h"

enum { RANKS = 3, DAWDLE_US = 3000000 };

static struct boot_id id;

/* A port that was free a moment ago is where they meet. */
static void id_make(void)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t bytes = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char text[64];

	EQ(bind(fd, (const void *)&at, bytes), 0);
	EQ(getsockname(fd, (void *)&at, &bytes), 0);
	close(fd);
	snprintf(text, sizeof(text), "127.0.0.1:%d", ntohs(at.sin_port));
	setenv("NCCL_COMM_ID", text, 1);
	param_forget(PARAM_COMM_ID);
	EQ(boot_id_create(&id), OK);
}

/* How a rank behaves, and what it is told in the end; "": all is well. */
struct part {
	bool is_porch;	/* it says that it speaks for others, and dies .. */
	bool renounces; /* .. or that it does not after all, and comes */
	bool dawdles;	/* before the last round */
	bool knows;	/* it hears meanwhile, from elsewhere, that somebody is lost */
	const char *sentence;
};

static enum err hope(void *arg, bool has_met)
{
	(void)arg;
	return has_met ? err_set(ERR_REMOTE, "rank 2 is silent") : OK;
}

static void porch_claim(const struct boot_args *args, bool renounces)
{
	struct visit up = {.fd = -1, .deadline_ns = clock_ns() + 20 * CLOCK_SEC};

	up.args = *args;
	EQ(id_read(&args->ids[0], &up.id, &up.to), OK);
	EQ(visit_root(&up, WIRE_PORCH, NULL), OK);
	if (!renounces)
		_exit(0);
	EQ(visit_say(&up, &(struct visit_word){.what = WIRE_NO_PORCH}), OK);
	visit_close(&up);
}

static void rank_main(uint32_t rank, const struct part *part)
{
	uint32_t record = rank, records[RANKS];
	struct boot_args args = {.ids = &id,
		.id_count = 1,
		.rank = rank,
		.rank_count = RANKS,
		.record = &record,
		.record_bytes = sizeof(record),
		.hope = part->knows ? hope : NULL};
	struct meeting *meeting = NULL;
	enum err e;

	if (part->is_porch)
		porch_claim(&args, part->renounces);
	e = boot_meet(&args, records, &meeting);
	if (part->dawdles)
		usleep(DAWDLE_US);
	if (!e)
		e = boot_agree(meeting, OK, true);
	EQ(e, part->sentence[0] ? ERR_REMOTE : OK);
	if (e && !strstr(err_last(), part->sentence))
		EQ_STR(err_last(), part->sentence);
	if (!rank)
		usleep(500000); /* it has the root, where others may still ask */
	_exit(0);
}

static void parts_play(const struct part parts[RANKS])
{
	pid_t pids[RANKS];
	int status;

	for (uint32_t rank = 0; rank < RANKS; rank++) {
		pids[rank] = fork();
		TRUE(pids[rank] >= 0);
		if (!pids[rank])
			rank_main(rank, &parts[rank]);
	}
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		EQ(waitpid(pids[rank], &status, 0), pids[rank]);
		EQ(status, 0);
	}
}

/* The door of this host's porch is somebody's who never opens it. */
static void door_stays_shut(const struct part parts[RANKS])
{
	struct id_body body;
	struct addr porch, to;
	int door;

	setenv("WEFT_PORCH_RANKS", "2", 1);
	param_forget(PARAM_PORCH_RANKS);
	setenv("WEFT_BOOT_TIMEOUT_SEC", "8", 1);
	param_forget(PARAM_BOOT_TIMEOUT);
	id_make();
	EQ(id_read(&id, &body, &to), OK);
	TRUE(id_porch(&body, &porch));
	EQ(addr_listen(&porch, &door, NULL), OK);
	parts_play(parts);
	close(door);
}

int main(void)
{
	static const char left[] = "rank 1 left before all 3 ranks had come";
	static const char silent[] = "rank 2 is silent";
	static const struct part dies[RANKS] = {
		{.sentence = left}, {.is_porch = true}, {.sentence = left}};
	static const struct part renounces[RANKS] = {{.sentence = ""},
		{.is_porch = true, .renounces = true, .sentence = ""}, {.sentence = ""}};
	static const struct part dawdles[RANKS] = {{.sentence = silent},
		{.knows = true, .sentence = silent},
		{.dawdles = true, .sentence = silent}};

	static const struct part well[RANKS] = {
		{.sentence = ""}, {.sentence = ""}, {.sentence = ""}};

	setenv("WEFT_SECRET", "hush", 1);
	id_make();
	parts_play(dies);
	id_make();
	parts_play(renounces);
	id_make();
	parts_play(dawdles);
	door_stays_shut(well);
	return 0;
}
