/* Deadlines follow the load: what a crowded machine says, and a clock that heeds it. */
#include "patience.h"

#include <unistd.h>

#include "ranks.h"

static bool is_near(double a, double b)
{
	return a > b - 1e-9 && a < b + 1e-9;
}

static void test_crowding(void)
{
	TRUE(is_near(crowding_of("0.00 0.01 0.05 1/189 11421\n", 2), 1));
	TRUE(is_near(crowding_of("1.70 1.20 0.90 2/189 11421\n", 2), 1));
	/* nine wait already, though the minute's average does not show it yet */
	TRUE(is_near(crowding_of("0.31 0.10 0.05 10/189 11421\n", 2), 5));
	/* and the other way round: just now there happen to be few */
	TRUE(is_near(crowding_of("12.50 8.10 4.00 1/189 11421\n", 2), 6.25));
	TRUE(is_near(crowding_of("900 800 700 1000/2000 11421\n", 2), 64));
	TRUE(is_near(crowding_of("", 2), 1));
	TRUE(is_near(crowding_of("something else", 2), 1));
	TRUE(is_near(crowding_of("5.0 5.0 5.0 9/10 7", 0), 1));
}

/* It goes on, and never faster than the wall's. */
static void test_clock(void)
{
	uint64_t wall = now_us(), patient = patient_us();
	uint64_t waited, counted;

	while (patient_us() < patient + 20000)
		usleep(1000);
	waited = now_us() - wall;
	counted = patient_us() - patient;
	TRUE(counted >= 20000);
	TRUE(counted <= waited + 1000);
	TRUE(crowding() >= 1);
}

int main(void)
{
	test_crowding();
	test_clock();
	return 0;
}
