/* Lists of device names mean what they mean to NCCL. */
#include "base/ifname.h"

#include "test.h"

static void lists_choose(void)
{
	TRUE(ifname_chosen("eth", "eth0", 0));
	TRUE(!ifname_chosen("=eth", "eth0", 0));
	TRUE(ifname_chosen("=ib0,eth0", "eth0", 0));
	TRUE(!ifname_chosen("^docker,lo", "lo", 0));
	TRUE(ifname_chosen("^docker,lo", "eth0", 0));
	TRUE(!ifname_chosen("^=eth0", "eth0", 0));
	TRUE(ifname_chosen("^=eth0", "eth01", 0));
	TRUE(ifname_chosen("mlx5_0:1", "mlx5_0", 1));
	TRUE(!ifname_chosen("mlx5_0:1", "mlx5_0", 2));
	TRUE(!ifname_chosen("", "eth0", 0));
}

/* Docker's bridges and loopback are nobody's first choice. */
static void turns_are_taken(void)
{
	TRUE(ifname_chosen(ifname_turn(0), "ib0", 0));
	for (uint32_t turn = 0; turn <= IFNAME_TURNS_FIRST; turn++) {
		TRUE(!ifname_chosen(ifname_turn(turn), "lo", 0));
		TRUE(!ifname_chosen(ifname_turn(turn), "docker0", 0));
	}
	TRUE(ifname_chosen(ifname_turn(1), "eth0", 0));
	TRUE(ifname_chosen(ifname_turn(2), "docker0", 0));
	TRUE(ifname_chosen(ifname_turn(3), "lo", 0));
	EQ(ifname_turn(5), NULL);
}

int main(void)
{
	lists_choose();
	turns_are_taken();
	return 0;
}
