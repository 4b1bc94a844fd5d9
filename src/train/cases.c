#include "train/cases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "topo/instance.h"

enum { NETS_MAX = 256 };

/* Nets by machine and nodes, while the rows are read. */
struct reader {
	struct train_cases *cases;
	struct train_net *nets; /* owned; NETS_MAX */
	double gbps[NETS_MAX];	/* of a node; 0: the machine's own */
	uint32_t net_count;
	const char *name;
	uint32_t row;
};

const char *stack_of_source(const char *source)
{
	static const struct {
		const char *word, *stack;
	} words[] = {
		{"llm-foundry", "llm-foundry"},
		{"Megatron-Bridge", "megatron-bridge"},
		{"bigscience", "megatron-deepspeed-bloom"},
		{"MLPerf Training v3.1", "mlperf-v3.1"},
		{"MLPerf Training v4.0", "mlperf-v4.0"},
		{"MLPerf Training v4.1", "mlperf-v4.1"},
		{"MLPerf Training v5.0", "mlperf-v5.0"},
		{"MLPerf Training v5.1", "mlperf-v5.1"},
		{"torchtitan", "torchtitan"},
		{"dgxc-benchmarking", "dgxc-nemo"},
		{"NVIDIA/NeMo", "nemo"},
		{"model_table", "megatron-lm-readme-h100"},
		{"cases_april2021", "megatron-lm-2021"},
		{"cases_jan2021", "megatron-lm-readme-jan2021"},
		{"SC21", "megatron-lm-2021"},
		{"Korthikanti", "megatron-lm-2022"},
		{"MegaScale", "megascale"},
		{"Nemotron-4", "nemo-2024"},
		{"MT-NLG", "megatron-deepspeed-2021"},
		{"fms-fsdp", "fms-fsdp"},
		{"KempnerForge", "kempnerforge"},
		{"Llama 3 Herd", "llama3-2024"},
		{"seed", "hf-deepspeed"},
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(source, words[i].word))
			return words[i].stack;
	return "";
}

static const char *field(const struct reader *r, const char *column)
{
	const struct sim_table *table = &r->cases->table;

	return table_at(table, r->row, table_column(table, column));
}

/* A whole number from the start of the field; `otherwise` where there is none. */
static uint32_t number(const struct reader *r, const char *column, uint32_t otherwise)
{
	char *end;
	const char *text = field(r, column);
	double value = strtod(text, &end);

	return end == text || !(value >= 1 && value <= 4e9) ? otherwise : (uint32_t)value;
}

/* Fields that hold numbers hold them: nothing, n/a, 0 or one from 1 ("4 (2)" counts as
 * 4). */
static enum err numbers_check(const struct reader *r)
{
	static const char *const columns[] = {"nodes", "tp", "pp", "cp", "dp", "ep",
		"mbs", "gbs", "seq", "vp", "layers", "hidden", "ffn", "heads", "kv_heads",
		"vocab"};

	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
		const char *text = field(r, columns[i]);
		char *end;
		double value = strtod(text, &end);
		bool is_whole = value >= 0 && value <= 4e9 && value == floor(value);

		if (*text && strcasecmp(text, "n/a") && (end == text || !is_whole))
			return err_set(ERR_USAGE,
				"%s, row %u: %s is '%.32s', which is no whole number "
				"within reason",
				r->name, r->row + 1, columns[i], text);
	}
	return OK;
}

static double real(const struct reader *r, const char *column)
{
	double value = strtod(field(r, column), NULL);

	return isfinite(value) && value > 0 ? value : 0;
}

static bool starts_with(const char *text, const char *head)
{
	return !strncasecmp(text, head, strlen(head));
}

/* Heads of 128 where that divides; else the most below it that tensor parallelism can
 * cut. */
static uint32_t heads_guess(uint32_t hidden, uint32_t tp)
{
	for (uint32_t heads = hidden / 128; heads > 1; heads--)
		if (hidden % heads == 0 && heads % (tp > 8 ? tp : 8) == 0)
			return heads;
	return hidden >= 128 ? hidden / 128 : 1;
}

