/* A step by its parts: bytes of each group, the bubble, the host path, each as a sheet of
 * paper gives it; and the two measured steps that started it all. */
#include "train/step.h"

#include <math.h>

#include "test.h"
#include "train/calib.h"
#include "train/cases.h"
#include "train/goodput.h"

static void near(double a, double b, double share)
{
	if (fabs(a - b) > share * fabs(b)) {
		fprintf(stderr, "%.9g is not %.9g\n", a, b);
		exit(1);
	}
}

static struct train_work work_of(const char *name, const char *machine, uint32_t nodes,
	uint32_t gpus, struct train_layout *l)
{
	struct train_order order;
	const struct train_gpu *gpu;
	struct train_host host;
	struct train_model m;
	struct train_net net;
	struct train_work w;

	EQ(order_parse("tp-cp-ep-dp-pp", &order), OK);
	EQ(model_find(name, &m), OK);
	EQ(net_make(&net, machine, nodes, gpus), OK);
	l->gpus = nodes * net.site.gpus;
	EQ(layout_complete(l), OK);
	EQ(layout_check(&m, l), OK);
	EQ(gpu_of_machine(machine, &gpu), OK);
	host_find(machine, gpu, &host);
	EQ(work_make(&(struct train_job){&m, l, &order, &net, gpu, &host}, &w), OK);
	net_free(&net);
	return w;
}

/* The curve is the engine's own answer at its points, and between them. */
static void wires(void)
{
	const struct net_group group = {.per_node = 8, .nodes = 1};
	const struct net_curve *curve, *again;
	struct sim_answer answer;
	struct sim_scene scene;
	struct train_net net;

	EQ(net_make(&net, "dgx-h100", 1, 8), OK);
	EQ(sim_scene_make(&net.site, &scene), OK);
	EQ(net_curve_get(&net, COLL_ALL_GATHER, &group, &curve), OK);
	EQ(net_curve_get(&net, COLL_ALL_GATHER, &group, &again), OK);
	TRUE(curve == again);
	for (int bits = 20; bits <= 30; bits += 2) {
		EQ(sim_predict(&scene, &net.calib, COLL_ALL_GATHER, (uint64_t)1 << bits,
			   &answer),
			OK);
		near(net_curve_time(curve, ldexp(1, bits)), answer.time_us * 1e-6, 1e-9);
	}
	EQ(sim_predict(&scene, &net.calib, COLL_ALL_GATHER, 100000000, &answer), OK);
	near(net_curve_time(curve, 1e8), answer.time_us * 1e-6, .05);
	TRUE(net_curve_time(NULL, 1e8) == 0);
	sim_scene_free(&scene);
	net_free(&net);
}

/* Products of a layer hold its FLOPs; the products of all layers and the head hold those
 * of the model. */
static void products(void)
{
	struct train_layout l;
	struct train_work w;
	double flops = 0;

	layout_default(0, &l);
	l.tp = 4;
	l.sequence = 8192;
	w = work_of("llama3-8b", "dgx-h100", 1, 8, &l);
	for (uint32_t i = 0; i < w.gemm_count; i++)
		flops += 2 * w.gemms[i].m * w.gemms[i].n * w.gemms[i].k;
	near(flops, 8192 * 2 * (2.0 * 4096 * 4096 * 1.25 + 3.0 * 4096 * 14336) / 4,
		1e-12);
	flops = 3 *
		(32 * (flops + w.attention_flops) + 2 * w.head.m * w.head.n * w.head.k);
	near(w.micro_count * flops, w.flops_model, 1e-12);
}

/* The same of latent attention whose queries have no rank of their own
 * (DeepSeek-V2-Lite).
 */
