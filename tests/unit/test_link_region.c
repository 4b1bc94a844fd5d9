/* The registry of mappable memory: what belongs to a region, and who else can map it. */
#include "link/region.h"

#include "child.h"

enum { PAGE = 4096 };

static void test_find(void)
{
	struct region region = {0};
	char *base;
	void *ptr;

	EQ(region_alloc(3 * PAGE - 100, &ptr), OK);
	base = ptr;
	EQ((uintptr_t)ptr % PAGE, 0);
	for (size_t i = 0; i < 3 * PAGE - 100; i++)
		EQ(base[i], 0);

	TRUE(region_find(base, 3 * PAGE, &region)); /* whole pages belong to it */
	TRUE(region.base == base);
	EQ(region.bytes, 3 * PAGE);
	TRUE(region.id && region_is_live(region.id));
	TRUE(region_find(base + 100, 200, &region));
	TRUE(region.base == base); /* not where the question began */
	TRUE(region_find(base + 3 * PAGE - 1, 1, &region));
	TRUE(region_find(base + 3 * PAGE, 0, &region));

	TRUE(!region_find(base, 3 * PAGE + 1, &region));
	TRUE(!region_find(base + 3 * PAGE - 1, 2, &region));
	TRUE(!region_find(base + 3 * PAGE, 1, &region));
	TRUE(!region_find(base - 1, 1, &region));
	TRUE(!region_find(base - 1, 2, &region));
	TRUE(!region_find(base + 1, SIZE_MAX, &region)); /* the end wraps */
	TRUE(!region_find(&region, 1, &region));
	TRUE(!region_find(NULL, 0, &region));
	EQ(region_free(ptr), OK);
	TRUE(!region_is_live(region.id));
}

/* An answer remembered from before must not outlive the memory. */
static void test_find_after_free(void)
{
	struct region region;
	uint64_t before, id;
	void *ptr;

	EQ(region_alloc(PAGE, &ptr), OK);
	for (int i = 0; i < 4; i++)
		TRUE(region_find(ptr, PAGE, &region));
	id = region.id;
	before = region_generation();
	EQ(region_free(ptr), OK);
	TRUE(region_generation() > before);
	TRUE(!region_find(ptr, PAGE, &region));
	TRUE(!region_find(ptr, 0, &region));
	EQ(region_alloc(PAGE, &ptr), OK);
	TRUE(region_find(ptr, PAGE, &region));
	TRUE(region.id != id);
	EQ(region_free(ptr), OK);
}

/* More than one growth of the array, freed from the middle outwards. */
static void test_many(void)
{
	enum { MANY = 100 };
	struct region region;
	void *ptrs[MANY];
	uint64_t ids[MANY];

	for (size_t i = 0; i < MANY; i++) {
		EQ(region_alloc((i % 3 + 1) * PAGE, &ptrs[i]), OK);
		TRUE(region_find(ptrs[i], 1, &region));
		ids[i] = region.id;
	}
	for (size_t i = 0; i < MANY; i++) {
		size_t gone = (MANY / 2 + i) % MANY;

		EQ(region_free(ptrs[gone]), OK);
		for (size_t k = 0; k < MANY; k++) {
			bool live = (k + MANY - MANY / 2) % MANY > i;

			EQ(region_find(ptrs[k], (k % 3 + 1) * PAGE, &region), live);
			EQ(region_is_live(ids[k]), live);
			EQ(live && region.id != ids[k], false);
		}
	}
}

static void test_refusals(void)
{
	uint64_t before = region_generation();
	struct region region;
	char here;
	void *ptr = &here;

	EQ(region_free(&here), ERR_ARGUMENT);
	TRUE(strstr(err_last(), "ncclMemAlloc"));
	EQ(region_free(NULL), ERR_ARGUMENT);
	EQ(region_generation(), before);
	EQ(region_alloc(SIZE_MAX, &ptr), ERR_ARGUMENT);
	TRUE(ptr == &here); /* untouched on failure */
	EQ(region_alloc(0, &ptr), OK);
	EQ(region_free((char *)ptr + 1), ERR_ARGUMENT);
	TRUE(region_find(ptr, 1, &region));
	EQ(region_free(ptr), OK);
	EQ(region_free(ptr), ERR_ARGUMENT);
}

