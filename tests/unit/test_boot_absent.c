/* Ranks that are missing are listed shortly, however many they are. */
#include "boot/absent.h"

#include "test.h"

int main(void)
{
	unsigned char came[1000] = {1, 0, 0, 1, 0, 1};
	char text[128];

	EQ(absent_print(came, 6, text, sizeof(text)), 3);
	EQ_STR(text, "1-2, 4");
	EQ(absent_print(came, 1000, text, sizeof(text)), 997);
	EQ_STR(text, "1-2, 4, 6-999");
	for (int i = 0; i < 1000; i++)
		came[i] = (unsigned char)(i % 2);
	EQ(absent_print(came, 1000, text, sizeof(text)), 500);
	TRUE(strlen(text) < sizeof(text));
	EQ_STR(text + strlen(text) - 4, ", ..");
	return 0;
}
