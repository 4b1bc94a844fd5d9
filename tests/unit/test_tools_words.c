/* Many words at once are found as one by one: in any case, at any place, in short texts.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <strings.h>

#include "test.h"
#include "weft/doctor/words.h"

static const char *const list[] = {"NCCL_", "Gbps", "Got completion", "GOT COMPLETION",
	"abca", "bcab", "cabc", "aaaa", "failed (exitcode: -9)", "a{b[c", " float "};
static const char *const shorter[] = {"abc", "-12", "(5)", "aab", "fail"};

enum {
	COUNT = sizeof(list) / sizeof(list[0]),
	SHORTER = sizeof(shorter) / sizeof(shorter[0])
};

static bool is_in(const char *text, size_t bytes, const char *word)
{
	size_t length = strlen(word);

	for (size_t i = 0; i + length <= bytes; i++)
		if (!strncasecmp(text + i, word, length))
			return true;
	return false;
}

/* The text has no byte behind it that may be read. */
static void compare(const struct words *words, const char *const *all, uint32_t count,
	const char *text)
{
	size_t bytes = strlen(text);
	char *alone = malloc(bytes ? bytes : 1);
	uint16_t found[COUNT + 1];
	uint32_t got, is_found = 0;

	TRUE(alone);
	memcpy(alone, text, bytes);
	got = words_find(words, alone, bytes, found, COUNT + 1);
	for (uint32_t i = 0; i < got; i++) {
		TRUE(found[i] < count);
		TRUE(!(is_found >> found[i] & 1));
		is_found |= 1u << found[i];
	}
	for (uint32_t i = 0; i < count; i++)
		EQ(is_found >> i & 1, is_in(text, bytes, all[i]));
	free(alone);
}

/* Words between letters, cut and in mixed case, at even and odd places. */
static void check(const char *const *all, uint32_t count)
{
	struct words *words;
	uint64_t random = 88172645463325252u;

	EQ(words_create(&words, all, count), OK);
	compare(words, all, count, "");
	for (uint32_t round = 0; round < 20000; round++) {
		char text[80] = "";
		size_t used = 0;

		while (used < 60) {
			const char *word;
			size_t bytes;

			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			word = all[random % count];
			bytes = strlen(word);
			if (random >> 20 & 1)
				bytes = (random >> 21) % (bytes + 1);
			if (used + bytes + 2 > sizeof(text) || (random >> 40) % 5 == 0)
				break;
			memcpy(text + used, word, bytes);
			if (bytes && random >> 33 & 1)
				text[used] = (char)toupper((unsigned char)text[used]);
			used += bytes;
			if (random >> 34 & 1)
				text[used++] = "abc1 "[(random >> 35) % 5];
		}
		compare(words, all, count, text);
	}
	words_destroy(words);
}

/* What finds no room is left out. */
static void check_room(void)
{
	struct words *words;
	uint16_t found[2];

	EQ(words_create(&words, list, COUNT), OK);
	EQ(words_find(words, "got completion", 14, found, 2), 2);
	EQ(words_find(words, "got completion", 14, found, 1), 1);
	EQ(words_find(words, "got completion", 13, found, 2), 0);
	words_destroy(words);
}

int main(void)
{
	check(list, COUNT);
	check(shorter, SHORTER);
	check_room();
	return 0;
}
