/* Layouts that do not divide get a sentence; stages and memory are what a sheet of paper
 * gives. */
#include "train/memory.h"

#include <math.h>

#include "test.h"

static void near(double a, double b)
{
	if (fabs(a - b) > 1e-9 * fabs(b)) {
		fprintf(stderr, "%.12g is not %.12g\n", a, b);
		exit(1);
	}
}

static void refused(struct train_layout l, const char *name, const char *word)
{
	struct train_model m;
	enum err e;

	EQ(model_find(name, &m), OK);
	e = layout_complete(&l);
	if (!e)
		e = layout_check(&m, &l);
	EQ(e, ERR_USAGE);
	if (!strstr(err_last(), word)) {
		fprintf(stderr, "'%s' does not say '%s'\n", err_last(), word);
		exit(1);
	}
}

static void bad_layouts(void)
{
	struct train_layout l, base;

	layout_default(64, &base);
	l = base;
	l.tp = 3;
	refused(l, "llama3-8b", "does not divide 64");
	l = base;
	l.tp = 8;
	l.dp = 4;
	refused(l, "llama3-8b", "there are 64 GPUs");
	l = base;
	l.tp = 64;
	refused(l, "llama3-8b", "heads");
	l = base;
	l.pp = 64;
	refused(l, "llama3-8b", "too few");
	l = base;
	l.ep = 2;
	refused(l, "llama3-8b", "no experts, so ep is 1");
	l = base;
	l.etp = 2;
	refused(l, "llama3-8b", "no experts, so etp is 1");
	l = base;
	l.batch = 100;
	refused(l, "llama3-8b", "batch of 100");
	l = base;
	l.pp = 4;
	l.vp = 2;
	l.batch = 16 * 3;
	refused(l, "llama3-8b", "interleaved");
	l = base;
	l.vp = 2;
	refused(l, "llama3-8b", "pp is 1");
	l = base;
	l.offload = OFFLOAD_PARAMS;
	refused(l, "llama3-8b", "zero3");
	l = base;
	l.cp = 32;
	l.sequence = 100;
	refused(l, "llama3-8b", "does not cut");
	l = base;
	l.shard = SHARD_HYBRID;
	l.shard_size = 3;
	refused(l, "llama3-8b", "does not divide dp 64");
	l = base;
	l.gpus = 1 << 20;
	l.micro = 1 << 16;
	refused(l, "llama3-8b", "smaller --mbs");
}

/* 126 layers over 8 stages of 8 chunks: with embedding and head 128, two a chunk. */
static void stages(void)
{
	struct train_layout l;
	struct train_model m;

	EQ(model_find("llama3.1-405b", &m), OK);
	layout_default(64, &l);
	l.pp = 8;
	l.vp = 8;
	EQ(layout_stage_layers(&m, &l, 0), 15);
	EQ(layout_stage_layers(&m, &l, 3), 16);
	EQ(layout_stage_layers(&m, &l, 7), 15);
	l.vp = 1;
	l.pp = 4; /* 126 = 32 + 32 + 31 + 31, and 128 divides */
	EQ(layout_stage_layers(&m, &l, 0), 31);
	l.pp = 7;
	EQ(layout_stage_layers(&m, &l, 6), 18);
}

/* Llama-3-8B, tp 2, dp 4: 18 bytes a parameter, 6 + 12/d, or 16/d
 * where the master copy is the parameter. */
static void states(void)
{
	static const struct memory_habit plain = {1, 0};
	struct train_layout l;
	struct train_model m;
	struct train_memory memory;
	double matrices, whole;

	EQ(model_find("llama3-8b", &m), OK);
	layout_default(8, &l);
	l.tp = 2;
	l.dp = 4;
	l.batch = 4;
	matrices = (8030261248.0 - 65 * 4096) / 2;
	whole = matrices + 64 * 4096; /* the last norm is nobody's here */
	l.shard = SHARD_NONE;
	memory_make(&m, &l, &plain, &memory);
	near(memory.params, 2 * whole);
	near(memory.grads, 4 * whole);
	near(memory.optimizer, 12 * whole);
	l.shard = SHARD_OPTIMIZER;
	memory_make(&m, &l, &plain, &memory);
	near(memory.params + memory.grads + memory.optimizer, (6 + 12.0 / 4) * whole);
	l.shard = SHARD_ALL;
	memory_make(&m, &l, &plain, &memory);
	near(memory.params + memory.grads + memory.optimizer, 16.0 / 4 * whole);
	l.offload = OFFLOAD_PARAMS | OFFLOAD_OPTIMIZER;
	memory_make(&m, &l, &plain, &memory);
	near(memory.params + memory.grads + memory.optimizer, 0);
	near(memory.host, (2 + 4 + 12) / 4.0 * whole);
	l.offload = OFFLOAD_OPTIMIZER; /* with the copy in fp32, and gradients */
	memory_make(&m, &l, &plain, &memory);
	near(memory.params + memory.grads + memory.optimizer, 2.0 / 4 * whole);
	near(memory.host, (4 + 12) / 4.0 * whole);
	l.offload = OFFLOAD_GRADIENTS; /* they are somewhere */
	memory_make(&m, &l, &plain, &memory);
	near(memory.params + memory.optimizer, 12.0 / 4 * whole);
	near(memory.host, 4.0 / 4 * whole);
	l.offload = 0;
	l.shard = SHARD_HYBRID;
	l.shard_size = 2;
	memory_make(&m, &l, &plain, &memory);
	near(memory.params + memory.grads + memory.optimizer, 16.0 / 2 * whole);
}

