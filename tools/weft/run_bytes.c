#include "weft/run_bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft/command.h"

void run_bytes_add(struct run_bytes *bytes, const void *data, size_t count)
{
	if (bytes->count + count > bytes->room) {
		size_t room = 2 * (bytes->count + count);
		char *grown = realloc(bytes->data, room);

		if (!grown) {
			fprintf(stderr, "weft run: no memory for %zu bytes\n", room);
			exit(EXIT_WRONG);
		}
		bytes->data = grown;
		bytes->room = room;
	}
	if (count)
		memcpy(bytes->data + bytes->count, data, count);
	bytes->count += count;
}

void run_bytes_add_number(struct run_bytes *bytes, uint32_t number)
{
	run_bytes_add(bytes, &number, sizeof(number));
}

void run_bytes_add_text(struct run_bytes *bytes, const char *text)
{
	run_bytes_add(bytes, text, strlen(text) + 1);
}

uint32_t run_bytes_number(struct run_bytes *bytes)
{
	uint32_t number = 0;

	if (bytes->count - bytes->at < sizeof(number)) {
		bytes->is_bad = true;
		return 0;
	}
	memcpy(&number, bytes->data + bytes->at, sizeof(number));
	bytes->at += sizeof(number);
	return number;
}

const char *run_bytes_text(struct run_bytes *bytes)
{
	const char *text = bytes->data + bytes->at;
	const char *end = bytes->count > bytes->at
				  ? memchr(text, '\0', bytes->count - bytes->at)
				  : NULL;

	if (!end) {
		bytes->is_bad = true;
		return "";
	}
	bytes->at += (size_t)(end - text) + 1;
	return text;
}

void run_bytes_drop(struct run_bytes *bytes, size_t count)
{
	bytes->count -= count;
	if (bytes->count)
		memmove(bytes->data, bytes->data + count, bytes->count);
}

void run_bytes_fini(struct run_bytes *bytes)
{
	free(bytes->data);
	*bytes = (struct run_bytes){0};
}
