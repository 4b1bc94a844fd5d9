/* The embedded device code is a fat binary and has every kernel the engine asks for. */
#include "base/dtype.h"
#include "exec/cuda/kernels.h"
#include "test.h"

#include <stdint.h>

/* How a fat binary begins, in the host's byte order. */
static const uint32_t magic = 0xba55ed50;

static void check_name(const char *name)
{
	/* with its end, or moves_int8_sum would be found in moves_uint8_sum's tail */
	char text[64];
	int bytes = snprintf(text, sizeof(text), "%cmoves_%s", 0, name) + 1;

	if (memmem(cuda_kernels, cuda_kernels_bytes, text, (size_t)bytes))
		return;
	/* a section of its own: .text.moves_.. */
	text[0] = '.';
	if (memmem(cuda_kernels, cuda_kernels_bytes, text, (size_t)bytes))
		return;
	fprintf(stderr, "no kernel moves_%s\n", name);
	exit(1);
}

int main(void)
{
	uint32_t begin;

	if (!cuda_kernels_bytes) {
		fprintf(stderr, "skipped: the library was built without nvcc\n");
		return TEST_SKIP;
	}
	TRUE(cuda_kernels_bytes > sizeof(begin));
	EQ((uintptr_t)cuda_kernels % 8, 0);
	memcpy(&begin, cuda_kernels, sizeof(begin));
	EQ(begin, magic);
	check_name("copy");
	for (int type = 0; type < DTYPE_COUNT; type++)
		for (int op = REDOP_SUM; op <= REDOP_MIN; op++) {
			char name[48];

			snprintf(name, sizeof(name), "%s_%s",
				dtype_name((enum dtype)type), redop_name((enum redop)op));
			check_name(name);
		}
	return 0;
}
