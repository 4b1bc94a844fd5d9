/* By how many threads a call is moved, and that each gets as many tiles as the others. */
#include "tune/squad.h"

#include "test.h"

static void check_sizes(void)
{
	EQ(squad_size(0, 4, 0), 1);
	EQ(squad_size(60 << 10, 4, 0), 1);
	EQ(squad_size(64 << 20, 4, 0), 4);
	EQ(squad_size(64 << 20, 1, 0), 1);
	EQ(squad_size(64 << 20, 0, 0), 1);
	EQ(squad_size(1000, 4, 500), 2);
	EQ(squad_size(1000, 4, 501), 1);
	EQ(squad_size(1000, 4, 1), 4);
	EQ(squad_shares(1000, 4, 300), 3);
	EQ(squad_shares((1 << 20) - 1, 4, 0), 1);
	EQ(squad_shares(1 << 20, 4, 0), 2);
	EQ(squad_shares(64 << 20, 4, 0), 4);
	EQ(squad_shares(64 << 20, 0, 0), 1);
}

/* All tiles but the last few are of one length, and the threads' counts do not differ. */
static void check_tiles(void)
{
	for (size_t chunk = 1000; chunk < 40u << 20; chunk = chunk * 5 / 3 + 8)
		for (uint32_t threads = 1; threads <= 8; threads++) {
			size_t most = 512 << 10, tile = squad_tile(chunk, most, threads);
			size_t tiles = (chunk + tile - 1) / tile;

			TRUE(tile <= most && tile > 0);
			EQ(tile % 64, 0);
			if (threads == 1)
				EQ(tile, most);
			else if (chunk >= threads * 128 * 64)
				EQ(tiles % threads, 0);
		}
}

int main(void)
{
	check_sizes();
	check_tiles();
	return 0;
}
