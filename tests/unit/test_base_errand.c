/* An errand is run to its end or left behind, on a stack that others' code may use. */
#include "base/errand.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

enum { STACK_BYTES = 4 << 20 };

static atomic_int let_go, discarded;

/* As much as a thread has that is started without another wish, and half of it left. */
static void deep(void *argument)
{
	volatile char page[STACK_BYTES];

	for (size_t i = 0; i < sizeof(page); i += 4096)
		page[i] = 1;
	*(int *)argument = page[0] + page[STACK_BYTES / 2];
}

static void stuck(void *argument)
{
	(void)argument;
	while (!atomic_load(&let_go))
		usleep(1000);
}

static void discard(void *argument)
{
	(void)argument;
	atomic_store(&discarded, 1);
}

int main(void)
{
	int sum = 0;

	EQ(errand_run(&(struct errand){"weft-test", deep, discard, &sum}, 10), 0);
	EQ(sum, 2);
	EQ(atomic_load(&discarded), 0);
	EQ(errand_run(&(struct errand){"weft-test", stuck, discard, NULL}, 1), ETIMEDOUT);
	atomic_store(&let_go, 1);
	while (!atomic_load(&discarded))
		usleep(1000);
	return 0;
}
