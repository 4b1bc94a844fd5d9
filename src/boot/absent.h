/*
 * absent.h - who has not come, for a sentence.
 */
#ifndef BOOT_ABSENT_H
#define BOOT_ABSENT_H

#include <stddef.h>
#include <stdint.h>

/* "3, 5-7": the ranks for which `came` is 0, cut with ".." when there is no room. Returns
 * how many they are. */
uint32_t absent_print(
	const unsigned char *came, uint32_t rank_count, char *text, size_t room);

#endif