static void straight_queries(void)
{
	const double key = 128 + 64;
	struct train_layout l;
	struct train_work w;
	struct train_model m;
	struct train_order order;
	struct train_host host;
	struct train_net net;
	const struct train_gpu *gpu;
	double flops = 0;

	EQ(model_find("deepseek-v3", &m), OK);
	m.q_rank = 0;
	EQ(net_make(&net, "dgx-h100", 1, 8), OK);
	EQ(order_parse("tp-cp-ep-dp-pp", &order), OK);
	EQ(gpu_of_machine("dgx-h100", &gpu), OK);
	host_find("dgx-h100", gpu, &host);
	layout_default(8, &l);
	EQ(layout_complete(&l), OK);
	EQ(work_make(&(struct train_job){&m, &l, &order, &net, gpu, &host}, &w), OK);
	for (uint32_t i = 0; i < w.feed_first; i++)
		flops += w.gemms[i].m * w.gemms[i].n * w.gemms[i].k;
	near(flops / 4096,
		7168 * (512 + 64.0) + 7168 * 128 * key + 512 * 128 * 256.0 +
			7168 * 128 * 128.0,
		1e-12);
	near(flops / 4096, model_attention_params(&m) - 512, 1e-12);
	net_free(&net);
}

/* With nothing but a beat of b a stage: (m + p - 1) b, interleaved (m + (p - 1)/v) b. */
static void bubble(void)
{
	struct train_layout l;
	struct train_work w;
	struct train_params params;
	struct train_step s;
	double beat;

	layout_default(0, &l);
	l.pp = 4;
	l.batch = 16 * 2;
	l.dp = 2;
	w = work_of("llama2-7b", "dgx-h100", 1, 8, &l);
	calib_default(&params);
	w.head = (struct work_gemm){1, 1, 1, 0};
	w.head_bytes = w.hop_s = w.dp_gather_s = w.dp_reduce_s = 0;
	step_make(&w, &params, &s);
	beat = 3 * s.forward_s;
	near(s.seen[PART_BUBBLE], 3 * beat, 1e-9);
	w.chunks = 2;
	step_make(&w, &params, &s);
	near(s.seen[PART_BUBBLE], 1.5 * beat, 1e-9);
	w.is_zero_bubble = true;
	step_make(&w, &params, &s);
	near(s.seen[PART_BUBBLE], .5 * beat, 1e-9);
}

/* What is sent once a step hides behind a micro-batch; with v chunks on p stages, where
 * the other chunks are still to come, behind 1 + (p - 1) (v - 1)/v of them. */
static void window(void)
{
	struct train_layout l;
	struct train_work w;
	struct train_params params;
	struct train_step s;
	double hide, forward, backward;

	layout_default(0, &l);
	l.pp = 4;
	l.batch = 16 * 2;
	l.dp = 2;
	w = work_of("llama2-7b", "dgx-h100", 1, 8, &l);
	calib_default(&params);
	hide = params.value[PARAM_HIDE];
	w.dp_gather_s = .05;
	w.dp_reduce_s = .1;
	for (int chunks = 1; chunks <= 2; chunks++) {
		w.chunks = chunks;
		step_make(&w, &params, &s);
		forward = s.forward_s * (chunks == 1 ? 1 : 2.5);
		backward = s.backward_s * (chunks == 1 ? 1 : 2.5);
		near(s.seen[PART_DP],
			.05 * .05 / (.05 + hide * forward) +
				.1 * .1 / (.1 + hide * backward),
			1e-9);
	}
}

/* ZeRO-2 sends gradients after each micro-batch, and each time has that one's backward
 * pass to hide behind. */
static void each_micro_batch(void)
{
	struct train_layout l;
	struct train_work w;
	struct train_params params;
	struct train_step s;
	double hide, once;

	layout_default(0, &l);
	l.shard = SHARD_GRADIENTS;
	l.batch = 8 * 5;
	w = work_of("llama2-7b", "dgx-h100", 1, 8, &l);
	EQ(w.reduces, 5);
	calib_default(&params);
	hide = params.value[PARAM_HIDE];
	step_make(&w, &params, &s);
	once = w.dp_reduce_s * w.dp_reduce_s / (w.dp_reduce_s + hide * s.backward_s);
	near(s.total[PART_DP], w.dp_gather_s + 5 * w.dp_reduce_s, 1e-9);
	near(s.seen[PART_DP],
		5 * once + w.dp_gather_s * w.dp_gather_s /
				   (w.dp_gather_s + hide * s.forward_s),
		1e-9);
}

