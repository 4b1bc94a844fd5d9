/* Findings in SARIF 2.1.0, which code hosts show beside the lines. */
#include <stdlib.h>
#include <string.h>

#include "weft/k8s/report.h"

static const char *level(enum severity severity)
{
	static const char *const levels[SEVERITY_COUNT] = {[SEVERITY_NOTE] = "note",
		[SEVERITY_PERFORMANCE] = "warning",
		[SEVERITY_FATAL] = "error"};

	return levels[severity];
}

static json_t *rule_list(void)
{
	json_t *list = json_array();

	for (int i = 0; i < RULE_COUNT; i++)
		json_array_append_new(
			list, json_pack("{s:s,s:{s:s},s:{s:s},s:{s:s}}", "id",
				      rules[i].id, "shortDescription", "text",
				      rules[i].title, "fullDescription", "text",
				      rules[i].why, "defaultConfiguration", "level",
				      level(rules[i].severity)));
	return list;
}

/* Line and column of a byte; columns count characters, as everywhere here. */
static void place_of(const struct doc_file *file, size_t byte, int *line, int *column)
{
	uint32_t l = 1;

	while (l < file->line_count && file->lines[l] <= byte)
		l++;
	*line = (int)l;
	*column = 1;
	for (size_t i = doc_line_start(file, l); i < byte; i++)
		*column += ((unsigned char)file->text[i] & 0xc0) != 0x80;
}

static json_t *region(const struct doc_file *file, size_t start, size_t end)
{
	int line, column, end_line, end_column;

	place_of(file, start, &line, &column);
	place_of(file, end, &end_line, &end_column);
	return json_pack("{s:i,s:i,s:i,s:i}", "startLine", line, "startColumn", column,
		"endLine", end_line, "endColumn", end_column);
}

static json_t *fixes(const struct doc_file *file, const struct finding *finding)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < finding->edit_count; i++)
		json_array_append_new(
			list, json_pack("{s:o,s:{s:s}}", "deletedRegion",
				      region(file, finding->edits[i].start,
					      finding->edits[i].end),
				      "insertedContent", "text", finding->edits[i].text));
	return json_pack("[{s:{s:s},s:[{s:{s:s},s:o}]}]", "description", "text",
		finding->todo ? finding->todo : "", "artifactChanges", "artifactLocation",
		"uri", file->path, "replacements", list);
}

static json_t *result_of(const struct doc_file *file, const struct finding *finding)
{
	size_t end = finding->end;
	json_t *one, *message, *where;

	/* The first line of what is meant: a whole pod would hide the rest of the page.
	 */
	for (size_t i = finding->start; i < finding->end && i < file->bytes; i++)
		if (file->text[i] == '\n' || file->text[i] == '\r') {
			end = i;
			break;
		}
	if (end < finding->start)
		end = finding->start;
	message = json_object();
	one = json_string(finding->text ? finding->text : "");
	if (finding->todo) {
		char *text = NULL;

		if (asprintf(&text, "%s. To do: %s.", finding->text ? finding->text : "",
			    finding->todo) >= 0) {
			json_decref(one);
			one = json_string(text);
			free(text);
		}
	}
	json_object_set_new(message, "text", one);
	where = json_pack("[{s:{s:{s:s},s:o}}]", "physicalLocation", "artifactLocation",
		"uri", file->path, "region", region(file, finding->start, end));
	one = json_pack("{s:s,s:i,s:s,s:o,s:o}", "ruleId", rules[finding->rule].id,
		"ruleIndex", (int)finding->rule, "level", level(finding->severity),
		"message", message, "locations", where);
	if (one && finding->edit_count)
		json_object_set_new(one, "fixes", fixes(file, finding));
	return one;
}

json_t *report_sarif(const struct check_result *results, uint32_t count)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < count; i++)
		for (uint32_t j = 0; j < results[i].findings.count; j++)
			json_array_append_new(
				list, result_of(&results[i].file,
					      &results[i].findings.list[j]));
	return json_pack("{s:s,s:s,s:[{s:{s:{s:s,s:o}},s:s,s:o}]}", "$schema",
		"https://json.schemastore.org/sarif-2.1.0.json", "version", "2.1.0",
		"runs", "tool", "driver", "name", "weft k8s check", "rules", rule_list(),
		"columnKind", "unicodeCodePoints", "results", list);
}