static bool is_gpt(const char *name)
{
	return starts_with(name, "gpt") || starts_with(name, "mt-nlg") ||
	       starts_with(name, "bloom") || starts_with(name, "mpt") ||
	       starts_with(name, "nemotron");
}

/* The feed-forward that the published number of parameters leaves. */
static uint32_t ffn_guess(const struct train_model *m, double params)
{
	double rest = params - model_embedding_params(m) - model_head_params(m);
	double layer = rest / m->layers - model_attention_params(m);
	double ffn = layer / ((m->is_gated ? 3.0 : 2.0) * m->hidden);

	return ffn >= 1 && ffn < 1e7 ? (uint32_t)(ffn / 256 + .5) * 256 : 4 * m->hidden;
}

/* Of a model that nobody knows only the number of parameters counts: a dense one, in the
 * proportions of Llama. */
static enum err model_guess(const struct reader *r, struct train_model *m)
{
	double params = real(r, "params_b") * 1e9, hidden = cbrt(params / 8e9) * 4096;

	if (params <= 0 || params > 1e15)
		return ERR_USAGE; /* as model_find() said */
	*m = (struct train_model){.layers = (uint32_t)(hidden / 128) + 1,
		.hidden = ((uint32_t)(hidden / 128) + 1) * 128,
		.is_gated = true,
		.vocab = 128256,
		.head_dim = 128,
		.is_figures = true,
		.figure_params = params,
		.figure_active = params};
	m->heads = m->kv_heads = m->hidden / 128;
	m->ffn = 4 * m->hidden;
	snprintf(m->name, sizeof(m->name), "%.*s", MODEL_NAME_BYTES - 1,
		field(r, "model"));
	return model_check(m);
}

/* BLOOM's sweep says 80 layers of models whose parameters are those of fewer, and which
 * then divide over the pipeline. Parameters were counted with the embedding or without.
 */
static void layers_mend(const struct reader *r, struct train_model *m)
{
	double words = model_embedding_params(m),
	       layer = (model_params(m) - words) / m->layers,
	       said = real(r, "params_b") * 1e9;
	uint32_t pp = number(r, "pp", 1), best = m->layers;
	double least = fmin(fabs(layer * best - said), fabs(layer * best + words - said));

	if (m->layers % pp == 0 || (m->layers + 2) % pp == 0 || said <= 0 ||
		least < .01 * said)
		return;
	for (uint32_t layers = m->layers / pp * pp; layers; layers -= pp) {
		double off = fmin(
			fabs(layer * layers - said), fabs(layer * layers + words - said));

		if (off < least) {
			least = off;
			best = layers;
		}
	}
	if (least < .01 * said)
		m->layers = best;
}

/* Known by name, and the row's own sizes before those. */
static enum err model_read(const struct reader *r, struct train_model *m)
{
	const char *name = field(r, "model");
	enum err e = OK;

	*m = (struct train_model){0};
	if (!number(r, "hidden", 0) || !number(r, "layers", 0))
		return model_find(name, m) ? model_guess(r, m) : OK;
	snprintf(m->name, sizeof(m->name), "%.*s", MODEL_NAME_BYTES - 1, name);
	m->layers = number(r, "layers", 0);
	m->hidden = number(r, "hidden", 0);
	m->heads = number(r, "heads", heads_guess(m->hidden, number(r, "tp", 1)));
	m->kv_heads = number(r, "kv_heads", m->heads);
	m->head_dim = m->heads ? m->hidden / m->heads : 0;
	m->vocab = number(r, "vocab", 50257);
	m->is_gated = !is_gpt(name);
	m->is_layer_norm = m->has_bias = !m->is_gated;
	m->is_tied = !m->is_gated && !starts_with(name, "nemotron");
	m->is_adapter = strstr(name, "-lora") != NULL;
	m->ffn = number(r, "ffn", 0);
	if (!m->ffn && m->head_dim)
		m->ffn = ffn_guess(m, real(r, "params_b") * 1e9);
	e = model_check(m);
	if (!e)
		layers_mend(r, m);
	return e;
}

