#include "link/pair.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/fsize.h"

enum {
	PAGE = 4096,
	CHUNK_BYTES = 1 << 20, /* at least; of a few ranks it is one or two pairs */
	CHUNKS_MAX = 4096,     /* chunks grow beyond that instead */
	/* A load of a box would look like one of what was just stored in a slot at the
	 * same offset of another page, until the whole address is compared. So boxes and
	 * slots of neighbours move on by an odd number of pairs of lines: what is sent
	 * each way by two ranks stays apart. */
	SKEW = 9 * 128,
	SKEW_OF_SMALL = 128, /* where slots are few pages, and pairs may be many */
	SMALL_BYTES = 16 << 10
};

static size_t skew_of(const struct board *board)
{
	return board->pair_bytes < SMALL_BYTES ? SKEW_OF_SMALL : SKEW;
}

/* Both ends may have taken a number for the same pair. */
static uint64_t numbers_of(const struct board *board)
{
	return 2ull * board->rank_count * board->rank_count;
}

void pair_layout(struct board *board)
{
	size_t bytes =
		sizeof(struct pair_room) + board->signal_count * sizeof(struct signal) +
		BOX_LETTERS * (skew_of(board) + board->pair_bytes) + skew_of(board);
	uint32_t shift = 0;

	while (bytes << (shift + 1) <= CHUNK_BYTES ||
		numbers_of(board) >> shift > CHUNKS_MAX)
		shift++;
	board->pair_stride = bytes;
	board->chunk_shift = shift;
	board->chunk_bytes = ((bytes << shift) + PAGE - 1) / PAGE * PAGE;
	board->chunk_count = (uint32_t)(numbers_of(board) >> shift) + 1;
}

bool pairs_open(struct board *board)
{
	board->chunks = calloc(board->chunk_count, sizeof(*board->chunks));
	return board->chunks;
}

void pairs_close(struct board *board)
{
	for (uint32_t i = 0; board->chunks && i < board->chunk_count; i++) {
		char *chunk = atomic_load(&board->chunks[i]);

		if (chunk)
			munmap(chunk, board->chunk_bytes);
	}
	free(board->chunks);
	board->chunks = NULL;
}

static _Atomic uint32_t *pair_word(const struct board *board, uint32_t from, uint32_t to)
{
	/* the directory of regions ends where the words begin */
	return (_Atomic uint32_t *)(void *)board_region(board, from, BOARD_REGIONS) + to;
}

static size_t chunk_offset(const struct board *board, uint32_t chunk)
{
	return (board->bytes + PAGE - 1) / PAGE * PAGE + chunk * board->chunk_bytes;
}

/* The file ends behind this chunk, or further on. Only a file that grows can be grown by
 * several at once, so it is not cut to a length: its last page is asked for. */
static enum err chunk_grow(const struct board *board, uint32_t chunk)
{
	size_t end = chunk_offset(board, chunk) + board->chunk_bytes;
	struct fsize hold;
	int rc;

	fsize_begin(&hold);
	do
		rc = fallocate(board->fd, 0, (off_t)(end - PAGE), PAGE);
	while (rc && errno == EINTR);
	fsize_end(&hold);
	if (rc)
		return err_set(ERR_SYSTEM,
			"no room for %zu bytes more of shared memory, which a rank needs "
			"to talk to another: %m%s",
			board->chunk_bytes, fsize_hint(errno));
	return OK;
}

/* Where a chunk lies in this process. */
static enum err chunk_map(const struct board *board, uint32_t chunk, char **base)
{
	char *mine, *theirs = NULL;

	*base = atomic_load_explicit(&board->chunks[chunk], memory_order_acquire);
	if (*base)
		return OK;
	mine = mmap(NULL, board->chunk_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
		board->fd, (off_t)chunk_offset(board, chunk));
	if (mine == MAP_FAILED)
		return err_set(ERR_SYSTEM,
			"map %zu bytes, which a rank needs to talk to another: %m",
			board->chunk_bytes);
	if (atomic_compare_exchange_strong(&board->chunks[chunk], &theirs, mine)) {
		*base = mine;
		return OK;
	}
	munmap(mine, board->chunk_bytes); /* another thread has mapped it meanwhile */
	*base = theirs;
	return OK;
}

static struct pair_room *pair_at(const struct board *board, char *chunk, uint32_t number)
{
	uint32_t within = (number - 1) & ((1u << board->chunk_shift) - 1);

	return (struct pair_room *)(void *)(chunk + within * board->pair_stride);
}

/* In a view the whole file is mapped in one piece, as long as it was then. */
static struct pair_room *pair_view(const struct board *board, uint32_t number)
{
	uint32_t chunk = (number - 1) >> board->chunk_shift;

	if (chunk >= board->chunk_count ||
		chunk_offset(board, chunk) + board->chunk_bytes > board->view_bytes)
		return NULL;
	return pair_at(board, board->base + chunk_offset(board, chunk), number);
}

static enum err pair_reach(
	const struct board *board, uint32_t number, struct pair_room **pair)
{
	char *chunk;
	enum err e;

	if (number > numbers_of(board)) /* any process of the job can write there */
		return err_set(ERR_SYSTEM,
			"the shared memory of this job names pair %u of %llu: a process "
			"has overwritten it",
			number, (unsigned long long)numbers_of(board));
	e = chunk_map(board, (number - 1) >> board->chunk_shift, &chunk);
	if (!e)
		*pair = pair_at(board, chunk, number);
	return e;
}

struct pair_room *pair_find(const struct board *board, uint32_t from, uint32_t to)
{
	/* pairs with pair_get(): the file is long enough for what the word says */
	uint32_t number = atomic_load_explicit(
		pair_word(board, from, to), memory_order_acquire);
	struct pair_room *pair = NULL;

	if (!number)
		return NULL;
	if (!board->chunks)
		return pair_view(board, number);
	return pair_reach(board, number, &pair) ? NULL : pair;
}

enum err pair_get(
	const struct board *board, uint32_t from, uint32_t to, struct pair_room **pair)
{
	struct board_header *header = (struct board_header *)(void *)board->base;
	_Atomic uint32_t *word = pair_word(board, from, to);
	uint32_t number = atomic_load_explicit(word, memory_order_acquire), theirs = 0;
	enum err e;

	if (number)
		return pair_reach(board, number, pair);
	number = atomic_fetch_add(&header->pair_count, 1) + 1;
	if (number > numbers_of(board))
		return err_set(ERR_SYSTEM,
			"ranks %u and %u of this host have no room to talk: making it "
			"failed too often before",
			from, to);
	e = chunk_grow(board, (number - 1) >> board->chunk_shift);
	if (e)
		return e;
	if (!atomic_compare_exchange_strong(word, &theirs, number))
		number = theirs;
	return pair_reach(board, number, pair);
}

char *pair_slot(const struct board *board, struct pair_room *pair, uint64_t letter)
{
	return (char *)(pair->signals + board->signal_count) + skew_of(board) +
	       letter % BOX_LETTERS * (board->pair_bytes + skew_of(board));
}
