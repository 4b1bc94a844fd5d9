#include "link/board.h"

#include <errno.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fsize.h"
#include "base/futex.h"
#include "link/region.h"

enum {
	PAGE = 4096,
	HEADER_BYTES = PAGE,
	SIGNALS_MAX = 1 << 10,
	/* Parts that begin at the same offset in their pages have their cards in the same
	 * set of every cache, which holds eight or twelve lines; and a load of a peer's
	 * card would look like one of what was just stored in ours until the whole
	 * address is compared. An odd number of pairs of lines moves each part on. */
	RANK_SKEW = 9 * 128
};

/* Changes with every change of the layout. */
static const char board_magic[9] = "weftcom4";

/* Segments mapped in this process, so that ranks that are threads share one mapping. */
struct shared_board {
	struct board board; /* first: a board pointer is a shared_board pointer */
	uint32_t users;
	struct shared_board *next;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct shared_board *mapped; /* guarded by lock */

static size_t clamp(size_t value, size_t low, size_t high)
{
	return value < low ? low : value > high ? high : value;
}

static size_t align_up(size_t value, size_t to)
{
	return (value + to - 1) / to * to;
}

/* Sizes shrink with the number of ranks: 64 ranks stay below 64 MB when all is touched.
 */
static void board_layout(struct board *board, const struct board_size *size)
{
	size_t n = size->rank_count, fixed;

	fixed = BOARD_CARDS * sizeof(struct card) + sizeof(struct rank_status) +
		BOARD_REGIONS * sizeof(struct region_entry) + n * sizeof(struct box);
	board->rank_count = size->rank_count;
	board->signal_count = size->signal_count;
	board->signal_offset = fixed;
	fixed += n * size->signal_count * sizeof(struct signal);
	board->eager_bytes = n <= 16 ? 32 << 10 : 16 << 10;
	board->bulk_bytes = clamp((32u << 20) / n, 256 << 10, 4 << 20) / PAGE * PAGE;
	board->pair_bytes = clamp(
		(16u << 20) / (n * n * BOX_LETTERS), 2 << 10, 128 << 10);
	board->pair_bytes = board->pair_bytes / 64 * 64;
	board->eager_offset = align_up(fixed, PAGE);
	board->bulk_offset = board->eager_offset + BOARD_CARDS * board->eager_bytes;
	board->pair_offset = board->bulk_offset + board->bulk_bytes;
	board->rank_bytes = align_up(
		board->pair_offset + n * BOX_LETTERS * board->pair_bytes, PAGE);
	board->rank_bytes += RANK_SKEW;
	board->bytes = HEADER_BYTES + n * board->rank_bytes;
}

void board_room(uint32_t rank_count, size_t *eager_bytes, size_t *bulk_bytes)
{
	struct board board;

	board_layout(&board, &(struct board_size){rank_count, 1, rank_count});
	*eager_bytes = board.eager_bytes;
	*bulk_bytes = board.bulk_bytes;
}

static void board_keep(struct shared_board *shared)
{
	shared->users = 1;
	pthread_mutex_lock(&lock);
	shared->next = mapped;
	mapped = shared;
	pthread_mutex_unlock(&lock);
}

static void header_write(
	const struct board *board, const struct board_size *size, const char *name)
{
	struct board_header *header = (struct board_header *)(void *)board->base;

	header->token = board->token;
	memcpy(header->magic, board_magic, sizeof(header->magic));
	header->rank_count = board->rank_count;
	header->signal_count = board->signal_count;
	header->job_ranks = size->job_ranks;
	header->created_pid = (uint32_t)getpid();
	header->bytes = board->bytes;
	header->created_ns = clock_ns();
	snprintf(header->name, sizeof(header->name), "%s", name);
}

enum err board_view(void *base, size_t bytes, struct board *view)
{
	const struct board_header *header = base;
	struct board_size size;

	*view = (struct board){.base = base, .fd = -1};
	if (bytes >= HEADER_BYTES && !memcmp(header->magic, board_magic, 8) &&
		header->rank_count && header->rank_count <= BOARD_RANKS_MAX &&
		header->signal_count && header->signal_count <= SIGNALS_MAX) {
		size = (struct board_size){
			header->rank_count, header->signal_count, header->job_ranks};
		board_layout(view, &size);
	}
	if (!view->bytes || view->bytes != bytes)
		return err_set(ERR_ARGUMENT,
			"this is no communicator of this version of the library");
	view->token = header->token;
	return OK;
}

enum err board_create(
	const struct board_size *size, const char *name, struct board **board)
{
	struct shared_board *shared = calloc(1, sizeof(*shared));
	struct board *b;

	if (!shared)
		return err_set(ERR_SYSTEM, "no memory for a communicator of %u",
			size->rank_count);
	b = &shared->board;
	board_layout(b, size);
	randombytes_buf(&b->token, sizeof(b->token));
	b->fd = memfd_create("weft-comm", MFD_CLOEXEC);
	if (b->fd < 0 || fsize_truncate(b->fd, b->bytes)) {
		enum err e = err_set(ERR_SYSTEM, "shared memory of %zu bytes: %m%s",
			b->bytes, fsize_hint(errno));

		if (b->fd >= 0)
			close(b->fd);
		free(shared);
		return e;
	}
	b->base = mmap(NULL, b->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, b->fd, 0);
	if (b->base == MAP_FAILED) {
		enum err e = err_set(ERR_SYSTEM, "map %zu bytes: %m", b->bytes);

		close(b->fd);
		free(shared);
		return e;
	}
	header_write(b, size, name);
	board_keep(shared);
	*board = b;
	return OK;
}

static struct board *board_find(uint64_t token)
{
	struct shared_board *shared;

