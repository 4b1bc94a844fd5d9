/* What another host puts lands inside a window of this rank that is there, and nowhere
 * else, whatever the other host says. */
#include <string.h>

#include "comm/state.h"
#include "test.h"

enum { BYTES = 8192 };

static struct comm *comm_of_one(void)
{
	struct comm_config config;
	struct boot_id id;
	struct comm *comm;

	comm_config_default(&config);
	EQ(comm_id_create(&id), OK);
	EQ(comm_alloc(&config, &comm), OK);
	EQ(comm_init(comm, &(struct comm_init_args){.ids = &id,
				   .id_count = 1,
				   .rank_count = 1,
				   .caller = "test_comm_memory"}),
		OK);
	return comm;
}

static enum err land(struct comm *comm, uint32_t window, uint64_t offset, size_t bytes)
{
	const struct far_put put = {.window = window, .offset = offset};
	char data[64];

	memset(data, 'x', sizeof(data));
	return window_land(comm, 0, &put, data, bytes);
}

int main(void)
{
	struct comm *comm = comm_of_one();
	struct window *window, *other;
	char *memory;

	EQ(mem_alloc(2 * BYTES, (void **)&memory), OK);
	EQ(comm_window_register(comm, memory, BYTES, 0, &window), OK);
	EQ(comm_window_register(comm, memory + BYTES, BYTES, 0, &other), OK);
	EQ(land(comm, 1, 0, 64), OK);
	EQ(land(comm, 1, BYTES - 64, 64), OK);
	EQ(memory[0], 'x');
	EQ(memory[64], 0);
	EQ(memory[BYTES - 1], 'x');
	EQ(memory[BYTES], 0);
	EQ(land(comm, 1, BYTES - 63, 64), ERR_REMOTE);
	EQ(land(comm, 1, BYTES, 1), ERR_REMOTE);
	EQ(land(comm, 1, UINT64_MAX, 1), ERR_REMOTE);
	EQ(land(comm, 1, UINT64_MAX - 62, 64), ERR_REMOTE);
	TRUE(strstr(err_last(), "ends before that"));
	EQ(memory[BYTES], 0);
	EQ(land(comm, 2, 0, 64), OK);
	EQ(memory[BYTES], 'x');
	EQ(land(comm, 0, 0, 1), ERR_USAGE);
	EQ(land(comm, 3, 0, 1), ERR_USAGE);
	EQ(comm_window_deregister(comm, other), OK);
	EQ(land(comm, 2, 64, 64), ERR_USAGE);
	TRUE(strstr(err_last(), "deregistered"));
	EQ(memory[BYTES + 64], 0);
	EQ(comm_destroy(comm), OK);
	EQ(mem_free(memory), OK);
	return 0;
}
