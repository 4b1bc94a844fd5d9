/* The embedded device code are fat binaries that have every kernel the engine asks for.
 */
#include "base/dtype.h"
#include "exec/cuda/kernels/kernels.h"
#include "test.h"

#include <stdint.h>

/* How a fat binary begins, in the host's byte order. */
static const uint32_t magic = 0xba55ed50;

struct binary {
	const char *prefix;
	const unsigned char *bytes;
	size_t size;
};

static void check_name(const struct binary *binary, const char *name)
{
	/* with its end, or moves_int8_sum would be found in moves_uint8_sum's tail */
	char text[64];
	int bytes = snprintf(text, sizeof(text), "%c%s_%s", 0, binary->prefix, name) + 1;

	if (memmem(binary->bytes, binary->size, text, (size_t)bytes))
		return;
	/* a section of its own: .text.moves_.. */
	text[0] = '.';
	if (memmem(binary->bytes, binary->size, text, (size_t)bytes))
		return;
	fprintf(stderr, "no kernel %s_%s\n", binary->prefix, name);
	exit(1);
}

static void check_binary(const struct binary *binary)
{
	uint32_t begin;

	TRUE(binary->size > sizeof(begin));
	EQ((uintptr_t)binary->bytes % 8, 0);
	memcpy(&begin, binary->bytes, sizeof(begin));
	EQ(begin, magic);
	/* packed: no name can be read; the tests on a GPU load every kernel */
	if (!memmem(binary->bytes, binary->size, binary->prefix, strlen(binary->prefix)))
		return;
	check_name(binary, "copy");
	for (int type = 0; type < DTYPE_COUNT; type++)
		for (int op = REDOP_SUM; op <= REDOP_MIN; op++) {
			char name[48];

			snprintf(name, sizeof(name), "%s_%s",
				dtype_name((enum dtype)type), redop_name((enum redop)op));
			check_name(binary, name);
		}
}

int main(void)
{
	const struct binary binaries[] = {{"moves", cuda_kernels, cuda_kernels_bytes},
		{"steps_simple", cuda_steps_simple, cuda_steps_simple_bytes},
		{"steps_ll", cuda_steps_ll, cuda_steps_ll_bytes},
		{"steps_ll128", cuda_steps_ll128, cuda_steps_ll128_bytes}};

	if (!cuda_kernels_bytes) {
		fprintf(stderr, "skipped: the library was built without nvcc\n");
		return TEST_SKIP;
	}
	for (size_t i = 0; i < sizeof(binaries) / sizeof(*binaries); i++)
		check_binary(&binaries[i]);
	return 0;
}