	pthread_mutex_lock(&lock);
	for (shared = mapped; shared && shared->board.token != token;)
		shared = shared->next;
	if (shared)
		shared->users++;
	pthread_mutex_unlock(&lock);
	return shared ? &shared->board : NULL;
}

enum err board_attach(const struct board_address *address, const struct board_size *size,
	struct board **board)
{
	struct shared_board *shared;
	void *base;
	enum err e;

	*board = board_find(address->token);
	if (*board)
		return OK;
	shared = calloc(1, sizeof(*shared));
	if (!shared)
		return err_set(ERR_SYSTEM, "no memory for a communicator of %u",
			size->rank_count);
	board_layout(&shared->board, size);
	shared->board.token = address->token;
	shared->board.fd = -1;
	e = address->bytes == shared->board.bytes
		    ? region_map_peer(
			      address->pid, address->fd, shared->board.bytes, &base)
		    : err_set(ERR_USAGE,
			      "rank 0 laid out %lu bytes, this rank %zu: another "
			      "version?",
			      (unsigned long)address->bytes, shared->board.bytes);
	if (!e && ((struct board_header *)base)->token != address->token) {
		region_unmap(base, shared->board.bytes);
		e = err_set(ERR_REMOTE,
			"process %d offered a segment that is not this communicator",
			address->pid);
	}
	if (e) {
		free(shared);
		return e;
	}
	shared->board.base = base;
	board_keep(shared);
	*board = &shared->board;
	return OK;
}

struct board_address board_address(const struct board *board)
{
	return (struct board_address){.token = board->token,
		.bytes = board->bytes,
		.pid = getpid(),
		.fd = board->fd};
}

void board_release(struct board *board)
{
	struct shared_board *shared = (struct shared_board *)board, **link;

	if (!board)
		return;
	pthread_mutex_lock(&lock);
	if (--shared->users) {
		pthread_mutex_unlock(&lock);
		return;
	}
	for (link = &mapped; *link != shared;)
		link = &(*link)->next;
	*link = shared->next;
	pthread_mutex_unlock(&lock);
	munmap(board->base, board->bytes);
	if (board->fd >= 0)
		close(board->fd);
	free(shared);
}

static char *rank_base(const struct board *board, uint32_t rank)
{
	return board->base + HEADER_BYTES + rank * board->rank_bytes;
}

struct card *board_card(const struct board *board, uint32_t rank, uint64_t call)
{
	return (struct card *)rank_base(board, rank) + call % BOARD_CARDS;
}

struct rank_status *board_status(const struct board *board, uint32_t rank)
{
	return (struct rank_status *)(rank_base(board, rank) +
				      BOARD_CARDS * sizeof(struct card));
}

struct region_entry *board_region(const struct board *board, uint32_t rank, uint32_t slot)
{
	return (struct region_entry *)(board_status(board, rank) + 1) + slot;
}

struct box *board_box(const struct board *board, uint32_t from, uint32_t to)
{
	return (struct box *)(board_region(board, from, BOARD_REGIONS)) + to;
}

struct signal *board_signal(
	const struct board *board, uint32_t from, uint32_t to, uint32_t index)
{
	return (struct signal *)(rank_base(board, from) + board->signal_offset) +
	       (size_t)to * board->signal_count + index;
}

char *board_eager(const struct board *board, uint32_t rank, uint64_t call)
{
	return rank_base(board, rank) + board->eager_offset +
	       call % BOARD_CARDS * board->eager_bytes;
}

char *board_bulk(const struct board *board, uint32_t rank)
{
	return rank_base(board, rank) + board->bulk_offset;
}

char *board_pair_slot(
	const struct board *board, uint32_t from, uint32_t to, uint64_t letter)
{
	return rank_base(board, from) + board->pair_offset +
	       (to * BOX_LETTERS + letter % BOX_LETTERS) * board->pair_bytes;
}

/*
 * A plain store, because a full barrier here would make every announcement wait until all
 * earlier stores have reached memory. So a sleeper that counts itself at the very moment
 * of a store can be missed; that is why sleeps are short and begin shorter.
 */
void word_publish(_Atomic uint64_t *word, _Atomic uint32_t *sleepers, uint64_t value)
{
	atomic_store_explicit(word, value, memory_order_release);
	if (atomic_load_explicit(sleepers, memory_order_relaxed))
		futex_wake(word);
}

void word_sleep(_Atomic uint64_t *word, _Atomic uint32_t *sleepers, uint64_t seen,
	uint32_t timeout_us)
{
	atomic_fetch_add(sleepers, 1);
	if (atomic_load(word) == seen)
		futex_wait(word, (uint32_t)seen, timeout_us);
	atomic_fetch_sub(sleepers, 1);
}
