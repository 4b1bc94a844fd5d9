#include "tune/squad.h"

#include "base/param.h"

/* Less than that is moved by the caller before another thread has woken up
 * (docs/design/15). */
enum { SHARE_BYTES = 32 << 10, MESSAGE_SHARE_BYTES = 512 << 10, LINE_BYTES = 64 };

uint32_t squad_size(size_t chunk_bytes, uint32_t most, size_t share_bytes)
{
	size_t shares = chunk_bytes / (share_bytes ? share_bytes : SHARE_BYTES);

	if (shares > most)
		shares = most;
	return shares > 1 ? (uint32_t)shares : 1;
}

uint32_t squad_shares(size_t bytes, uint32_t most, size_t share_bytes)
{
	return squad_size(bytes, most, share_bytes ? share_bytes : MESSAGE_SHARE_BYTES);
}

size_t squad_tile(size_t chunk_bytes, size_t tile, uint32_t threads)
{
	size_t rounds = (chunk_bytes + tile * threads - 1) / (tile * threads);
	size_t share = chunk_bytes / (rounds * threads) + 1;

	share = (share + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
	return threads > 1 && !param_int(PARAM_TILE) && share < tile ? share : tile;
}
