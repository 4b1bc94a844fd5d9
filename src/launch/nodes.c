#include "launch/nodes.h"

#include <stdlib.h>
#include <string.h>

/* What host names are made of; Slurm allows no others. */
static bool is_name_byte(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
	       (byte >= '0' && byte <= '9') || byte == '-' || byte == '.' || byte == '_';
}

/* The first number of `[07-12,20]` with its zeros; gives what follows the bracket. */
static const char *bracket_read(const char *text, char *name, size_t room, size_t *used)
{
	size_t digits = strspn(text + 1, "0123456789");
	const char *end = strchr(text, ']');

	if (!digits || !end ||
		strspn(text + 1, "0123456789-,") != (size_t)(end - text - 1))
		return NULL;
	if (!strchr("-,]", text[1 + digits]) || *used + digits >= room)
		return NULL;
	memcpy(name + *used, text + 1, digits);
	*used += digits;
	return end + 1;
}

bool nodes_first(const char *text, char *name, size_t room)
{
	size_t used = 0;

	while (*text && *text != ',') {
		if (*text == '[') {
			text = bracket_read(text, name, room, &used);
			if (!text)
				return false;
			continue;
		}
		if (!is_name_byte(*text) || used + 1 >= room)
			return false;
		name[used++] = *text++;
	}
	if (used)
		name[used] = '\0';
	return used > 0;
}

/* Digits, at most seven of them. */
static const char *count_read(const char *text, int *count)
{
	size_t digits = strspn(text, "0123456789");

	if (!digits || digits > 7)
		return NULL;
	*count = atoi(text);
	return text + digits;
}

bool nodes_tasks(const char *text, int index, int *tasks)
{
	while (text && *text) {
		int count, times = 1;

		text = count_read(text, &count);
		if (text && !strncmp(text, "(x", 2)) {
			text = count_read(text + 2, &times);
			text = text && *text == ')' ? text + 1 : NULL;
		}
		if (!text || (*text && *text != ','))
			return false;
		if (index < times) {
			*tasks = count;
			return true;
		}
		index -= times;
		text += *text == ',';
	}
	return false;
}
