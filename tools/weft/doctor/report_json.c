#include "weft/doctor/report.h"

/* What a log says need not be UTF-8. */
static json_t *text_json(const char *text)
{
	json_t *value = json_string(text);
	char plain[FINDING_TEXT_BYTES];
	size_t i;

	if (value)
		return value;
	for (i = 0; text[i] && i + 1 < sizeof(plain); i++)
		plain[i] = (unsigned char)text[i] < 0x80 ? text[i] : '?';
	plain[i] = 0;
	return json_string(plain);
}

static json_t *words_json(const struct fact_words *words)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < words->count; i++)
		json_array_append_new(list, text_json(words->words[i].text));
	return list;
}

static json_t *nets_json(const struct log_facts *facts)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < facts->net_count; i++) {
		const struct fact_net *net = &facts->nets[i];

		json_array_append_new(list,
			json_pack("{s:o, s:I, s:I, s:i}", "name", text_json(net->name),
				"connections", (json_int_t)net->lines, "gpudirect",
				(json_int_t)net->gdr_lines, "nics",
				__builtin_popcountll(net->devices)));
	}
	return list;
}

static json_t *rows_json(const struct log_facts *facts)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < facts->row_count; i++)
		json_array_append_new(list,
			json_pack("{s:I, s:f, s:f}", "bytes",
				(json_int_t)facts->rows[i].bytes, "algbw",
				facts->rows[i].algbw, "busbw", facts->rows[i].busbw));
	return list;
}

json_t *report_facts_json(const struct log_facts *facts)
{
	json_t *object = json_pack("{s:I, s:I, s:i, s:i, s:i, s:i}", "lines",
		(json_int_t)facts->line_count, "ncclLines",
		(json_int_t)facts->nccl_line_count, "ranks", facts->rank_count, "nodes",
		facts->node_count, "ranksPerNode", facts->local_max, "channels",
		facts->coll_channels_max);
	json_t *vias = json_pack("{s:I, s:I, s:I}", "p2p",
		(json_int_t)facts->via_lines[VIA_P2P], "shm",
		(json_int_t)facts->via_lines[VIA_SHM], "net",
		(json_int_t)facts->via_lines[VIA_NET]);

	if (!object)
		return NULL;
	json_object_set_new(object, "ncclVersions", words_json(&facts->versions));
	json_object_set_new(object, "pluginVersions", words_json(&facts->plugins));
	json_object_set_new(object, "machines", words_json(&facts->platforms));
	json_object_set_new(object, "gpus", words_json(&facts->gpus));
	json_object_set_new(object, "networks", words_json(&facts->networks));
	json_object_set_new(object, "transports", vias);
	json_object_set_new(object, "networkConnections", nets_json(facts));
	json_object_set_new(object, "results", rows_json(facts));
	return object;
}

static json_t *evidence_json(
	const struct log_facts *facts, const struct evidence *evidence)
{
	json_t *object;
	int32_t rank = evidence_rank(facts, evidence);

	if (!evidence->line)
		return json_null();
	object = json_pack("{s:o, s:I, s:I, s:o}", "file",
		text_json(facts->files[evidence->file]), "line",
		(json_int_t)evidence->line, "count", (json_int_t)evidence->count, "text",
		text_json(evidence->text));
	if (rank >= 0)
		json_object_set_new(object, "rank", json_integer(rank));
	if (evidence->proc >= 0)
		json_object_set_new(object, "host",
			text_json(facts->hosts[facts->procs[evidence->proc].host]));
	return object;
}

json_t *report_findings_json(
	const struct log_facts *facts, const struct diagnosis *diagnosis)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < diagnosis->count; i++) {
		const struct finding *finding = &diagnosis->findings[i];
		const struct finding_info *info = catalogue_info(finding->id);
		json_t *object = json_pack("{s:s, s:s, s:s, s:s, s:o}", "id", info->name,
			"severity", severity_name(finding->severity), "title",
			info->title, "explanation", info->explanation, "remedy",
			text_json(finding->remedy[0] ? finding->remedy : info->remedy));

		if (finding->detail[0])
			json_object_set_new(object, "detail", text_json(finding->detail));
		if (finding->gain[0] || info->cost)
			json_object_set_new(object, "gain",
				text_json(finding->gain[0] ? finding->gain : info->cost));
		if (finding->cause != FIND_COUNT)
			json_object_set_new(object, "followsFrom",
				json_string(catalogue_info(finding->cause)->name));
		if (facts)
			json_object_set_new(object, "evidence",
				evidence_json(facts, &finding->evidence));
		json_array_append_new(list, object);
	}
	return list;
}