/* From the day that BLOOM's pipelines gave the embedding a layer's place, its gradients
 * were summed in fp32 beside those in bf16; before, in fp16. */
static enum train_grads grads_of(
	const char *stack, const struct train_model *m, const struct train_layout *l)
{
	if (!strcmp(stack_family(stack), "nvidia") ||
		starts_with(stack, "megatron-lm-20"))
		return GRADS_HALF;
	if (!strstr(stack, "bloom"))
		return GRADS_FP32;
	return m->layers % l->pp && (m->layers + 2) % l->pp == 0 ? GRADS_BOTH
								 : GRADS_HALF;
}

static bool is_old(const char *stack)
{
	return strstr(stack, "2021") || strstr(stack, "bloom") ||
	       !strcmp(stack, "megatron-lm-2022");
}

/* Interleaving that a table does not tell: NVIDIA's recipes of these stacks use it, with
 * as many chunks as divide and at most eight. */
static uint32_t chunks_guess(const struct train_model *m, const struct train_layout *l)
{
	for (uint32_t v = 8; v > 1; v--)
		if ((m->layers % (l->pp * v) == 0 ||
			    (m->layers + 2) % (l->pp * v) == 0) &&
			layout_micro_count(l) % l->pp == 0)
			return v;
	return 1;
}

/* A micro-batch that a table does not tell: one with a pipeline, else what divides up to
 * four and fits. */
static uint32_t micro_guess(const struct train_case *c)
{
	static const struct memory_habit plain = {1, 0};
	struct train_layout l = c->layout;
	uint32_t each = l.dp && l.pp == 1 && l.cp == 1 ? l.batch / l.dp : 1;

	for (l.micro = 4; l.micro > 1; l.micro /= 2) {
		struct train_memory memory;

		if (each % l.micro)
			continue;
		memory_make(&c->model, &l, &plain, &memory);
		if (memory.total <= c->who.gpu->memory_gb * 1e9)
			break;
	}
	return l.micro;
}

/* What a table leaves open and the GPU's memory decides: what one GPU cannot hold, were
 * even half of the activations computed again, was cut further. Experts over the tensor-
 * parallel ranks as well; else, without a pipeline, everything by Megatron's FSDP. */
static void held_mend(const char *stack, struct train_case *c)
{
	static const struct memory_habit half = {.5, 0};
	struct train_layout *l = &c->layout;
	struct train_memory memory;

	memory_make(&c->model, l, &half, &memory);
	if (memory.total <= c->who.gpu->memory_gb * 1e9)
		return;
	if (l->etp == 1 && l->tp > 1)
		l->etp = 0;
	else if (!strcmp(stack_family(stack), "nvidia") && l->pp == 1 && l->ep == 1 &&
		 l->shard == SHARD_OPTIMIZER)
		l->shard = SHARD_ALL;
}

/* What is sharded, computed again, and how narrow products are. */
static enum err words_read(const struct reader *r, struct train_layout *l)
{
	const char *column = NULL;

	if (!shard_find(field(r, "sharding"), &l->shard))
		column = "sharding";
	else if (!recompute_find(field(r, "recompute"), &l->recompute))
		column = "recompute";
	else if (*field(r, "precision") &&
		 !precision_find(field(r, "precision"), &l->precision))
		column = "precision";
	if (!column)
		return OK;
	return err_set(ERR_USAGE, "%s, row %u: %s '%.40s' is not known", r->name,
		r->row + 1, column, field(r, column));
}

static void flags_read(const struct reader *r, const char *stack, struct train_case *c)
{
	struct train_layout *l = &c->layout;
	const char *sharding = field(r, "sharding"), *recompute = field(r, "recompute");

	if (!strcmp(stack, "torchtitan") && l->recompute == RECOMPUTE_SELECTIVE)
		l->recompute = RECOMPUTE_OPS;
	l->is_pure_half = !strcmp(
		stack, "kempnerforge"); /* its model and AdamW are bf16 */
	l->flash = !is_old(stack);
	l->kernel = stack_kernel(stack);
	l->is_sequence_parallel = !is_old(stack) || strstr(recompute, "+SP");
	if (strstr(sharding, "offload"))
		l->offload = OFFLOAD_OPTIMIZER | OFFLOAD_PARAMS;
	if (starts_with(field(r, "precision"), "FP8/NVFP4") &&
		c->who.gpu->tflops[PRECISION_FP4] <= 0)
		l->precision = PRECISION_FP8;
}