static double coll_time(
	struct train_net *net, int coll, struct net_group group, double bytes)
{
	const struct net_curve *curve;

	EQ(net_curve_get(net, coll, &group, &curve), OK);
	return net_curve_time(curve, bytes);
}

/* Shards over 4 of the 8 ranks on each of two nodes; gradients then over the 4 parts.
 * With tp 2 the same ranks are 2 apart, and a shard of 4 fills a node. */
static void hybrid(void)
{
	struct train_layout l;
	struct train_work w;
	struct train_net net;
	double layer = (6738415616.0 - 4096) / 32;

	EQ(net_make(&net, "dgx-h100", 2, 8), OK);
	layout_default(0, &l);
	l.shard = SHARD_HYBRID;
	l.shard_size = 4;
	w = work_of("llama2-7b", "dgx-h100", 2, 8, &l);
	near(w.gather_s,
		coll_time(&net, COLL_ALL_GATHER, (struct net_group){4, 1, false},
			2 * layer),
		1e-6);
	near(w.dp_reduce_s,
		coll_time(&net, COLL_ALL_REDUCE, (struct net_group){2, 2, false},
			2 * layer * 32 / 4),
		1e-6);
	near(w.optimizer_bytes, 30 * layer * 32 / 4, 1e-6);
	l.tp = 2;
	l.dp = l.batch = 0;
	w = work_of("llama2-7b", "dgx-h100", 2, 8, &l);
	near(w.dp_reduce_s,
		coll_time(&net, COLL_ALL_REDUCE, (struct net_group){1, 2, false},
			2 * layer * 32 / 2 / 4),
		1e-3);
	net_free(&net);
}

/* Experts' gradients go over the ranks that have the same experts, DDP's too: of 16 with
 * ep 8 it is two, one a node. Their optimizer is cut over these two, not over sixteen. */
static void experts_data(void)
{
	const struct net_group both = {1, 2, false}, all = {8, 2, false};
	struct train_layout l;
	struct train_work w;
	struct train_model m;
	struct train_net net;
	double dense, experts;

	EQ(net_make(&net, "dgx-h100", 2, 8), OK);
	EQ(model_find("mixtral-8x7b", &m), OK);
	layout_default(0, &l);
	l.ep = 8;
	l.shard = SHARD_NONE;
	w = work_of("mixtral-8x7b", "dgx-h100", 2, 8, &l);
	experts = 32 * model_expert_params(&m); /* one of eight */
	dense = model_params(&m) - 8 * experts - 4096;
	near(w.dp_reduce_s,
		coll_time(&net, COLL_ALL_REDUCE, all, 4 * dense) +
			coll_time(&net, COLL_ALL_REDUCE, both, 4 * experts),
		1e-9);
	l.shard = SHARD_OPTIMIZER;
	w = work_of("mixtral-8x7b", "dgx-h100", 2, 8, &l);
	near(w.optimizer_bytes, 30 * (dense / 16 + experts / 2), 1e-9);
	l.shard = SHARD_ALL;
	w = work_of("mixtral-8x7b", "dgx-h100", 2, 8, &l);
	near(w.gather_s,
		coll_time(&net, COLL_ALL_GATHER, all, 2 * dense / 32) +
			coll_time(&net, COLL_ALL_GATHER, both, 2 * experts / 32),
		1e-9);
	net_free(&net);
}

