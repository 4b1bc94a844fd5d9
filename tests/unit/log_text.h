/*
 * log_text.h - what the library has written into the file of NCCL_DEBUG_FILE.
 */
#ifndef LOG_TEXT_H
#define LOG_TEXT_H

#include <stdio.h>
#include <string.h>

/* How often a text stands in that file. */
static inline int log_count(const char *path, const char *text)
{
	static char content[1 << 16];
	FILE *file = fopen(path, "r");
	size_t bytes = file ? fread(content, 1, sizeof(content) - 1, file) : 0;
	int count = 0;

	if (file)
		fclose(file);
	content[bytes] = '\0';
	for (const char *at = content; (at = strstr(at, text)); at++)
		count++;
	return count;
}

#endif