static enum err layout_read(
	const struct reader *r, const char *stack, struct train_case *c)
{
	struct train_layout *l = &c->layout;
	uint64_t model;
	enum err e;

	layout_default(number(r, "gpus", 0), l);
	if (!l->gpus || l->gpus > 10000000)
		return err_set(ERR_USAGE, "%s, row %u: '%s' is no number of GPUs",
			r->name, r->row + 1, field(r, "gpus"));
	c->is_partial = !*field(r, "tp") || !*field(r, "seq") || !*field(r, "gbs");
	/* A cut that is not told: by four and by four, where the GPUs are that many. */
	l->tp = number(r, "tp", l->gpus % 16 ? 1 : 4);
	l->pp = number(r, "pp", *field(r, "tp") || l->gpus % 16 ? 1 : 4);
	l->cp = number(r, "cp", 1);
	l->ep = number(r, "ep", 1);
	l->etp = l->ep > 1 ? 1 : 0;
	model = (uint64_t)l->tp * l->pp * l->cp;
	if (model > l->gpus || l->gpus % model)
		return err_set(ERR_USAGE,
			"%s, row %u: tp %u x pp %u x cp %u does not divide %u GPUs",
			r->name, r->row + 1, l->tp, l->pp, l->cp, l->gpus);
	l->dp = (uint32_t)(l->gpus / model);
	l->batch = number(r, "gbs", l->dp);
	l->sequence = number(r, "seq", 1024);
	l->shard_size = number(r, "nodes", 0) ? l->gpus / number(r, "nodes", 1) / l->tp
					      : 0;
	e = words_read(r, l);
	if (e)
		return e;
	flags_read(r, stack, c);
	if (c->who.gpu->tflops[l->precision] <= 0)
		return err_set(ERR_USAGE, "%s, row %u: %s cannot compute in %s", r->name,
			r->row + 1, c->who.gpu->name, precision_name(l->precision));
	l->grads = grads_of(stack, &c->model, l);
	l->micro = number(r, "mbs", micro_guess(c));
	l->vp = number(r, "vp", 0);
	if (!l->vp)
		l->vp = l->pp > 1 && !*field(r, "vp") &&
					(starts_with(stack, "mlperf") ||
						starts_with(stack, "nemo"))
				? chunks_guess(&c->model, l)
				: 1;
	if (l->vp > 1 && (uint64_t)l->vp * l->pp > c->model.layers + 2)
		l->vp = 1;
	held_mend(stack, c);
	return OK;
}

/* Gb/s of a node, where it is known that they are not those of the machine that stands
 * for the GPU: four Omni-Path links on Jean Zay, and what fms-fsdp says of its clusters.
 */
static double wires_of(const char *stack, const struct train_gpu *gpu)
{
	static const struct {
		const char *stack, *kind;
		double gbps;
	} known[] = {
		{"megatron-deepspeed-bloom", "a100", 400},
		{"fms-fsdp", "a100", 400},
		{"fms-fsdp", "h100", 800},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(stack, known[i].stack) && !strcmp(gpu->kind, known[i].kind))
			return known[i].gbps;
	return 0;
}

static enum err net_of(struct reader *r, const char *machine, uint32_t nodes, double gbps,
	struct train_net **net)
{
	uint32_t gpus;
	enum err e;