/* What is not to overlap is seen whole, and only that. */
static void exposed(void)
{
	static const struct {
		uint32_t bit;
		enum step_part part;
	} bits[] = {{EXPOSE_TP, PART_TP}, {EXPOSE_CP, PART_CP}, {EXPOSE_EP, PART_EP},
		{EXPOSE_DP, PART_DP}, {EXPOSE_PP, PART_PP}};
	enum { BITS = sizeof(bits) / sizeof(bits[0]) };
	struct train_layout l;
	struct train_work w;
	struct train_params params;
	struct train_step free, s;

	layout_default(0, &l);
	l.tp = l.cp = l.pp = l.ep = 2;
	l.batch = 32;
	w = work_of("mixtral-8x7b", "dgx-h100", 2, 8, &l);
	calib_default(&params);
	step_make(&w, &params, &free);
	for (int i = 0; i < BITS; i++) {
		w.no_overlap = bits[i].bit;
		step_make(&w, &params, &s);
		for (int k = 0; k < BITS; k++) {
			enum step_part part = bits[k].part;

			TRUE(s.seen[part] <= s.total[part] * (1 + 1e-9));
			if (k == i)
				near(s.seen[part], s.total[part], 1e-9);
			if (k == i)
				TRUE(s.seen[part] > free.seen[part]);
			else if (part != PART_DP && part != PART_PP)
				near(s.seen[part], free.seen[part], 1e-9);
		}
	}
}

/* Shards that come together slowly: more work beside them never makes a step shorter, and
 * none is shorter than they take. */
static void slow_shards(void)
{
	struct train_layout l;
	struct train_work w;
	struct train_params params;
	struct train_step s;
	double before = 0;

	layout_default(0, &l);
	l.shard = SHARD_ALL;
	w = work_of("llama2-7b", "dgx-h100", 1, 8, &l);
	calib_default(&params);
	params.value[PARAM_HIDE] = 4;
	w.gather_s = w.reduce_s = .02;
	for (int i = 1; i < 64; i++) {
		w.gemms[0].count = 4 * i;
		step_make(&w, &params, &s);
		TRUE(s.seconds >= 32 * 3 * .02 && s.seconds >= before * (1 - 1e-12));
		before = s.seconds;
	}
	TRUE(s.seconds > 2 * 32 * 3 * .02);
}

/* Gradients that go to the host keep nobody from gathering the next layer's shards. */
static void gradients_out(void)
{
	struct train_layout l;
	struct train_work plain, out;
	struct train_params params;
	struct train_step a, b;

	layout_default(0, &l);
	l.shard = SHARD_ALL;
	l.batch = 16;
	plain = work_of("llama2-7b", "dgx-h100", 1, 8, &l);
	l.offload = OFFLOAD_GRADIENTS;
	out = work_of("llama2-7b", "dgx-h100", 1, 8, &l);
	calib_default(&params);
	step_make(&plain, &params, &a);
	step_make(&out, &params, &b);
	TRUE(b.seen[PART_HOST_COPY] > 0);
	near(b.seen[PART_DP], a.seen[PART_DP], 1e-9);
}

/* A calibration by which sending takes longer than predicted: all of it is not less. */
static void long_sending(void)
{
	struct train_layout l;
	struct train_work w;
	struct train_params params;
	struct train_step s;
	double seconds;

	layout_default(0, &l);
	l.tp = l.cp = l.ep = 2;
	w = work_of("mixtral-8x7b", "dgx-h100", 1, 8, &l);
	calib_default(&params);
	params.value[PARAM_TP] = params.value[PARAM_CP] = params.value[PARAM_EP] = 1.5;
	step_make(&w, &params, &s);
	seconds = s.seconds;
	for (int i = PART_TP; i <= PART_EP; i++)
		near(s.seen[i], s.total[i], 1e-9);
	w.no_overlap = EXPOSE_TP | EXPOSE_CP | EXPOSE_EP;
	step_make(&w, &params, &s);
	near(s.seconds, seconds, 1e-9);
}

/* A token goes once to each of its experts, over the network once to each node that has
 * any of them; tensor parallel ranks send their part. */
static void copies(void)
{
	const struct net_group all = {.per_node = 8, .nodes = 2};
	const struct net_curve *curve;
	struct train_layout l;
	struct train_work w;
	struct train_net net;

	layout_default(0, &l);
	l.tp = 2;
	l.ep = 16;
	l.etp = 1;
	l.batch = 8;
	w = work_of("qwen3-30b-a3b", "dgx-h100", 2, 8, &l);
	TRUE(w.is_ep_far);
	EQ(net_make(&net, "dgx-h100", 2, 8), OK);
	EQ(net_curve_get(&net, COLL_ALL_TO_ALL, &all, &curve), OK);
	near(w.ep_s,
		2 * net_curve_time(curve, 2.0 * 4096 / 2 * 2048 * 2 * (1 - pow(.5, 8))),
		1e-9);
	net_free(&net);
}

