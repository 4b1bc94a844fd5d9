#include "weft/run_output.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "weft/run_bytes.h"

enum { LAST_LINES = 10, LAST_BYTES = 400, LINE_MAX_BYTES = 16 << 10 };

struct page {
	struct run_bytes open[2]; /* a line of output, of errors, without its end */
	char *last[LAST_LINES];	  /* owned; a ring */
	unsigned next;
};

struct run_output {
	bool is_plain;
	int width; /* of the largest rank */
	uint32_t rank_count;
	struct page pages[];
};

struct run_output *run_output_create(uint32_t rank_count, bool is_plain)
{
	struct run_output *output = calloc(
		1, sizeof(*output) + rank_count * sizeof(struct page));

	if (!output)
		return NULL;
	output->is_plain = is_plain;
	output->rank_count = rank_count;
	output->width = snprintf(NULL, 0, "%u", rank_count - 1);
	return output;
}

void run_output_destroy(struct run_output *output)
{
	for (uint32_t rank = 0; output && rank < output->rank_count; rank++) {
		struct page *page = &output->pages[rank];

		run_bytes_fini(&page->open[0]);
		run_bytes_fini(&page->open[1]);
		for (int i = 0; i < LAST_LINES; i++)
			free(page->last[i]);
	}
	free(output);
}

static void last_keep(struct page *page, const char *line, size_t bytes)
{
	char **place = &page->last[page->next++ % LAST_LINES];

	free(*place);
	*place = strndup(line, bytes < LAST_BYTES ? bytes : LAST_BYTES);
}

static FILE *file_of(bool is_error)
{
	return is_error ? stderr : stdout;
}

/* A line without its newline. */
static void line_end(struct run_output *output, uint32_t rank, bool is_error)
{
	struct page *page = &output->pages[rank];
	struct run_bytes *open = &page->open[is_error];
	const char *line = open->data ? open->data : ""; /* an empty one came first */

	last_keep(page, line, open->count);
	if (!output->is_plain) {
		FILE *file = file_of(is_error);

		fprintf(file, "[%*u] ", output->width, rank);
		fwrite(line, 1, open->count, file);
		fputc('\n', file);
	}
	open->count = 0;
}

void run_output_add(struct run_output *output, uint32_t rank, bool is_error,
	const char *data, size_t bytes)
{
	struct run_bytes *open = &output->pages[rank].open[is_error];

	if (output->is_plain)
		fwrite(data, 1, bytes, file_of(is_error));
	for (size_t i = 0; i < bytes; i++) {
		if (data[i] != '\n')
			run_bytes_add(open, &data[i], 1);
		if (data[i] == '\n' || open->count >= LINE_MAX_BYTES)
			line_end(output, rank, is_error);
	}
	fflush(file_of(is_error));
}

void run_output_flush(struct run_output *output, uint32_t rank)
{
	for (int i = 0; i < 2; i++)
		if (output->pages[rank].open[i].count)
			line_end(output, rank, i);
	fflush(stdout);
}

int run_output_last(const struct run_output *output, uint32_t rank, FILE *file)
{
	const struct page *page = &output->pages[rank];
	int count = 0;

	for (unsigned i = 0; i < LAST_LINES; i++) {
		const char *line = page->last[(page->next + i) % LAST_LINES];

		if (line && file)
			fprintf(file, "    %s\n", line);
		count += line != NULL;
	}
	return count;
}