	for (uint32_t i = 0; i < r->net_count; i++)
		if (!strcmp(r->nets[i].site.machine, machine) &&
			r->nets[i].site.nodes == nodes && r->gbps[i] == gbps) {
			*net = &r->nets[i];
			return OK;
		}
	gpus = instance_find(machine) ? instance_find(machine)->gpu_count : 0;
	if (r->net_count == NETS_MAX)
		net_free(&r->nets[--r->net_count]);
	*net = &r->nets[r->net_count];
	e = net_make(*net, machine, nodes, gpus);
	if (e)
		return e;
	if (gbps > 0 && (*net)->site.nics)
		(*net)->site.nic_GBps = gbps / 8 / (*net)->site.nics;
	r->gbps[r->net_count++] = gbps;
	return OK;
}

static const char *machine_of(const char *gpu_text, const struct train_gpu *gpu)
{
	if (strstr(gpu_text, "p4d"))
		return "p4d.24xlarge";
	return strstr(gpu_text, "p5") ? "p5.48xlarge" : gpu->machine;
}

/* "4 pods x 1 GPU ..": such a run is cut so, with a NIC for each pod. */
static uint32_t pods_of(const struct reader *r)
{
	const char *text = field(r, "notes");
	char *end;
	unsigned long pods;

	if (*text < '1' || *text > '9')
		return 1;
	pods = strtoul(text, &end, 10);
	return pods <= 999 && starts_with(end, " pods x") ? (uint32_t)pods : 1;
}

/* Nodes that a row tells, or that its GPUs fill. */
static enum err nodes_read(
	const struct reader *r, const char *machine, uint32_t gpus, uint32_t *nodes)
{
	const struct instance_info *info = instance_find(machine);
	uint32_t own = info ? info->gpu_count : 8;

	*nodes = number(r, "nodes", gpus > own ? (gpus + own - 1) / own : 1);
	if (gpus % *nodes)
		return err_set(ERR_USAGE,
			"%s, row %u: %u GPUs do not divide over %u nodes", r->name,
			r->row + 1, gpus, *nodes);
	if (gpus / *nodes > own)
		return err_set(ERR_USAGE,
			"%s, row %u: %u GPUs on %u nodes are more than the %u of a %s",
			r->name, r->row + 1, gpus, *nodes, own, machine);
	return OK;
}

static enum err work_read(struct reader *r, struct train_case *c)
{
	const char *machine = machine_of(field(r, "gpu"), c->who.gpu);
	uint32_t nodes, pods = pods_of(r), each;
	struct train_order order;
	struct train_host host;
	struct train_net *net;
	struct train_job job;
	struct sim_site whole;
	enum err e = nodes_read(r, machine, c->layout.gpus, &nodes);

	if (!e)
		e = net_of(r, machine, nodes, wires_of(c->who.stack, c->who.gpu), &net);
	if (!e)
		e = order_parse("tp-cp-ep-dp-pp", &order);
	if (e)
		return e;
	each = c->layout.gpus / nodes;
	whole = net->site;
	if (each < net->site.gpus)
		net->site.gpus = each;
	host_find(machine, c->who.gpu, &host);
	host.processes = each;
	host.pod_processes = each / pods;
	if (pods > 1)
		e = sim_site_pods(&net->site, pods, each / pods, 1);
	job = (struct train_job){&c->model, &c->layout, &order, net, c->who.gpu, &host};
	if (!e)
		e = work_make(&job, &c->work);
	net->site = whole;
	if (pods > 1)
		net->curve_count = 0; /* those of the pods are nobody else's */
	return e;
}

static uint32_t source_of(struct train_cases *cases, const char *source)
{
	for (uint32_t i = 0; i < cases->source_count; i++)
		if (!strcmp(cases->sources[i], source))
			return i;
	cases->sources[cases->source_count] = source;
	return cases->source_count++;
}

/* Sources that ran two programs: MegaScale beside Megatron-LM, and Megatron-LM of 2021
 * beside DeepSpeed, which alone had ZeRO-3 then. */
static const char *stack_of_row(const struct reader *r, const char *stack)
{
	if (!strcmp(stack, "megascale") && starts_with(field(r, "notes"), "Megatron-LM"))
		return "megascale-megatron";
	if (!strcmp(stack, "megatron-lm-2021") && strstr(field(r, "sharding"), "ZeRO-3"))
		return "deepspeed-2021";
	return stack;
}