/* Layers with experts that compute less than the host needs to start them take as long as
 * the host; a shared expert is a product beside the others. */
static void experts(void)
{
	struct train_layout l;
	struct train_work w;
	struct train_params params;
	struct train_step s;

	layout_default(0, &l);
	l.ep = 8;
	l.batch = 8;
	l.sequence = 128;
	w = work_of("qwen3-30b-a3b", "dgx-h100", 1, 8, &l);
	EQ(w.moe_count, 2);
	calib_default(&params);
	w.head = (struct work_gemm){1, 1, 1, 0};
	w.head_bytes = w.embed_bytes = 0;
	step_make(&w, &params, &s);
	near(3 * s.forward_s, 48 * 2 * params.value[PARAM_ROUTE] * 1e-6, 1e-9);
	l.batch = 0;
	l.dp = 0;
	l.pp = 8;
	l.ep = 4;
	w = work_of("deepseek-v3", "dgx-h100", 4, 8, &l);
	EQ(w.moe_count, 4);
	near(w.moe_gemms[2].m * w.moe_gemms[2].n * w.moe_gemms[2].k,
		128.0 * 2 * 2048 * 7168, 1e-12);
}

/* Full recomputation is a fourth pass of the layers, and of their sending. */
static void recompute(void)
{
	struct train_layout l;
	struct train_work w;
	struct train_params params;
	struct train_step plain, full;
	double head;

	layout_default(0, &l);
	l.tp = 8;
	w = work_of("llama3-70b", "dgx-h100", 1, 8, &l);
	calib_default(&params);
	w.head = (struct work_gemm){1, 1, 1, 0};
	head = w.head_bytes / (w.gpu->hbm_gbps * 1e9);
	step_make(&w, &params, &plain);
	w.recompute = RECOMPUTE_FULL;
	step_make(&w, &params, &full);
	near((full.seen[PART_GEMM] - head) / (plain.seen[PART_GEMM] - head), 4.0 / 3,
		1e-9);
	near(full.total[PART_TP] / plain.total[PART_TP], 1.5, 1e-9);
}

/* Parts sum to the step, and nothing is seen that was not sent. */
static void parts(void)
{
	struct train_layout l;
	struct train_work w;
	struct train_params params;
	struct train_step s;
	double sum = 0;

	layout_default(0, &l);
	l.tp = 2;
	l.ep = 8;
	l.etp = 1;
	l.cp = 2;
	l.batch = 64;
	w = work_of("qwen3-30b-a3b", "dgx-h100", 4, 8, &l);
	calib_default(&params);
	step_make(&w, &params, &s);
	for (int i = 0; i < STEP_PARTS; i++)
		sum += s.seen[i];
	near(sum, s.seconds, 1e-12);
	TRUE(s.seen[PART_EP] > 0 && s.seen[PART_EP] <= s.total[PART_EP]);
	TRUE(s.seen[PART_DP] <= s.total[PART_DP]);
	near(step_seconds(&w, &params), s.seconds, 1e-12);
	near(s.tokens_per_s, 64 * 4096 / s.seconds, 1e-12);
}

/* Llama-3-8B with ZeRO-3 and offload on four GPUs of a p4d. 36.0 s in one pod, 33.9 s in
 * four: the slower network is not slower, because the host is the bound. */
