/* How many ranks are started, against how many GPUs and pods there are. */
#include <stdio.h>
#include <string.h>

#include "common/units.h"
#include "weft/k8s/rule.h"

enum { NUMBER_BYTES = 24, RANKS_MAX = 1 << 20 };

static struct node word_node(const struct word *word)
{
	return (struct node){.line = word->line,
		.column = word->column,
		.start = word->start,
		.end = word->end};
}

/* The number in an option's value becomes another. */
static void edit_number(struct finding *finding, const struct word *word,
	const char *value, int64_t number)
{
	size_t skip = (size_t)(value - word->text);
	char text[NUMBER_BYTES];

	if (word->start == word->end)
		return;
	snprintf(text, sizeof(text), "%d", (int)number);
	edit_bytes(finding, word->start + skip, word->end, text);
}

static bool option_number(const struct words *words, const struct word *from,
	const char *names, const struct word **word, const char **value)
{
	int64_t number;

	*word = words_option(words, from, names, value);
	return *word && units_int(*value, 1, RANKS_MAX, &number);
}

/* mpirun's -np and -N of a launcher. */
static void mpirun(const struct rule_view *view, const struct pod_set *set, int64_t pods)
{
	const struct work *work = view->work;
	int64_t slots = work->slots, ranks = pods * slots, number = 0;
	const struct word *program, *word;
	struct finding *finding;
	struct words words;
	const char *value;

	words_read(work->file, set->container, &words);
	program = words_program(&words, "mpirun");
	if (!program)
		program = words_program(&words, "mpiexec");
	if (program && option_number(&words, program, "-np -n --np", &word, &value) &&
		units_int(value, 1, RANKS_MAX, &number) && number != ranks) {
		struct node at = word_node(word);

		finding = finding_add(view->findings, RULE_NP_TOTAL, &at,
			"mpirun starts %d ranks; %d workers of %d slots have %d",
			(int)number, (int)pods, (int)slots, (int)ranks);
		finding_todo(finding, "write %d", (int)ranks);
		edit_number(finding, word, value, ranks);
	}
	if (program &&
		option_number(
			&words, program, "-N -npernode --npernode -ppn", &word, &value) &&
		units_int(value, 1, RANKS_MAX, &number) && number != slots) {
		struct node at = word_node(word);

		finding = finding_add(view->findings, RULE_NP_TOTAL, &at,
			"mpirun starts %d ranks in a worker, and each has %d slots",
			(int)number, (int)slots);
		finding_todo(finding, "write %d", (int)slots);
		edit_number(finding, word, value, slots);
	}
	words_free(&words);
}

/* What the slots will be once the rule about them was followed. */
static int64_t slots_meant(const struct work *work)
{
	const struct pod_set *set = work_main_set(work);

	return set ? set->gpus : work->slots;
}

/* Slots under another name: then it is the field that is wrong. */
static bool is_misnamed(const struct work *work)
{
	return !work->slots_at && (node_get(work->spec, "procPerNode") ||
					  node_get(work->spec, "nprocPerNode") ||
					  node_get(work->spec, "gpusPerNode") ||
					  node_get(work->spec, "processesPerNode"));
}

static void mpijob(const struct rule_view *view)
{
	struct work meant = *view->work;
	struct rule_view mended = *view;
	const struct pod_set *set = work_main_set(view->work);
	char text[NUMBER_BYTES];

	if (set && set->gpus != view->work->slots && !is_misnamed(view->work)) {
		struct finding *finding = finding_add(view->findings, RULE_SLOTS_GPU,
			node_or(view->work->slots_at, node_key(view->work->root, "spec")),
			"%d slots%s for %d GPUs in a worker", (int)view->work->slots,
			view->work->slots_at ? "" : " (the default)", (int)set->gpus);

		finding_todo(finding, "write slotsPerWorker: %d", (int)set->gpus);
		snprintf(text, sizeof(text), "%d", (int)set->gpus);
		if (view->work->slots_at)
			edit_scalar(
				view->work->file, finding, view->work->slots_at, text);
		else
			edit_add(view->work->file, finding, view->work->spec,
				"slotsPerWorker", json_integer(set->gpus));
	}
	meant.slots = slots_meant(view->work);
	mended.work = &meant;
	for (uint32_t i = 0; i < meant.set_count; i++)
		if (!strcmp(meant.sets[i].role, "Launcher"))
			mpirun(&mended, &meant.sets[i], work_rank_pods(&meant));
}

