#include "weft/k8s/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PASSES_MAX = 8, PATH_BYTES = 4096 };

static void syntax(struct check_result *result)
{
	for (uint32_t i = 0; i < result->file.fault_count; i++) {
		const struct doc_fault *fault = &result->file.faults[i];
		struct node at = {.line = fault->line,
			.column = fault->column,
			.start = fault->start,
			.end = fault->start};

		finding_todo(finding_add(&result->findings, RULE_YAML_SYNTAX, &at,
				     "this is not YAML: %s", fault->text),
			"mend the line; a script of several lines belongs after '|', and "
			"a "
			"comment inside a value ends it");
	}
}

static void check_doc(const struct check_options *options, struct check_result *result,
	struct node *root)
{
	struct work *work = malloc(sizeof(*work));
	struct rule_view view = {options, work, &result->findings};

	if (!work)
		return;
	work_read(&result->file, root, options->machine, work);
	result->object_count += *work->kind_name || work->kind != WORK_NONE;
	if (work->kind == WORK_NONE) {
		rules_stranger(&view);
	} else {
		result->work_count++;
		rules_form(&view);
		rules_kinds(&view);
		rules_ranks(&view);
		rules_resources(&view);
		rules_pods(&view);
		rules_environment(&view);
	}
	free(work);
}

/* "# weft: allow RULE" in a comment: somebody knows. */
static bool is_allowed(const struct doc_file *file, const char *rule)
{
	static const char mark[] = "weft: allow ";
	const char *at = file->text;

	while ((at = strstr(at, mark))) {
		const char *hash = at;
		size_t bytes = strlen(rule);

		at += strlen(mark);
		while (hash > file->text && hash[-1] == ' ')
			hash--;
		if (hash > file->text && hash[-1] == '#' && !strncmp(at, rule, bytes) &&
			strchr(" \t\r\n", at[bytes]))
			return true;
	}
	return false;
}

static void drop_allowed(struct check_result *result)
{
	bool allowed[RULE_COUNT];

	for (int i = 0; i < RULE_COUNT; i++)
		allowed[i] = is_allowed(&result->file, rules[i].id);
	findings_drop(&result->findings, allowed);
}

void check_file(const struct check_options *options, struct check_result *result)
{
	struct object_walk walk = {0};
	struct node *root;

	syntax(result);
	while ((root = work_next(&result->file, &walk)))
		check_doc(options, result, root);
	drop_allowed(result);
	findings_sort(&result->findings);
}

void check_result_free(struct check_result *result)
{
	findings_free(&result->findings);
	doc_free(&result->file);
	*result = (struct check_result){0};
}

static bool is_yaml(const char *path, const char *text)
{
	struct doc_file file = {0};
	bool is_good = !doc_parse(path, text, strlen(text), &file) && !file.fault_count;

	doc_free(&file);
	return is_good;
}

/* The text with the edits of these findings; NULL when there are none, or when they spoil
 * it. */
static char *fix_with(const struct check_result *result, const struct finding *from,
	const struct finding *to, uint32_t *count)
{
	char *text = edit_apply(&result->file, from, to, count);

	if (text && *count && is_yaml(result->file.path, text) &&
		strcmp(text, result->file.text) != 0)
		return text;
	free(text);
	return NULL;
}

/* One pass: everything at once, or the first that can be done alone. */
static char *fix_once(const struct check_result *result, uint32_t *count)
{
	const struct findings *all = &result->findings;
	char *text;

	*count = 0;
	if (!all->count)
		return NULL;
	text = fix_with(result, all->list, all->list + all->count, count);
	for (uint32_t i = 0; !text && i < all->count; i++)
		if (all->list[i].edit_count)
			text = fix_with(result, &all->list[i], &all->list[i] + 1, count);
	return text;
}

char *check_fix(const struct check_options *options, const struct check_result *result,
	uint32_t *fixed)
{
	char *text = strndup(result->file.text, result->file.bytes);
	uint32_t count;

	*fixed = 0;
	if (result->file.fault_count) {
		free(text);
		return NULL;
	}
	for (int pass = 0; text && pass < PASSES_MAX; pass++) {
		struct check_result now = {0};
		char *better = NULL;

		if (!doc_parse(result->file.path, text, strlen(text), &now.file)) {
			check_file(options, &now);
			better = fix_once(&now, &count);
		}
		check_result_free(&now);
		if (!better)
			break;
		*fixed += count;
		free(text);
		text = better;
	}
	return text;
}

static enum err write_all(int fd, const char *text, const char *path)
{
	size_t left = strlen(text);

	while (left) {
		ssize_t n = write(fd, text, left);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(ERR_SYSTEM, "cannot write beside %s: %m", path);
		text += n;
		left -= (size_t)n;
	}
	return fsync(fd) ? err_set(ERR_SYSTEM, "cannot write beside %s: %m", path) : OK;
}

enum err check_write(const char *path, const char *text)
{
	char real[PATH_BYTES], name[PATH_BYTES + 16];
	struct stat old;
	enum err e;
	int fd;

	/* A link stays one: what it leads to is replaced. */
	if (!realpath(path, real) || stat(real, &old))
		return err_set(ERR_SYSTEM, "cannot find %s: %m", path);
	snprintf(name, sizeof(name), "%s.XXXXXX", real);
	fd = mkostemp(name, O_CLOEXEC);
	if (fd < 0)
		return err_set(ERR_SYSTEM,
			"cannot write into the folder of %s: %m; nothing was changed",
			path);
	e = write_all(fd, text, path);
	if (!e && fchmod(fd, old.st_mode & 07777))
		e = err_set(ERR_SYSTEM, "cannot give %s its old rights: %m", path);
	/* Whose file it was is kept where that is allowed. */
	if (!e && fchown(fd, old.st_uid, old.st_gid) && errno != EPERM)
		e = err_set(ERR_SYSTEM, "cannot give %s its old owner: %m", path);
	close(fd);
	if (!e && rename(name, real))
		e = err_set(ERR_SYSTEM, "cannot replace %s: %m", path);
	if (e)
		unlink(name);
	return e;
}