static void seed(uint32_t pods, double measured, double *seconds)
{
	struct train_order order;
	struct train_calib calib;
	struct calib_answer answer;
	struct train_host host;
	struct train_layout l;
	struct train_model m;
	struct train_work w;
	struct train_step s;
	struct train_net net;
	struct calib_who who = {"", NULL, PRECISION_BF16, false};

	EQ(order_parse("tp-cp-ep-dp-pp", &order), OK);
	EQ(model_find("llama3-8b", &m), OK);
	EQ(net_make(&net, "p4d.24xlarge", 1, 4), OK);
	EQ(gpu_of_machine("p4d.24xlarge", &who.gpu), OK);
	EQ_STR(who.gpu->name, "A100-40GB");
	host_find("p4d.24xlarge", who.gpu, &host);
	host.processes = 4;
	host.pod_processes = 4 / pods;
	if (pods > 1)
		EQ(sim_site_pods(&net.site, pods, 4 / pods, 1), OK);
	layout_default(4, &l);
	l.shard = SHARD_ALL;
	l.offload = OFFLOAD_PARAMS | OFFLOAD_OPTIMIZER;
	l.micro = 4;
	l.batch = 64;
	l.sequence = 1024;
	EQ(layout_complete(&l), OK);
	EQ(work_make(&(struct train_job){&m, &l, &order, &net, who.gpu, &host}, &w), OK);
	/* 2 x 4.0 GB of parameters in, 4.0 GB of gradients out, and back in but once. */
	near(w.host_in, 2 * 8030261248.0 / 4 * (2 + .75), 1e-9);
	near(w.host_out, 2 * 8030261248.0 / 4, 1e-9);
	near(w.host_update, 46 * 8030261248.0 / 4, 1e-9);
	calib_load(&calib);
	calib_ask(&calib, &who, &answer);
	step_make(&w, &answer.params, &s);
	near(s.seconds, measured, .1);
	TRUE(s.bound == PART_HOST_COPY || s.bound == PART_HOST_UPDATE);
	*seconds = s.seconds;
	net_free(&net);
}

/* Rows of a table, read: what is not told follows from what a GPU can hold, and a block
 * whose halves are beside each other sends half as often. */
static void rows(void)
{
	static const char text[] =
		"stack,model,gpu,gpus,nodes,tp,pp,ep,mbs,gbs,seq,precision,sharding\n"
		"megascale,gpt3-175b,A100-80,256,32,8,8,1,1,768,2048,bf16,\n"
		"nemo,gpt3-175b,A100-80,256,32,8,8,1,1,768,2048,bf16,\n"
		"dgxc-nemo,grok1-314b,GB200,128,32,4,1,8,1,256,8192,bf16,\n"
		"megatron-bridge,llama3-70b,GB300,64,16,1,1,1,2,256,8192,nvfp4,dist-opt\n"
		"megatron-bridge,llama3-70b,GB300,64,16,1,4,1,1,256,8192,nvfp4,dist-"
		"opt\n";
	struct train_cases cases;

	EQ(train_cases_parse(text, sizeof(text) - 1, "rows", &cases), OK);
	near(2 * cases.cases[0].work.tp_s, cases.cases[1].work.tp_s, 1e-9);
	EQ(layout_expert_tp(&cases.cases[2].layout), 4);
	EQ(cases.cases[3].layout.shard, SHARD_ALL);
	EQ(cases.cases[4].layout.shard, SHARD_OPTIMIZER);
	train_cases_free(&cases);
}

static void goodput(void)
{
	struct train_goodput g;

	goodput_make(16384, 60, 600, &g);
	near(g.mtbf_s, 3600 * 50700.0 / 16384, 1e-12);
	near(g.interval_s, sqrt(2 * 60 * g.mtbf_s), 1e-12);
	near(1 - g.share, 600 / g.mtbf_s + 2 * sqrt(60 / (2 * g.mtbf_s)), 1e-9);
}

int main(void)
{
	double one, four;

	wires();
	products();
	straight_queries();
	bubble();
	window();
	each_micro_batch();
	hybrid();
	experts_data();
	exposed();
	slow_shards();
	gradients_out();
	long_sending();
	copies();
	experts();
	recompute();
	parts();
	rows();
	goodput();
	seed(1, 36.0, &one);
	seed(4, 33.9, &four);
	TRUE(four < one);
	return 0;
}
