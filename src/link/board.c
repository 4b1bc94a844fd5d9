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
#include "link/pair.h"
#include "link/region.h"

enum {
	LAYERS_MAX = 64,
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
static const char board_magic[9] = "weftcom8";

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

	fixed = BOARD_CARDS_AT + BOARD_CARDS * sizeof(struct card) +
		BOARD_REGIONS * sizeof(struct region_entry) + n * sizeof(uint32_t);
	board->rank_count = size->rank_count;
	board->signal_count = size->signal_count;
	board->layer_count = size->layers ? size->layers : 1;
	board->eager_bytes = n <= 16 ? 32 << 10 : n <= 64 ? 16 << 10 : 4 << 10;
	board->bulk_bytes = clamp((32u << 20) / n, 256 << 10, 4 << 20) / PAGE * PAGE;
	board->pair_bytes = clamp(
		(16u << 20) / (n * n * BOX_LETTERS), 2 << 10, 128 << 10);
	board->pair_bytes = board->pair_bytes / 64 * 64;
	board->eager_offset = align_up(fixed, PAGE);
	board->bulk_offset = board->eager_offset + BOARD_CARDS * board->eager_bytes;
	board->rank_bytes = align_up(board->bulk_offset + board->bulk_bytes, PAGE);
	board->rank_bytes += RANK_SKEW;
	board->bytes = HEADER_BYTES + n * board->layer_count * board->rank_bytes;
	pair_layout(board);
}

void board_room(uint32_t rank_count, size_t *eager_bytes, size_t *bulk_bytes)
{
	struct board board;

	board_layout(&board, &(struct board_size){rank_count, 1, rank_count, 1});
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
	header->layer_count = board->layer_count;
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
		header->signal_count && header->signal_count <= SIGNALS_MAX &&
		header->layer_count && header->layer_count <= LAYERS_MAX) {
		size = (struct board_size){header->rank_count, header->signal_count,
			header->job_ranks, header->layer_count};
		board_layout(view, &size);
	}
	if (!view->bytes || view->bytes > bytes)
		return err_set(ERR_ARGUMENT,
			"this is no communicator of this version of the library");
	view->token = header->token;
	view->view_bytes = bytes;
	return OK;
}

static void board_free(struct board *board)
{
	pairs_close(board);
	if (board->base)
		munmap(board->base, board->bytes);
	if (board->fd >= 0)
		close(board->fd);
	free(board);
}

/* Laid out, with nothing behind it yet. */
static enum err board_alloc(const struct board_size *size, struct board **board)
{
	struct shared_board *shared = calloc(1, sizeof(*shared));

	if (shared) {
		shared->board.fd = -1;
		board_layout(&shared->board, size);
		if (pairs_open(&shared->board)) {
			*board = &shared->board;
			return OK;
		}
	}
	free(shared);
	return err_set(
		ERR_SYSTEM, "no memory for a communicator of %u", size->rank_count);
}

static enum err segment_make(struct board *board)
{
	void *base;

	board->fd = memfd_create("weft-comm", MFD_CLOEXEC);
	if (board->fd < 0 || fsize_truncate(board->fd, board->bytes))
		return err_set(ERR_SYSTEM, "shared memory of %zu bytes: %m%s",
			board->bytes, fsize_hint(errno));
	base = mmap(NULL, board->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, board->fd, 0);
	if (base == MAP_FAILED)
		return err_set(ERR_SYSTEM, "map %zu bytes: %m", board->bytes);
	board->base = base;
	return OK;
}

enum err board_create(
	const struct board_size *size, const char *name, struct board **board)
{
	struct board *b;
	enum err e = board_alloc(size, &b);

	if (e)
		return e;
	randombytes_buf(&b->token, sizeof(b->token));
	e = segment_make(b);
	if (e) {
		board_free(b);
		return e;
	}
	header_write(b, size, name);
	board_keep((struct shared_board *)b);
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

static enum err segment_find(struct board *board, const struct board_address *address)
{
	void *base;
	enum err e;

	if (address->bytes != board->bytes)
		return err_set(ERR_USAGE,
			"rank 0 laid out %lu bytes, this rank %zu: another version?",
			(unsigned long)address->bytes, board->bytes);
	e = region_open_peer(address->pid, address->fd, board->bytes, &board->fd);
	if (!e)
		e = region_map_open(address->pid, board->fd, board->bytes, &base);
	if (e)
		return e;
	board->base = base;
	if (((struct board_header *)base)->token != address->token)
		return err_set(ERR_REMOTE,
			"process %d offered a segment that is not this communicator",
			address->pid);
	return OK;
}

enum err board_attach(const struct board_address *address, const struct board_size *size,
	struct board **board)
{
	struct board *b;
	enum err e;

	*board = board_find(address->token);
	if (*board)
		return OK;
	e = board_alloc(size, &b);
	if (e)
		return e;
	b->token = address->token;
	e = segment_find(b, address);
	if (e) {
		board_free(b);
		return e;
	}
	board_keep((struct shared_board *)b);
	*board = b;
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
	board_free(board);
}

char *board_part(const struct board *board, uint32_t rank)
{
	return board->base + HEADER_BYTES + rank * board->rank_bytes;
}

struct card *board_card(const struct board *board, uint32_t rank, uint64_t call)
{
	char *cards = board_part(board, rank) + BOARD_CARDS_AT;

	return (struct card *)(void *)cards + call % BOARD_CARDS;
}

struct rank_status *board_status(const struct board *board, uint32_t rank)
{
	return (struct rank_status *)(void *)board_part(board, rank);
}

struct region_entry *board_region(const struct board *board, uint32_t rank, uint32_t slot)
{
	return (struct region_entry *)(void *)(board_card(board, rank, 0) + BOARD_CARDS) +
	       slot;
}

char *board_eager(const struct board *board, uint32_t rank, uint64_t call)
{
	return board_part(board, rank) + board->eager_offset +
	       call % BOARD_CARDS * board->eager_bytes;
}

char *board_bulk(const struct board *board, uint32_t rank)
{
	return board_part(board, rank) + board->bulk_offset;
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
