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

/* The connections of all ranks of a process take a quarter of its files at most. */
static void check_files(void)
{
	static const uint64_t limits[] = {0, 100, 256, 1024, 4096, 1 << 20, UINT64_MAX};
	static const uint32_t counts[] = {1, 2, 7, 8, 63, 1000, UINT32_MAX};

	EQ(squad_of_files(1024, 8, 1), 8);
	EQ(squad_of_files(1024, 8, 8), 1);
	EQ(squad_of_files(1024, 24, 8), 0);
	EQ(squad_of_files(1024, 0, 8), UINT32_MAX);
	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++)
		for (size_t f = 0; f < 49; f++) {
			uint32_t far = counts[f / 7], here = counts[f % 7];
			uint64_t threads = squad_of_files(limits[i], far, here);

			TRUE(threads * far <= limits[i] / 16 / here);
		}
}

int main(void)
{
	check_sizes();
	check_files();
	check_tiles();
	return 0;
}