static enum err row_read(struct reader *r, struct train_case *c)
{
	const char *source = field(r, "source"), *stack = field(r, "stack");
	double tokens = real(r, "tokens_per_s_per_gpu");
	enum err e;

	if (!*stack)
		stack = stack_of_source(source);
	stack = stack_of_row(r, stack);
	*c = (struct train_case){.row = r->row};
	c->who.stack = stack;
	c->who.gpu = gpu_named(field(r, "gpu"));
	if (!c->who.gpu)
		return err_set(ERR_USAGE, "%s, row %u: no figures for GPU '%s'", r->name,
			r->row + 1, field(r, "gpu"));
	if (!*field(r, "model"))
		return err_set(
			ERR_USAGE, "%s, row %u names no model", r->name, r->row + 1);
	e = numbers_check(r);
	if (!e)
		e = model_read(r, &c->model);
	/* MegaScale changed the model so that a layer sends half as often. */
	c->model.is_parallel = !strcmp(stack, "megascale");
	if (!e)
		e = layout_read(r, stack, c);
	if (!e)
		e = work_read(r, c);
	c->who.precision = c->layout.precision;
	c->who.is_moe = c->model.experts > 0;
	c->step_s = real(r, "step_s");
	if (c->step_s <= 0 && tokens > 0)
		c->step_s = c->work.tokens / c->layout.gpus / tokens;
	c->memory_bytes = real(r, "mem_gb") * MEMORY_GIB;
	c->is_audited = starts_with(field(r, "provenance"), "audited");
	c->source = source_of(r->cases, source);
	return e;
}

/* What is wrong with a layout or a model does not know of rows. */
static void row_name(const struct reader *r, enum err e)
{
	char text[ERR_TEXT_BYTES];

	snprintf(text, sizeof(text), "%s", err_last());
	if (strncmp(text, r->name, strlen(r->name)) != 0)
		err_set(e, "%s, row %u: %s", r->name, r->row + 1, text);
}

static enum err rows_read(struct reader *r)
{
	struct train_cases *cases = r->cases;
	uint32_t rows = cases->table.row_count;
	enum err e = OK;

	cases->cases = calloc(rows + 1, sizeof(*cases->cases));
	cases->sources = calloc(rows + 1, sizeof(*cases->sources));
	r->nets = calloc(NETS_MAX, sizeof(*r->nets));
	if (!cases->cases || !cases->sources || !r->nets)
		return err_set(ERR_SYSTEM, "no memory for %u rows", rows);
	for (r->row = 0; !e && r->row < rows; r->row++) {
		e = row_read(r, &cases->cases[cases->count]);
		cases->count += !e;
		if (e)
			row_name(r, e);
	}
	return e;
}

static enum err finish(struct reader *r, enum err e)
{
	static const char *const needed[] = {"model", "gpu", "gpus"};

	for (int i = 0; !e && i < 3; i++)
		if (table_column(&r->cases->table, needed[i]) < 0)
			e = err_set(
				ERR_USAGE, "%s has no column '%s'", r->name, needed[i]);
	if (!e)
		e = rows_read(r);
	for (uint32_t i = 0; r->nets && i < r->net_count; i++)
		net_free(&r->nets[i]);
	free(r->nets);
	if (e)
		train_cases_free(r->cases);
	return e;
}

enum err train_cases_read(const char *path, struct train_cases *cases)
{
	struct reader r = {.cases = cases, .name = path};
	enum err e;

	*cases = (struct train_cases){0};
	e = table_read(path, &cases->table);
	return e ? e : finish(&r, OK);
}

enum err train_cases_parse(
	const char *text, size_t bytes, const char *name, struct train_cases *cases)
{
	struct reader r = {.cases = cases, .name = name};
	enum err e;

	*cases = (struct train_cases){0};
	e = table_parse(text, bytes, name, &cases->table);
	return e ? e : finish(&r, OK);
}

void train_cases_free(struct train_cases *cases)
{
	table_free(&cases->table);
	free(cases->cases);
	free(cases->sources);
	*cases = (struct train_cases){0};
}
