/* References: addresses between ranks of one process, regions between processes, and
 * what only the kernel can reach. */
#include "link/ref.h"

#include "child.h"
#include "link/foreign.h"
#include "link/region.h"

enum { PAGE = 4096, MINE = 0, THEIRS = 1 };

/* What the parent, rank 0, tells the child, rank 1. */
struct show {
	uint64_t ref;
	uint32_t directory;
	char expected[20];
};

/* Freed at the end: a table only borrows them. */
static struct peers *made[8];

static struct peers *peers_of(struct board *board, uint32_t rank)
{
	uint32_t i = 0;

	while (made[i])
		i++;
	EQ(peers_create(
		   &(struct peers_args){.board = board, .rank = rank, .rank_count = 2},
		   &made[i]),
		OK);
	return made[i];
}

static void made_free(void)
{
	for (uint32_t i = 0; i < sizeof(made) / sizeof(made[0]); i++)
		peers_destroy(made[i]);
}

static void test_one_process(void)
{
	struct ref_table *tables[2];
	char ordinary[] = "ordinary";
	struct board *board;
	uint32_t directory;
	uint64_t ref;
	void *ptr;

	EQ(board_create(&(struct board_size){2, 1, 2, 1}, "", &board), OK);
	for (uint32_t rank = 0; rank < 2; rank++)
		board_status(board, rank)->pid = (uint32_t)getpid();
	for (uint32_t rank = 0; rank < 2; rank++) /* zero copy or not: it is a load */
		EQ(ref_table_create(peers_of(board, rank), rank == 0, &tables[rank]), OK);
	for (uint32_t rank = 0; rank < 2; rank++) {
		ref = ref_make(tables[rank], ordinary + 2, 3, &directory);
		TRUE(ref != REF_NONE);
		EQ(ref_follow(tables[!rank], rank, ref, directory, &ptr), OK);
		TRUE(ptr == ordinary + 2);
	}
	ref = ref_make_foreign(ordinary);
	TRUE(!ref_is_foreign(tables[0], 1, ref)); /* in reach after all */
	EQ(ref_follow(tables[0], 1, ref, directory, &ptr), OK);
	TRUE(ptr == ordinary);
	EQ(ref_follow(tables[0], 1, REF_NONE, directory, &ptr), ERR_REMOTE);
	TRUE(strstr(err_last(), "means nothing"));
	ref_table_destroy(tables[0]);
	ref_table_destroy(tables[1]);
	ref_table_destroy(NULL);
	board_release(board);
}

/* The child's side of a board of two that the parent made. */
static struct ref_table *child_table(const struct child *parent, struct board **board)
{
	struct board_address address;
	struct ref_table *table;

	child_hear(parent, &address, sizeof(address));
	EQ(board_attach(&address, &(struct board_size){2, 1, 2, 1}, board), OK);
	EQ(ref_table_create(peers_of(*board, THEIRS), true, &table), OK);
	return table;
}

static struct ref_table *parent_table(
	const struct child *child, bool zero_copy, struct board **board)
{
	struct board_address address;
	struct ref_table *table;

	EQ(board_create(&(struct board_size){2, 1, 2, 1}, "", board), OK);
	board_status(*board, MINE)->pid = (uint32_t)getpid();
	board_status(*board, THEIRS)->pid = (uint32_t)child->pid;
	address = board_address(*board);
	child_say(child, &address, sizeof(address));
	EQ(ref_table_create(peers_of(*board, MINE), zero_copy, &table), OK);
	return table;
}

/* Follow what is shown until nothing more comes; answer to each. */
static void follow_in_child(const struct child *parent)
{
	struct board *board;
	struct ref_table *table = child_table(parent, &board);
	struct show show;
	void *ptr;

	child_hear(parent, &show, sizeof(show));
	while (show.ref != REF_NONE) {
		EQ(ref_follow(table, MINE, show.ref, show.directory, &ptr), OK);
		TRUE(!ref_is_foreign(table, MINE, show.ref));
		EQ_STR(ptr, show.expected);
		strcat(ptr, " seen");
		child_say(parent, &show, sizeof(show));
		child_hear(parent, &show, sizeof(show));
	}
	/* not a slot of the directory, one it does not show, and beyond the end of one */
	EQ(ref_follow(table, MINE, 2ull << 62 | 300ull << 48, 1, &ptr), ERR_REMOTE);
	EQ(ref_follow(table, MINE, 2ull << 62 | 200ull << 48, 1, &ptr), ERR_REMOTE);
	TRUE(strstr(err_last(), "does not show"));
	EQ(ref_follow(table, MINE, 2ull << 62 | 1ull << 40, show.directory, &ptr),
		ERR_REMOTE);
	TRUE(strstr(err_last(), "beyond"));
	EQ(ref_follow(table, MINE, 1ull << 62 | 4096, 1, &ptr), ERR_REMOTE);
	ref_table_destroy(table);
	board_release(board);
}

