/* Who failed, left or died is told with one sentence and with the rank to blame; the
 * first failure stays, and calls that were complete before it are not touched by it. */
#include "exec/health.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "link/peer.h"
#include "test.h"

enum { RANKS = 3, UNTOUCHED = 77 };

struct world {
	struct board *board;
	struct peers *peers[RANKS];
	struct health *ranks[RANKS];
};

static void rank_begin(struct world *world, uint32_t rank)
{
	peers_destroy(world->peers[rank]);
	EQ(peers_create(
		   &(struct peers_args){
			   .board = world->board, .rank = rank, .rank_count = RANKS},
		   &world->peers[rank]),
		OK);
	EQ(health_create(world->peers[rank], &world->ranks[rank]), OK);
}

static void world_make(struct world *world)
{
	EQ(board_create(&(struct board_size){RANKS, 1, RANKS, 1}, "", &world->board), OK);
	for (uint32_t r = 0; r < RANKS; r++) {
		board_status(world->board, r)->pid = (uint32_t)getpid();
		atomic_store(&board_status(world->board, r)->state, RANK_LIVE);
	}
	for (uint32_t r = 0; r < RANKS; r++) {
		world->peers[r] = NULL;
		rank_begin(world, r);
	}
}

static void world_end(struct world *world)
{
	for (uint32_t r = 0; r < RANKS; r++) {
		health_destroy(world->ranks[r]);
		peers_destroy(world->peers[r]);
	}
	board_release(world->board);
}

static bool needs_all(const void *what, uint32_t rank)
{
	(void)what;
	(void)rank;
	return true;
}

static bool needs_one(const void *what, uint32_t rank)
{
	return *(const uint32_t *)what == rank;
}

static void all_well(void)
{
	struct world world;
	uint32_t culprit = UNTOUCHED;

	world_make(&world);
	EQ(health_failed(world.ranks[0], UINT64_MAX, &culprit), OK);
	EQ(health_check(world.ranks[0], needs_all, NULL, &culprit), OK);
	EQ(health_look(world.ranks[0], &culprit), OK);
	EQ(culprit, UNTOUCHED);
	EQ(health_blamed(world.ranks[0]), 0);
	EQ(health_is_dead(world.ranks[0], 1), false);
	EQ(health_has_left(world.ranks[0], 1), false);
	world_end(&world);
}

/* Rank 1 blames rank 2 in its fifth call. Its own asking does not change anything. */
static void one_fails(void)
{
	struct world world;
	_Atomic uint64_t completed = 4;
	uint32_t culprit = UNTOUCHED, other = 2;

	world_make(&world);
	health_count(world.ranks[1], &completed);
	health_tell(world.ranks[1], ERR_USAGE, 2, "rank 2 calls another collective");
	EQ(health_failed(world.ranks[0], 4, &culprit), OK);
	EQ(culprit, UNTOUCHED);
	EQ(health_failed(world.ranks[0], 5, &culprit), ERR_USAGE);
	EQ(culprit, 2);
	EQ(strcmp(err_last(), "rank 2 calls another collective"), 0);
	EQ(health_missed(world.ranks[0], 1, 4, &culprit), OK);
	EQ(health_missed(world.ranks[0], 2, 5, &culprit), OK);
	EQ(health_missed(world.ranks[0], 1, 5, &culprit), ERR_USAGE);
	EQ(strcmp(err_last(), "rank 2 calls another collective"), 0);
	EQ(health_completed(world.ranks[0]), 0);
	EQ(health_completed(world.ranks[1]), 4);
	EQ(health_check(world.ranks[0], needs_one, &other, &culprit), OK);
	EQ(health_blamed(world.ranks[1]), 2);
	culprit = UNTOUCHED;
	EQ(health_look(world.ranks[1], &culprit), OK);
	EQ(culprit, UNTOUCHED);
	world_end(&world);
}

static void first_stays(void)
{
	struct world world;
	uint32_t culprit = UNTOUCHED;

	world_make(&world);
	health_tell(world.ranks[1], ERR_SYSTEM, 1, "no memory");
	health_tell(world.ranks[1], ERR_TIMEOUT, 0, "waited");
	/* what is wrong with that rank is remote to this one */
	EQ(health_look(world.ranks[0], &culprit), ERR_REMOTE);
	EQ(culprit, 1);
	EQ(strcmp(err_last(), "rank 1 failed: no memory"), 0);
	EQ(health_blamed(world.ranks[1]), 1);
	world_end(&world);
}

static void one_leaves(void)
{
	struct world world;
	uint32_t culprit = UNTOUCHED;

	world_make(&world);
	atomic_store(&board_status(world.board, 2)->state, RANK_LEFT);
	EQ(health_has_left(world.ranks[0], 2), true);
	EQ(health_look(world.ranks[0], &culprit), OK);
	EQ(health_failed(world.ranks[0], UINT64_MAX, &culprit), OK);
	EQ(culprit, UNTOUCHED);
	EQ(health_check(world.ranks[0], needs_all, NULL, &culprit), ERR_REMOTE);
	EQ(culprit, 2);
	world_end(&world);
}

/* A death is the cause of what others report, and comes before it. */
static void one_dies(void)
{
	struct world world;
	uint32_t culprit = UNTOUCHED;
	pid_t child = fork();

	if (!child)
		_exit(0);
	TRUE(child > 0);
	world_make(&world);
	health_destroy(world.ranks[0]);
	board_status(world.board, 2)->pid = (uint32_t)child;
	rank_begin(&world, 0);
	health_tell(world.ranks[1], ERR_REMOTE, 1, "broken");
	EQ(waitpid(child, NULL, 0), child);
	if (health_has_ended(world.ranks[0], 2)) {
		EQ(health_is_dead(world.ranks[0], 2), true);
		EQ(health_look(world.ranks[0], &culprit), ERR_REMOTE);
		EQ(culprit, 2);
		EQ(health_check(world.ranks[0], needs_all, NULL, &culprit), ERR_REMOTE);
		EQ(culprit, 2);
	} else {
		puts("no descriptors of processes here");
	}
	world_end(&world);
}

int main(void)
{
	all_well();
	one_fails();
	first_stays();
	one_leaves();
	one_dies();
	return 0;
}
