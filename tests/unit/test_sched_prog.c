/* A program keeps its order, grows, refuses to grow for ever; peers keep their number,
 * however many they are. */
#include "sched/prog.h"
#include "test.h"

int main(void)
{
	struct insn send = {.op = IN_SRC | OUT_SEND, .count = 1, .reps = 1};
	struct prog prog = {0};

	for (uint32_t i = 0; i < PROG_INSNS_MAX; i++) {
		send.src = (uint16_t)i;
		EQ(prog_emit(&prog, &send), OK);
	}
	for (uint32_t i = 0; i < PROG_INSNS_MAX; i++)
		EQ(prog.insns[i].src, i);
	EQ(prog_emit(&prog, &send), ERR_INTERNAL);
	EQ(prog.count, PROG_INSNS_MAX); /* unchanged on failure */

	EQ(prog_rx(&prog, 7), 0);
	EQ(prog_rx(&prog, 3), 1);
	EQ(prog_rx(&prog, 7), 0);
	EQ(prog_tx(&prog, 3), 0);
	EQ(prog.rx_count, 2);
	EQ(prog.tx_count, 1);
	EQ(prog.rx_peers[1], 3);
	for (uint32_t i = 1; i < PROG_PEERS_MAX; i++)
		EQ(prog_tx_new(&prog, 3 + i), i);
	for (uint32_t i = 0; i < PROG_PEERS_MAX; i++)
		EQ(prog_tx(&prog, 3 + i), i);
	EQ(prog.tx_count, PROG_PEERS_MAX);

	prog_fini(&prog);
	EQ(prog.count, 0);
	EQ(prog.rx_count, 0);
	EQ(prog_emit(&prog, &send), OK); /* usable again */
	prog_fini(&prog);
	return 0;
}
