/* Both sides of a tray see the same slots and words, nobody sees another's, and who waits
 * is set free. */
#include "exec/cuda/meet/trays.h"

#include <string.h>

#include "test.h"

enum { RANKS_MAX = 64, BEYOND = 0x3fffffff };

/* ---- a driver that takes notes ---- */

static int pinned, refusals;

static cu_result pin(void *ptr, size_t bytes, unsigned flags)
{
	(void)flags;
	EQ((uintptr_t)ptr % 4096, 0);
	EQ(bytes % 4096, 0);
	if (refusals)
		return CU_NOT_SUPPORTED;
	pinned++;
	return CU_OK;
}

static cu_result unpin(void *ptr)
{
	TRUE(ptr != NULL);
	pinned--;
	return CU_OK;
}

static cu_result device_pointer(cu_ptr *device, void *host, unsigned flags)
{
	EQ(flags, 0);
	*device = (cu_ptr)(uintptr_t)host;
	return CU_OK;
}

static const struct cuda_driver driver = {.mem_host_register = pin,
	.mem_host_unregister = unpin,
	.mem_host_device_pointer = device_pointer};

/* ---- ranks ---- */

static struct trays *ranks[RANKS_MAX];

static void open_all(uint32_t n)
{
	struct trays_address addresses[RANKS_MAX];

	for (uint32_t r = 0; r < n; r++)
		EQ(trays_open(r, n, &ranks[r], &addresses[r]), OK);
	for (uint32_t r = 0; r < n; r++)
		EQ(trays_connect(ranks[r], &driver, addresses), OK);
	EQ(pinned, 0); /* not before it is used */
}

static void close_all(uint32_t n)
{
	for (uint32_t r = 0; r < n; r++)
		trays_close(ranks[r]);
	trays_close(NULL);
	EQ(pinned, 0);
}

static uint32_t *word_at(cu_ptr device)
{
	return (uint32_t *)(uintptr_t)device;
}

/* Every slot of every tray has bytes of its own, which its receiver finds. */
static void test_slots(uint32_t n)
{
	struct tray *tray;
	size_t bytes;

	open_all(n);
	bytes = trays_slot_bytes(ranks[0]);
	TRUE(bytes > 0);
	for (uint32_t to = 0; to < n; to++)
		for (uint32_t from = 0; from < n; from++) {
			if (from == to) {
				EQ(trays_in(ranks[to], to, &tray), OK);
				memset(tray_slot(ranks[to], tray, 0), 0xff, bytes);
				continue;
			}
			EQ(trays_out(ranks[from], to, &tray), OK);
			for (uint32_t k = 0; k < TRAY_SLOTS; k++)
				memset(tray_slot(ranks[from], tray, TRAY_SLOTS + k),
					(int)(from * 16 + to * TRAY_SLOTS + k), bytes);
			*word_at(tray->filled) = 100 * from + to;
		}
	for (uint32_t to = 0; to < n; to++)
		for (uint32_t from = 0; from < n; from++) {
			EQ(trays_in(ranks[to], from, &tray), OK);
			for (uint32_t k = 0; k < TRAY_SLOTS && from != to; k++) {
				char *slot = tray_slot(ranks[to], tray, k);
				char want = (char)(from * 16 + to * TRAY_SLOTS + k);

				EQ(slot[0], want);
				EQ(slot[bytes - 1], want);
			}
			if (from != to)
				EQ(*word_at(tray->filled), 100 * from + to);
			else
				EQ(*tray_slot(ranks[to], tray, 0), (char)0xff);
		}
	close_all(n);
}

static void test_words(void)
{
	struct tray *out, *in;

	open_all(2);
	trays_let_go(ranks[0], BEYOND); /* nothing is waited for yet */
	EQ(trays_out(ranks[0], 1, &out), OK);
	EQ(trays_in(ranks[1], 0, &in), OK);
	TRUE(tray_is_emptied(out, 0));
	TRUE(tray_is_emptied(out, (uint32_t)-3)); /* of the first there was none before */
	TRUE(!tray_is_emptied(out, 1));
	*word_at(in->emptied) = 1;
	TRUE(tray_is_emptied(out, 1));
	TRUE(!tray_is_emptied(out, 2));
	atomic_store(&out->number, 7);
	atomic_store(&in->number, 3);
	/* the sender ends its own wait, not its receiver's */
	trays_let_go(ranks[0], BEYOND);
	EQ(*word_at(out->emptied), 7u + BEYOND);
	EQ(*word_at(in->filled), 0);
	trays_let_go(ranks[1], BEYOND);
	EQ(*word_at(in->filled), 3u + BEYOND);
	trays_let_go(NULL, BEYOND);
	close_all(2);
}

static void test_refused(void)
{
	struct tray *tray;

	open_all(2);
	refusals = 1;
	EQ(trays_out(ranks[0], 1, &tray), ERR_CUDA);
	EQ(trays_in(ranks[0], 1, &tray), ERR_CUDA);
	refusals = 0;
	EQ(trays_in(ranks[0], 1, &tray), OK);
	close_all(2);
}

int main(void)
{
	test_slots(2);
	test_slots(3);
	test_slots(8);
	test_words();
	test_refused();
	open_all(RANKS_MAX);
	TRUE(trays_slot_bytes(ranks[0]) >= 4096);
	close_all(RANKS_MAX);
	return 0;
}