static void map_in_child(const struct child *parent)
{
	struct region theirs;
	void *base, *none = NULL;
	int pipe_fd;

	child_hear(parent, &theirs, sizeof(theirs));
	child_hear(parent, &pipe_fd, sizeof(pipe_fd));
	EQ(region_map_peer(parent->pid, theirs.fd, theirs.bytes + 1, &none), ERR_REMOTE);
	TRUE(strstr(err_last(), "does not have"));
	EQ(region_map_peer(parent->pid, 9999, theirs.bytes, &none), ERR_SYSTEM);
	EQ(region_map_peer(parent->pid, pipe_fd, 0, &none), ERR_REMOTE);
	TRUE(!none);
	EQ(region_map_peer(parent->pid, theirs.fd, theirs.bytes, &base), OK);
	EQ_STR((char *)base + PAGE, "from the parent");
	strcpy(base, "from the child");
	region_unmap(base, theirs.bytes);
}

static void test_other_process(void)
{
	struct child child = child_start(map_in_child);
	struct region region;
	void *ptr;

	EQ(region_alloc(2 * PAGE, &ptr), OK);
	strcpy((char *)ptr + PAGE, "from the parent");
	TRUE(region_find(ptr, 1, &region));
	child_say(&child, &region, sizeof(region));
	child_say(&child, &child.in, sizeof(child.in));
	child_join(&child);
	EQ_STR(ptr, "from the child");
	EQ(region_free(ptr), OK);
}

struct offer {
	int pid, fd;
	size_t bytes;
};

/* Another process maps the region, and writes all of it whenever it is told to. */
static void write_when_told(const struct child *parent)
{
	struct offer offer;
	void *base;

	child_hear(parent, &offer, sizeof(offer));
	EQ(region_map_peer(offer.pid, offer.fd, offer.bytes, &base), OK);
	for (char value; read(parent->in, &value, 1) == 1;) {
		memset(base, value, offer.bytes);
		child_say(parent, &value, 1);
	}
	region_unmap(base, offer.bytes);
}

static void let_write(const struct child *child, char value)
{
	child_say(child, &value, 1);
	child_hear(child, &value, 1);
}

/* What was withdrawn is zeros on pages of our own, what lies beside it on its pages is as
 * it was; pages that were not touched are still shared. */
static void withdraw(size_t from, size_t bytes)
{
	struct child child = child_start(write_when_told);
	size_t first = from / PAGE * PAGE, end = (from + bytes + PAGE - 1) / PAGE * PAGE;
	struct offer offer = {.pid = getpid(), .bytes = 8 * PAGE};
	struct region region;
	char *base;
	void *ptr;

	EQ(region_alloc(offer.bytes, &ptr), OK);
	base = ptr;
	TRUE(region_find(base, 1, &region));
	offer.fd = region.fd;
	child_say(&child, &offer, sizeof(offer));
	let_write(&child, 1);
	EQ(base[0], 1);
	region_withdraw(base + from, bytes);
	let_write(&child, 2);
	for (size_t i = 0; i < offer.bytes; i++)
		EQ(base[i], i >= from && i < from + bytes ? 0
			    : i >= first && i < end	  ? 1
							  : 2);
	memset(base, 3, offer.bytes); /* ours to use */
	TRUE(!region_find(base, 1, &region));
	TRUE(!region_is_live(region.id));
	child_join(&child);
	EQ(region_free(base), OK);
}

static void test_withdraw(void)
{
	char mine[100];

	withdraw(0, 8 * PAGE);
	withdraw(PAGE, 2 * PAGE);
	withdraw(PAGE + 10, 20);
	withdraw(PAGE - 10, 20);
	withdraw(100, 3 * PAGE);
	withdraw(3 * PAGE, 100);
	withdraw(8 * PAGE - 1, 1);
	memset(mine, 1, sizeof(mine));
	region_withdraw(mine, sizeof(mine)); /* no region: nobody else can write it */
	EQ(mine[0] + mine[99], 2);
}

int main(void)
{
	test_find();
	test_withdraw();
	test_find_after_free();
	test_many();
	test_refusals();
	test_other_process();
	return 0;
}
