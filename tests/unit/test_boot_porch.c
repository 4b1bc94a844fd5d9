/*
 * A porch whose root says nothing any more, as when the link between them is unplugged:
 * its ranks are told when their time is over, and it ends. The test holds the other end.
 */
#include "boot/porch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "boot/root.h"
#include "boot/visit.h"
#include "test.h"

enum { PATIENCE_S = 60 };

/* Where it listens, and the end that is silent. */
static int porch_start(struct id_body *body)
{
	struct root_args args = {.timeout_ns = CLOCK_SEC};
	int pair[2];

	body->addr = (struct addr){.family = ADDR_UNIX};
	auth_random(body->addr.bytes, sizeof(body->addr.bytes));
	auth_random(body->secret, sizeof(body->secret));
	EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
	args.addr = body->addr;
	memcpy(args.secret, body->secret, sizeof(args.secret));
	args.up = calloc(1, sizeof(*args.up));
	TRUE(args.up);
	args.up->fd = pair[0];
	EQ(addr_listen(&args.addr, &args.door, NULL), OK);
	EQ(root_start(&args), OK);
	return pair[1];
}

static void silence_has_an_end(void)
{
	uint32_t record = 7, records[2];
	struct visit visit = {.fd = -1,
		.args = {.rank_count = 2,
			.record = &record,
			.record_bytes = sizeof(record)}};
	int silent = porch_start(&visit.id);

	visit.to = visit.id.addr;
	visit.since_ns = clock_ns();
	visit.deadline_ns = visit.since_ns + PATIENCE_S * CLOCK_SEC;
	EQ(visit_root(&visit, WIRE_MEET, records), ERR_TIMEOUT);
	EQ_STR(visit.end.why,
		"the process in which the ranks meet did not answer within 1 s");
	while (root_is_here(&visit.id.addr))
		usleep(1000);
	close(silent);
}

int main(void)
{
	setenv("NCCL_CONF_FILE", "/nonexistent", 1);
	EQ(auth_init(), OK);
	silence_has_an_end();
	return 0;
}
