/*
 * A fuzzer's target without a fuzzer: what it is given are the files named on the command
 * line, each of them changed in many places, and noise, always the same. The first
 * argument is how many inputs of each kind.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BYTES_MAX = 4000 };

static uint64_t state = 1;

static uint32_t draw(uint32_t below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % below;
}

/* Exactly so large, so that a look beyond its end is seen. */
static void feed(const uint8_t *bytes, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	TRUE(copy);
	memcpy(copy, bytes, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

/* Noise; every other time of few different bytes, as small numbers have. */
static void noise_feed(int count)
{
	static uint8_t bytes[BYTES_MAX];

	for (int i = 0; i < count; i++) {
		size_t size = draw(i % 4 ? 200 : BYTES_MAX);

		for (size_t j = 0; j < size; j++)
			bytes[j] = (uint8_t)(i % 2 || !draw(4) ? draw(256) : draw(3));
		if (size)
			bytes[0] = (uint8_t)i; /* targets look there first */
		feed(bytes, size);
	}
}

static void file_feed(const char *path, int count)
{
	static uint8_t text[BYTES_MAX], changed[BYTES_MAX];
	FILE *file = fopen(path, "rb");
	size_t size;

	TRUE(file);
	size = fread(text, 1, sizeof(text), file);
	fclose(file);
	feed(text, size);
	for (int i = 0; i < count && size; i++) {
		memcpy(changed, text, size);
		for (uint32_t n = 1 + draw(8); n; n--)
			changed[draw((uint32_t)size)] = (uint8_t)draw(256);
		feed(changed, draw(4) ? size : draw((uint32_t)size));
	}
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 1000;

	noise_feed(count);
	for (int i = 2; i < argc; i++)
		file_feed(argv[i], count);
	return 0;
}
