/* The checksum: what is changed, moved, longer or elsewhere has another one. */
#include <stdint.h>
#include <string.h>

#include "net/sum.h"
#include "test.h"

enum { MOST = 300 };
static unsigned char bytes[MOST + 1];

/* One bit anywhere, at every length. */
static void test_bits(void)
{
	for (size_t count = 1; count <= MOST; count += count < 70 ? 1 : 23) {
		uint64_t right = sum_of(bytes, count, 5);

		for (size_t bit = 0; bit < 8 * count; bit++) {
			bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
			TRUE(sum_of(bytes, count, 5) != right);
			bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
		}
		EQ(sum_of(bytes, count, 5), right);
	}
}

static void swap(size_t a, size_t b, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		unsigned char was = bytes[a + i];

		bytes[a + i] = bytes[b + i];
		bytes[b + i] = was;
	}
}

/* Two words in each other's place, also where the sums of words stay the same. */
static void test_order(void)
{
	uint64_t right = sum_of(bytes, 256, 5);

	for (size_t a = 0; a < 256; a += 8)
		for (size_t b = a + 8; b < 256; b += 8) {
			swap(a, b, 8);
			TRUE(sum_of(bytes, 256, 5) != right);
			swap(a, b, 8);
		}
}

static void test_place(void)
{
	static const unsigned char zero[MOST];
	uint64_t right;

	TRUE(sum_of(bytes, 64, 5) != sum_of(bytes, 64, 6));
	TRUE(sum_of(zero, 64, 5) != sum_of(zero, 65, 5));
	TRUE(sum_of(zero, 0, 5) != sum_of(zero, 1, 5));
	right = sum_of(bytes, 200, 5); /* wherever in memory they stand */
	memmove(bytes + 1, bytes, 200);
	EQ(sum_of(bytes + 1, 200, 5), right);
}

int main(void)
{
	for (size_t i = 0; i <= MOST; i++)
		bytes[i] = (unsigned char)(i * 2654435761u >> 11);
	test_bits();
	test_order();
	test_place();
	return 0;
}
