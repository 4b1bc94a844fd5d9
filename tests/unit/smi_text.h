/*
 * smi_text.h - read what nvidia-smi topo -m printed, as people kept it: with escapes or
 * without, with tabs or blanks, of any driver, with comments above.
 */
#ifndef SMI_TEXT_H
#define SMI_TEXT_H

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/matrix.h"

struct smi {
	struct matrix *matrix;
	char *text;	  /* without comments; a blank header start is a tab again */
	bool has_escapes; /* and `text` has them */
	bool is_verbatim; /* tabs, and the columns of a driver of today */
};

enum { SMI_WORDS_MAX = 96 };

/* The words of a line: at tabs, or at blanks when there are no tabs. */
static inline int smi_split(char *line, char *words[SMI_WORDS_MAX])
{
	const char *between = strchr(line, '\t') ? "\t" : " ";
	int count = 0;
	char *rest = NULL;

	for (char *word = strtok_r(line, between, &rest); word && count < SMI_WORDS_MAX;
		word = strtok_r(NULL, between, &rest)) {
		size_t bytes;

		while (*word == ' ')
			word++;
		bytes = strlen(word);
		while (bytes && word[bytes - 1] == ' ')
			word[--bytes] = 0;
		if (bytes)
			words[count++] = word;
	}
	return count;
}

static inline char *smi_load(const char *path)
{
	FILE *file = fopen(path, "r");
	char *text = calloc(1, 65536);

	if (file && text)
		(void)!fread(text, 1, 65535, file);
	if (file)
		fclose(file);
	return text;
}

static inline void smi_remove(char *text, const char *what)
{
	for (char *at; (at = strstr(text, what));)
		memmove(at, at + strlen(what), strlen(at + strlen(what)) + 1);
}

/* Drop comment lines and say whether the first line left is a header. */
static inline bool smi_clean(struct smi *smi)
{
	char *text = smi->text;
	size_t blanks;

	while (*text == '#')
		memmove(text, strchr(text, '\n') + 1, strlen(strchr(text, '\n')));
	blanks = strspn(text, " ");
	if (blanks && strchr(text, '\t')) {
		text[0] = '\t';
		memmove(text + 1, text + blanks, strlen(text + blanks) + 1);
	}
	smi->has_escapes = strstr(text, "\033[") != NULL;
	return strstr(text, "CPU Affinity") != NULL;
}

static inline struct matrix_cell smi_cell(const char *word)
{
	static const char *const words[] = {"X", "PIX", "PXB", "PHB", "NODE", "SYS"};

	if (!strncmp(word, "NV", 2))
		return (struct matrix_cell){MATRIX_NVLINK, atoi(word + 2)};
	for (int i = 0; i < 6; i++)
		if (!strcmp(word, words[i]))
			return (struct matrix_cell){(enum matrix_level)i, 0};
	return (struct matrix_cell){MATRIX_SYS, 0}; /* SOC, of long ago */
}

static inline void smi_row(struct matrix *matrix, uint32_t row, char **words, int count)
{
	uint32_t parts = matrix->gpu_count + matrix->nic_count;
	struct matrix_part *part = &matrix->parts[row];
	int at = 1 + (int)parts;

	for (uint32_t i = 0; i < parts && (int)i + 1 < count; i++)
		*matrix_at(matrix, row, i) = smi_cell(words[i + 1]);
	if (row >= matrix->gpu_count)
		return;
	if (at < count)
		part->cpus = strdup(words[at]);
	if (at + 1 < count)
		snprintf(part->numa, sizeof(part->numa), "%.15s", words[at + 1]);
	if (at + 2 < count)
		snprintf(part->gpu_numa, sizeof(part->gpu_numa), "%.15s", words[at + 2]);
}

/* Rows, then the names in the NIC legend. */
static inline void smi_rows(struct matrix *matrix, char *rest)
{
	uint32_t row = 0, nic = matrix->gpu_count;
	uint32_t parts = matrix->gpu_count + matrix->nic_count;

	for (char *line; (line = strsep(&rest, "\n"));) {
		char *words[SMI_WORDS_MAX], *colon = strchr(line, ':');

		if (row < parts) {
			int count = smi_split(line, words);

			if (count > 1)
				smi_row(matrix, row++, words, count);
		} else if (!strncmp(line, "  NIC", 5) && colon && nic < parts) {
			snprintf(matrix->parts[nic++].name, MATRIX_NAME_MAX, "%.63s",
				colon + 2);
		}
	}
}

/* False when the file is no such table. */
static inline bool smi_read(const char *path, struct smi *smi)
{
	char *words[SMI_WORDS_MAX], *copy, *rest, *header;
	uint32_t gpus = 0, nics = 0;
	int count;

	*smi = (struct smi){.text = smi_load(path)};
	if (!smi->text || !smi_clean(smi)) {
		free(smi->text);
		return false;
	}
	smi->is_verbatim = smi->text[0] == '\t' && strstr(smi->text, "\tGPU NUMA ID");
	copy = rest = strdup(smi->text);
	smi_remove(copy, "\033[4m");
	smi_remove(copy, "\033[0m");
	header = strsep(&rest, "\n");
	count = smi_split(header, words);
	for (int i = 0; i < count; i++) {
		if (!strcmp(words[i], "CPU") || !strcmp(words[i], "CPU Affinity"))
			break;
		if (!strncmp(words[i], "GPU", 3))
			gpus++;
		else
			nics++;
	}
	if (matrix_create(gpus, nics, &smi->matrix))
		exit(1);
	for (uint32_t i = 0; i < gpus + nics; i++) {
		struct matrix_part *part = &smi->matrix->parts[i];

		part->number = (int)(i < gpus ? i : i - gpus);
		snprintf(part->name, sizeof(part->name), "%.63s", words[i]);
	}
	smi_rows(smi->matrix, rest);
	free(copy);
	return true;
}

static inline void smi_free(struct smi *smi)
{
	matrix_free(smi->matrix);
	free(smi->text);
}

#endif