/* Write a text, show it to the child, and see that it was read in place. */
static void show_text(const struct child *child, struct ref_table *table, char *at,
	const char *text, struct show *show)
{
	char seen[40];

	strcpy(at, text);
	strcpy(show->expected, text);
	show->ref = ref_make(table, at, 30, &show->directory);
	TRUE(show->ref != REF_NONE);
	child_say(child, show, sizeof(*show));
	child_hear(child, show, sizeof(*show));
	snprintf(seen, sizeof(seen), "%s seen", text);
	EQ_STR(at, seen);
}

static void test_two_processes(void)
{
	struct child child = child_start(follow_in_child);
	struct board *board;
	struct ref_table *table = parent_table(&child, true, &board);
	struct show show = {0}, again = {0};
	char ordinary[30];
	void *first, *second, *kept;

	EQ(region_alloc(PAGE, &first), OK);
	EQ(region_alloc(PAGE, &kept), OK);
	show_text(&child, table, first, "begin", &show);
	show_text(&child, table, (char *)first + PAGE - 30, "end", &again);
	EQ(again.directory, show.directory); /* the same region, the same directory */
	show_text(&child, table, kept, "another region", &again);
	TRUE(again.directory != show.directory);
	TRUE(again.ref != show.ref);

	/* the slot changes hands: the old memory must not be what is seen */
	EQ(region_free(first), OK);
	EQ(region_alloc(2 * PAGE, &second), OK);
	show_text(&child, table, second, "new memory", &again);
	EQ(again.ref, show.ref);
	TRUE(again.directory != show.directory);
	show_text(&child, table, (char *)kept + 50, "kept", &again);

	/* what is in no region, or not wholly, has no reference */
	EQ(ref_make(table, ordinary, sizeof(ordinary), &show.directory), REF_NONE);
	EQ(ref_make(table, (char *)kept + PAGE - 30, 31, &show.directory), REF_NONE);
	show.ref = REF_NONE;
	child_say(&child, &show, sizeof(show));
	child_join(&child);
	EQ(region_free(second), OK);
	EQ(region_free(kept), OK);
	ref_table_destroy(table);
	board_release(board);
}

static void show_foreign(const struct child *parent)
{
	uint64_t token = 0x1234567890abcdef, ref = ref_make_foreign(&token);
	struct board *board;
	struct ref_table *table = child_table(parent, &board);

	child_say(parent, &ref, sizeof(ref));
	child_hear(parent, &ref, sizeof(ref));
	ref_table_destroy(table);
	board_release(board);
}

/* The parent reads the child: a descendant is what the strictest kernels still allow. */
static bool test_foreign(void)
{
	struct child child = child_start(show_foreign);
	struct board *board;
	struct ref_table *table = parent_table(&child, false, &board);
	uint64_t ref, found = 0;
	uint32_t directory, pid = (uint32_t)child.pid;
	bool works;
	void *region, *theirs;

	EQ(region_alloc(PAGE, &region), OK); /* zero copy is off: not even a region */
	EQ(ref_make(table, region, PAGE, &directory), REF_NONE);
	EQ(region_free(region), OK);
	child_hear(&child, &ref, sizeof(ref));
	TRUE(ref_is_foreign(table, THEIRS, ref));
	TRUE(!ref_is_foreign(table, THEIRS, REF_NONE));
	EQ(ref_follow(table, THEIRS, ref, 0, &theirs), OK);
	works = foreign_works(pid, theirs, 0x1234567890abcdef);
	TRUE(!foreign_works(pid, theirs, 1));
	if (works) {
		EQ(foreign_read(pid, &found, theirs, sizeof(found)), OK);
		EQ(found, 0x1234567890abcdef);
		EQ(foreign_read(pid, &found, (void *)8, sizeof(found)), ERR_SYSTEM);
	}
	ref = works;
	child_say(&child, &ref, sizeof(ref));
	child_join(&child);
	if (works)
		EQ(foreign_read(pid, &found, theirs, sizeof(found)), ERR_REMOTE);
	ref_table_destroy(table);
	board_release(board);
	return works;
}

int main(void)
{
	atexit(made_free);
	test_one_process();
	test_two_processes();
	if (test_foreign())
		return 0;
	fprintf(stderr, "skipped: the kernel refuses cross-memory attach\n");
	return TEST_SKIP;
}
