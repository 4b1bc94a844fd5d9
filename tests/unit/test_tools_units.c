/* Sizes, times and rates are read whole or refused, and never guessed. */
#include "common/units.h"
#include "test.h"

static void sizes(void)
{
	static const char *const bad[] = {
		"", "x", "-1", "8x", "1KB", "K", "0x10", "inf", "1e300", "4 K", " 4"};
	uint64_t bytes = 7;
	char text[32];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		TRUE(!units_size(bad[i], &bytes));
		EQ(bytes, 7); /* untouched */
	}
	TRUE(units_size("8", &bytes));
	EQ(bytes, 8);
	TRUE(units_size("1.5k", &bytes));
	EQ(bytes, 1536);
	TRUE(units_size("32M", &bytes));
	EQ(bytes, 32 << 20);
	TRUE(units_size("2g", &bytes));
	EQ(bytes, 2LL << 30);
	units_print_size(bytes, text, sizeof(text));
	EQ_STR(text, "2G");
	units_print_size(1000, text, sizeof(text));
	EQ_STR(text, "1000");
	units_print_size(0, text, sizeof(text));
	EQ_STR(text, "0");
}

static void times(void)
{
	static const char *const bad[] = {"", "1", "us", "1u", "1 us", "-1us", "1usx"};
	double seconds = 7;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		TRUE(!units_time(bad[i], &seconds));
	EQ(seconds, 7);
	TRUE(units_time("250ns", &seconds));
	EQ(seconds * 1e12 + 0.5, 250000);
	TRUE(units_time("1.5ms", &seconds));
	EQ(seconds * 1e9 + 0.5, 1500000);
	TRUE(units_time("0", &seconds));
	EQ(seconds, 0);
}

static void rates(void)
{
	static const char *const bad[] = {
		"", "10", "10G", "10GB", "0GB/s", "10gB/s", "GB/s"};
	double rate = 7;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		TRUE(!units_rate(bad[i], &rate));
	EQ(rate, 7);
	TRUE(units_rate("10GB/s", &rate));
	EQ(rate, 10000000000);
	TRUE(units_rate("400Gb/s", &rate));
	EQ(rate, 50000000000);
	TRUE(units_rate("7B/s", &rate));
	EQ(rate, 7);
}

int main(void)
{
	int64_t value = 7, pods = 0, gpus = 0;

	sizes();
	times();
	rates();
	TRUE(!units_int("3x", 0, 9, &value));
	TRUE(!units_int("10", 0, 9, &value));
	TRUE(!units_int("", 0, 9, &value));
	TRUE(units_pair("8x1", 16, &pods, &gpus));
	EQ(pods, 8);
	EQ(gpus, 1);
	TRUE(!units_pair("8x", 16, &pods, &gpus));
	TRUE(!units_pair("x8", 16, &pods, &gpus));
	TRUE(!units_pair("17x1", 16, &pods, &gpus));
	TRUE(!units_pair("2x0", 16, &pods, &gpus));
	TRUE(!units_pair("22", 16, &pods, &gpus));
	EQ(pods, 8); /* left alone */
	EQ(value, 7);
	TRUE(units_int("-1", -1, 9, &value));
	EQ(value, -1);
	return 0;
}