/* Gradients by what they are summed in: in 16 bits 4 + 12/d of all, beside their sums
 * 8 + 12/d and the embedding once more; all in 16 bits 8, or 8/d. */
static void gradients(void)
{
	static const struct memory_habit plain = {1, 0};
	struct train_layout l;
	struct train_model m;
	struct train_memory memory;
	double whole = (8030261248.0 - 65 * 4096) / 2 + 64 * 4096;

	EQ(model_find("llama3-8b", &m), OK);
	layout_default(8, &l);
	l.tp = 2;
	l.dp = 4;
	l.batch = 4;
	l.grads = GRADS_HALF;
	memory_make(&m, &l, &plain, &memory);
	near(memory.params + memory.grads + memory.optimizer, (4 + 12.0 / 4) * whole);
	near(memory.gathered, 0);
	l.grads = GRADS_BOTH;
	memory_make(&m, &l, &plain, &memory);
	near(memory.params + memory.grads + memory.optimizer, (8 + 12.0 / 4) * whole);
	near(memory.gathered, 4 * 128256.0 * 4096 / 2);
	l.is_pure_half = true;
	memory_make(&m, &l, &plain, &memory);
	near(memory.params + memory.grads + memory.optimizer, (4 + 4.0 / 4) * whole);
	near(memory.gathered, 0);
	l.shard = SHARD_ALL;
	memory_make(&m, &l, &plain, &memory);
	near(memory.params + memory.grads + memory.optimizer, 8.0 / 4 * whole);
}

/* 126 layers of 405B over 4 stages: the first has 31 and the embedding, which is less
 * than a layer; the second has 32. */
static void second_stage(void)
{
	static const struct memory_habit plain = {1, 0};
	struct train_layout l;
	struct train_model m;
	struct train_memory memory;

	EQ(model_find("llama3.1-405b", &m), OK);
	layout_default(64, &l);
	l.tp = 8;
	l.pp = 4;
	l.dp = 2;
	l.batch = 32;
	l.recompute = RECOMPUTE_FULL;
	memory_make(&m, &l, &plain, &memory);
	EQ(memory.stage, 1);
	EQ(memory.alive, 3);
	near(memory.params, 2 * memory_stage_dense(&m, &l, 1));
}

/* One layer keeps s b h (12 + 4 g/a + 6 f/h) bytes, 34 of Llama-3-8B; recomputed, its
 * input of 2. */
static void activations(void)
{
	struct train_layout l;
	struct train_model m;

	EQ(model_find("llama3-8b", &m), OK);
	layout_default(8, &l);
	l.sequence = 8192;
	near(memory_layer_activations(&m, &l), 8192.0 * 4096 * (12 + 1 + 21));
	l.tp = 4;
	near(memory_layer_activations(&m, &l), 8192.0 * 4096 * 34 / 4);
	/* Half of 10.5 h that products give, attention's h and the input, two bytes each.
	 */
	l.recompute = RECOMPUTE_OPS;
	near(memory_layer_activations(&m, &l), 8192.0 * 4096 * 2 * (5.25 + 2) / 4);
	l.recompute = RECOMPUTE_FULL;
	near(memory_layer_activations(&m, &l), 8192.0 * 4096 * 2 / 4);
	l.is_sequence_parallel = false;
	near(memory_layer_activations(&m, &l), 8192.0 * 4096 * 2);
}

/* Stage 0 of 1F1B keeps p micro-batches, interleaved p (1 + (p - 1)/(p v)). */
static void in_flight(void)
{
	static const struct memory_habit plain = {1, 0};
	struct train_layout l;
	struct train_model m;
	struct train_memory memory;
	double one;

	EQ(model_find("llama3-70b", &m), OK);
	layout_default(32, &l);
	l.tp = 8;
	l.pp = 4;
	l.dp = 1;
	l.batch = 16;
	one = 20 * memory_layer_activations(&m, &l) + 2.0 * 4096 * 8192 / 8;
	memory_make(&m, &l, &plain, &memory);
	EQ(memory.stage, 0);
	EQ(memory.alive, 4);
	near(memory.activations, 4 * one);
	l.vp = 5;
	memory_make(&m, &l, &plain, &memory);
	EQ(memory.stage, 3); /* as many, and the logits */
	one = 20 * memory_layer_activations(&m, &l);
	near(memory.activations, 4 * (1 + 3.0 / 20) * one);
}

/* Slack of a tenth of the activations: on a GPU that has all but half of it the rest is
 * given back, on one that has less it does not fit. */
static void slack(void)
{
	static const struct memory_habit plain = {1, 1e9}, loose = {1.1, 1e9};
	struct train_layout l;
	struct train_model m;
	struct train_memory bare, memory;
	double have;

	EQ(model_find("llama3-8b", &m), OK);
	layout_default(8, &l);
	l.dp = 8;
	l.batch = 8;
	memory_make(&m, &l, &plain, &bare);
	memory_make(&m, &l, &loose, &memory);
	EQ(bare.slack == 0, true);
	near(memory.slack, .1 * bare.activations);
	near(memory.total, bare.total + memory.slack);
	have = bare.total + memory.slack / 2;
	memory_settle(&memory, have);
	near(memory.total, have);
	memory_make(&m, &l, &loose, &memory);
	memory_settle(&memory, bare.total * .99);
	near(memory.total, bare.total + memory.slack);
	memory_settle(&memory, 2 * memory.total);
	near(memory.total, bare.total + memory.slack);
}

int main(void)
{
	bad_layouts();
	stages();
	states();
	gradients();
	second_stage();
	activations();
	in_flight();
	slack();
	return 0;
}