static void launcher_gpus(const struct rule_view *view)
{
	for (uint32_t i = 0; i < view->work->set_count; i++) {
		const struct pod_set *set = &view->work->sets[i];
		const struct node *lists[] = {node_get(set->resources, "limits"),
			node_get(set->resources, "requests")};
		struct finding *finding;

		if (!set->is_launcher || set->gpus <= 0)
			continue;
		finding = finding_add(view->findings, RULE_LAUNCHER_GPU,
			node_or(node_key(lists[0], "nvidia.com/gpu"), set->resources),
			"the launcher asks for %d GPU%s", (int)set->gpus,
			set->gpus == 1 ? "" : "s");
		finding_todo(finding, "take them out, or say runLauncherAsWorker: true "
				      "if it should run "
				      "ranks");
		for (int j = 0; j < 2; j++)
			if (node_get(lists[j], "nvidia.com/gpu"))
				edit_remove(view->work->file, finding,
					node_get(lists[j], "nvidia.com/gpu"));
		/* Both alone in their maps would take the same away twice. */
		if (finding->edit_count == 2 &&
			(lists[0]->count == 1 || lists[1]->count == 1)) {
			finding_forget_edits(finding);
			edit_remove(view->work->file, finding, set->resources);
		}
	}
}

/* torchrun's own option against what the job says and has. */
static void torchrun(const struct rule_view *view, const struct pod_set *set)
{
	int64_t number = 0, want = set->gpus ? set->gpus : view->work->slots;
	const char *value;
	const struct word *word;
	struct words words;

	words_read(view->work->file, set->container, &words);
	if (want > 0 && option_number(&words, NULL, "--nproc-per-node", &word, &value) &&
		units_int(value, 1, RANKS_MAX, &number) && number != want) {
		struct node at = word_node(word);
		struct finding *finding = finding_add(view->findings, RULE_NPROC, &at,
			"torchrun starts %d processes in a pod of %d %s", (int)number,
			(int)want, set->gpus ? "GPUs" : "by the job's own field");

		finding_todo(
			finding, "write --nproc_per_node=%d, or leave it out", (int)want);
		edit_number(finding, word, value, want);
	}
	words_free(&words);
}

static bool says_nproc(const struct work *work, const struct pod_set *set)
{
	struct words words;
	const char *value;
	bool is_said;

	words_read(work->file, set->container, &words);
	is_said = words_option(&words, NULL, "--nproc-per-node", &value) != NULL;
	words_free(&words);
	return is_said;
}

static void processes(const struct rule_view *view)
{
	const struct work *work = view->work;
	const struct pod_set *set = work_main_set(work);
	struct finding *finding;
	char text[NUMBER_BYTES];

	if (!set)
		return;
	if (work->slots && work->slots != set->gpus && work->kind != WORK_MPIJOB) {
		finding = finding_add(view->findings, RULE_NPROC, work->slots_at,
			"%d processes in a pod of %d GPU%s", (int)work->slots,
			(int)set->gpus, set->gpus == 1 ? "" : "s");
		snprintf(text, sizeof(text), "%d", (int)set->gpus);
		finding_todo(finding, "write %s", text);
		edit_scalar(work->file, finding, work->slots_at, text);
	}
	if (work->kind == WORK_PYTORCHJOB && !work->slots_at && !says_nproc(work, set)) {
		finding = finding_add(view->findings, RULE_NPROC_UNSET,
			node_key(work->root, "spec"), "nprocPerNode is not said");
		snprintf(text, sizeof(text), "%d", (int)set->gpus);
		finding_todo(finding, "write nprocPerNode: \"%s\"", text);
		edit_add(work->file, finding, work->spec, "nprocPerNode",
			json_string(text));
	}
}

static void split(const struct rule_view *view)
{
	const struct pod_set *set = work_main_set(view->work);
	int64_t pods = work_rank_pods(view->work), per_node;
	struct finding *finding;

	if (!set || pods < 2)
		return;
	if (!set->machine) {
		if (set->gpus > 1 || set->machine_name)
			return;
		finding = finding_add(view->findings, RULE_PODS_SPLIT,
			node_or(set->resources, set->at),
			"%d pods of one GPU each; if the machines have more, their GPUs "
			"do "
			"not see each other",
			(int)pods);
		finding->severity = SEVERITY_NOTE;
		finding_todo(finding, "make one pod of each machine with all its GPUs; "
				      "weft graph MACHINE "
				      "--pods Px1 tells what it costs");
		return;
	}
	per_node = set->machine->gpus / set->gpus;
	if (per_node < 2)
		return;
	if (per_node > pods)
		per_node = pods;
	finding = finding_add(view->findings, RULE_PODS_SPLIT,
		node_or(set->resources, set->at),
		"%d pods of %d GPU%s fit on one %s of %d, where they reach each other by "
		"the "
		"network only",
		(int)per_node, (int)set->gpus, set->gpus == 1 ? "" : "s",
		set->machine->name, set->machine->gpus);
	finding_todo(finding,
		"make it %d pod%s of %d GPUs, and run that many processes in each; weft "
		"graph "
		"%s --pods %dx%d tells what it costs",
		(int)((pods * set->gpus + set->machine->gpus - 1) / set->machine->gpus),
		pods * set->gpus > set->machine->gpus ? "s" : "", set->machine->gpus,
		set->machine->name, (int)per_node, (int)set->gpus);
}

void rules_ranks(const struct rule_view *view)
{
	if (view->work->kind == WORK_MPIJOB)
		mpijob(view);
	launcher_gpus(view);
	processes(view);
	for (uint32_t i = 0; i < view->work->set_count; i++)
		torchrun(view, &view->work->sets[i]);
	split(view);
}
