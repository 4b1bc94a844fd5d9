#include "common/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/units.h"

int terminal_columns(void)
{
	const char *told = getenv("COLUMNS");
	struct winsize size;
	int64_t columns;

	if (told && units_int(told, 1, 1 << 16, &columns))
		return columns < TERMINAL_COLUMNS_MIN ? TERMINAL_COLUMNS_MIN
						      : (int)columns;
	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) ||
		!size.ws_col)
		return 0;
	return size.ws_col < TERMINAL_COLUMNS_MIN ? TERMINAL_COLUMNS_MIN : size.ws_col;
}

static bool is_set(const char *name)
{
	const char *value = getenv(name);

	return value && *value;
}

bool terminal_has_colours(void)
{
	const char *kind = getenv("TERM");

	if (is_set("NO_COLOR"))
		return false;
	if (is_set("CLICOLOR_FORCE"))
		return true;
	return isatty(STDOUT_FILENO) && kind && *kind && strcmp(kind, "dumb");
}

const char *terminal_look(enum terminal_look look)
{
	static const char *const begins[] = {"\033[0m", "\033[1m", "\033[2m", "\033[32m",
		"\033[33m", "\033[31m", "\033[4m"};

	return terminal_has_colours() ? begins[look] : "";
}

void terminal_fold(FILE *file, const char *text, int column, int indent)
{
	int columns = terminal_columns();

	/* Where too little is left beside the indentation, more lines help nobody. */
	if (!columns || indent > columns - 20) {
		fprintf(file, "%s\n", text);
		return;
	}
	while (*text) {
		int blanks = (int)strspn(text, " ");
		int bytes = (int)strcspn(text + blanks, " ");

		if (column > indent && column + blanks + bytes > columns) {
			fprintf(file, "\n%*s", indent, "");
			column = indent;
			blanks = 0;
		}
		text += strspn(text, " ");
		fprintf(file, "%*s%.*s", blanks, "", bytes, text);
		column += blanks + bytes;
		text += bytes;
	}
	fprintf(file, "\n");
}
