/* weft k8s - manifests of jobs that use NCCL: check them, correct them, write them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft/command.h"
#include "weft/json_print.h"
#include "weft/k8s/k8s_args.h"
#include "weft/k8s/reach.h"
#include "weft/k8s/report.h"
#include "weft/k8s/strangers.h"
#include "weft/k8s/write.h"

static int print_rules(const struct k8s_args *args)
{
	if (args->json)
		return json_print("k8s rules", report_rules_json());
	report_rules();
	return EXIT_GOOD;
}

static int worst(const struct check_result *results, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t j = 0; j < results[i].findings.count; j++)
			if (results[i].findings.list[j].severity != SEVERITY_NOTE)
				return EXIT_WRONG;
	return EXIT_GOOD;
}

/* What a corrected text still has; said on standard error, so that nobody takes it for
 * right. */
static int what_is_left(const struct k8s_args *args, const char *path, const char *text)
{
	struct check_result left = {0};
	int status = EXIT_WRONG;

	if (!doc_parse(path, text, strlen(text), &left.file)) {
		check_file(&args->check, &left);
		status = worst(&left, 1);
	}
	for (uint32_t i = 0; i < left.findings.count; i++) {
		const struct finding *one = &left.findings.list[i];

		fprintf(stderr, "weft k8s: not corrected: %s:%u:%u: %s [%s]; %s\n", path,
			one->line, one->column, one->text, rules[one->rule].id,
			one->todo ? one->todo : "");
	}
	check_result_free(&left);
	return status;
}

/* --fix of one file: written, shown as a difference, or printed. */
static enum err fix(
	const struct k8s_args *args, const struct check_result *result, int *status)
{
	uint32_t fixed;
	char *text = check_fix(&args->check, result, &fixed), *diff = NULL;
	enum err e = OK;

	if (!text)
		return err_set(ERR_USAGE,
			"%s is not YAML and is left as it is; mend line %u first",
			result->file.path,
			result->file.fault_count ? result->file.faults[0].line : 1);
	if (args->diff) {
		diff = edit_diff(result->file.path, result->file.text, text);
		fputs(diff ? diff : "", stdout);
	} else if (!args->in_place) {
		fputs(text, stdout);
	}
	if (args->in_place && fixed) {
		e = check_write(result->file.path, text);
		if (!e && !args->diff)
			printf("%s: %u finding%s corrected\n", result->file.path, fixed,
				fixed == 1 ? "" : "s");
	}
	if (what_is_left(args, result->file.path, text))
		*status = EXIT_WRONG;
	free(diff);
	free(text);
	return e;
}

static json_t *as_json(
	const struct k8s_args *args, const struct check_result *results, uint32_t count)
{
	json_t *top, *list;

	if (args->sarif)
		return report_sarif(results, count);
	top = report_json(results, count);
	list = json_array();
	for (uint32_t i = 0; top && !args->quiet && i < count; i++)
		reach_json(&args->check, &results[i], list);
	if (top)
		json_object_set_new(top, "jobs", list);
	return top;
}

static int tell(
	const struct k8s_args *args, const struct check_result *results, uint32_t count)
{
	int status = worst(results, count), printed;

	if (args->fix) {
		status = EXIT_GOOD;
		for (uint32_t i = 0; i < count; i++)
			if (fix(args, &results[i], &status)) {
				fprintf(stderr, "weft k8s: %s\n", err_last());
				status = EXIT_WRONG;
			}
		return status;
	}
	if (strangers_alone(results, count))
		status = EXIT_WRONG;
	if (args->json || args->sarif) {
		printed = json_print("k8s", as_json(args, results, count));
		return printed ? printed : status;
	}
	for (uint32_t i = 0; i < count; i++) {
		report_text(&results[i], args->quiet);
		if (!args->quiet)
			reach_text(&args->check, &results[i]);
	}
	report_total(results, count);
	return status;
}

static int check(const struct k8s_args *args)
{
	struct check_result *results = calloc((size_t)args->name_count, sizeof(*results));
	uint32_t count = 0;
	int status = EXIT_GOOD, told;

	for (int i = 0; results && i < args->name_count; i++) {
		if (doc_read(args->names[i], &results[count].file)) {
			fprintf(stderr, "weft k8s: %s\n", err_last());
			check_result_free(&results[count]);
			status = EXIT_WRONG;
			continue;
		}
		check_file(&args->check, &results[count++]);
	}
	if (!results)
		return EXIT_WRONG;
	told = count ? tell(args, results, count) : EXIT_GOOD;
	for (uint32_t i = 0; i < count; i++)
		check_result_free(&results[i]);
	free(results);
	return status ? status : told;
}

int command_k8s(int argc, char **argv)
{
	struct k8s_args args;
	enum err e;

	if (command_wants_help(argc, argv) || argc < 2) {
		k8s_args_usage(argc < 2 ? stderr : stdout);
		return argc < 2 ? EXIT_USAGE : EXIT_GOOD;
	}
	if (!k8s_args_parse(&args, argc, argv))
		return EXIT_USAGE;
	if (args.verb == K8S_RULES)
		return print_rules(&args);
	if (args.verb == K8S_CHECK)
		return check(&args);
	e = write_manifest(stdout, &args.write);
	if (!e)
		return EXIT_GOOD;
	fprintf(stderr, "weft k8s: %s\n", err_last());
	return e == ERR_USAGE ? EXIT_USAGE : EXIT_WRONG;
}
