/*
 * hex.h - bytes as digits, for launchers and files that carry text.
 */
#ifndef LAUNCH_HEX_H
#define LAUNCH_HEX_H

#include <stdbool.h>
#include <stddef.h>

/* 2 * count digits and a zero. */
static inline void hex_print(const unsigned char *bytes, size_t count, char *text)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < count; i++) {
		text[2 * i] = digits[bytes[i] >> 4];
		text[2 * i + 1] = digits[bytes[i] & 15];
	}
	text[2 * count] = '\0';
}

static inline int hex_digit(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/* Exactly `count` bytes; false, with `bytes` in any state, for another text. */
static inline bool hex_read(const char *text, unsigned char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int high = hex_digit(text[2 * i]);
		int low = high < 0 ? -1 : hex_digit(text[2 * i + 1]);

		if (low < 0)
			return false;
		bytes[i] = (unsigned char)(high << 4 | low);
	}
	return !text[2 * count];
}

#endif
