#include "launch/pmi_text.h"

#include <string.h>

/* The byte behind the word that begins here. */
static const char *word_end(const char *word, char end)
{
	while (*word && *word != end && *word != '\n')
		word++;
	return word;
}

bool pmi_value(const char *text, char end, const char *key, char *value, size_t room)
{
	size_t key_bytes = strlen(key);

	while (*text) {
		const char *stop = word_end(text, end);
		const char *found = text + key_bytes + 1;

		if (stop - text > (ptrdiff_t)key_bytes &&
			!strncmp(text, key, key_bytes) && text[key_bytes] == '=') {
			size_t bytes = (size_t)(stop - found);

			if (bytes >= room)
				return false;
			memcpy(value, found, bytes);
			value[bytes] = '\0';
			return true;
		}
		text = stop + (*stop != '\0');
	}
	return false;
}

bool pmi_is_good(const char *text, char end, const char *command)
{
	char word[64];

	if (!pmi_value(text, end, "cmd", word, sizeof(word)) || strcmp(word, command))
		return false;
	return !pmi_value(text, end, "rc", word, sizeof(word)) || !strcmp(word, "0");
}

/* Hydra puts the blanks in front of the number, Slurm behind it. */
bool pmi_length(const char digits[PMI_LENGTH_DIGITS], size_t *bytes)
{
	int begin = 0, end = PMI_LENGTH_DIGITS;
	size_t number = 0;

	while (begin < end && digits[begin] == ' ')
		begin++;
	while (end > begin && digits[end - 1] == ' ')
		end--;
	for (int i = begin; i < end; i++) {
		if (digits[i] < '0' || digits[i] > '9')
			return false;
		number = number * 10 + (size_t)(digits[i] - '0');
	}
	*bytes = number;
	return begin < end;
}
