/* Who looks for the board of a rank that has died meanwhile says that, and not only what
 * it did not find. */
#include "comm/hosts.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comm/state.h"
#include "test.h"

enum { OWNER = 3, RANK, RANKS, NO_FD = 1 << 20 };

/* It has no board: as if it had closed its files. */
static pid_t owner_start(void)
{
	pid_t pid = fork();

	TRUE(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return pid;
}

int main(void)
{
	static struct comm comm = {.rank = RANK, .rank_count = RANKS};
	const struct board_size size = comm_board_size(&comm);
	struct board_address address;
	struct board *board;
	pid_t owner = owner_start();
	char want[96];

	EQ(board_create(&size, "", &board), OK);
	address = board_address(board);
	address.token++; /* not the one that this process has */
	address.pid = owner;
	address.fd = NO_FD;
	EQ(comm_board_attach(&comm, &address, OWNER), ERR_SYSTEM);
	TRUE(strstr(err_last(), "must see each other in /proc"));

	EQ(kill(owner, SIGKILL), 0);
	snprintf(want, sizeof(want),
		"rank %d (process %d) died while the communicator was made", OWNER,
		(int)owner);
	EQ(comm_board_attach(&comm, &address, OWNER), ERR_REMOTE);
	EQ_STR(err_last(), want);
	EQ(waitpid(owner, NULL, 0), owner);
	EQ(comm_board_attach(&comm, &address, OWNER), ERR_REMOTE);
	EQ_STR(err_last(), want);
	board_release(board);
	return 0;
}
