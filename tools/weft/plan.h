/*
 * plan.h - the parts of `weft plan`: what it is asked, what comes out, and one function
 * for each way to show it. Those that return int return an exit status, after a sentence
 * on standard error when it is not 0.
 */
#ifndef TOOLS_WEFT_PLAN_H
#define TOOLS_WEFT_PLAN_H

#include <jansson.h>
#include <stdio.h>

#include "train/cases.h"
#include "train/search.h"

struct plan_args {
	const char *model, *machine, *net, *gpu, *stack;
	struct train_model flags; /* sizes that were said; 0: not */
	struct train_layout layout;
	uint32_t said; /* of the layout: bits of train/search.h */
	struct train_order order;
	uint32_t nodes, gpus_per_node;
	uint32_t gpus_first, gpus_last;	   /* --gpus A..B; 0: not said */
	uint32_t pods, pod_gpus, pod_nics; /* 0: not cut */
	uint32_t threads;		   /* of a process on the host */
	double budget;			   /* GPU-hours for --train-tokens */
	double train_tokens;
	double checkpoint_s, restart_s;
	bool json, search, groups, models;
	bool rows, refit; /* of --accuracy */
	const char *svg, *vs, *cases, *accuracy, *calibrate;
	char **words; /* borrowed */
	int word_count;
};

/* False with a sentence on standard error. */
bool plan_args_parse(struct plan_args *args, int argc, char **argv);
void plan_args_usage(FILE *file);

/* One question with its answer. */
struct plan_run {
	const struct plan_args *args;
	struct train_model model;
	struct train_layout layout;
	const struct train_gpu *gpu;
	struct train_net net;
	struct train_host host;
	struct train_calib calib;
	struct calib_answer answer;
	struct train_work work;
	struct train_step step;
	struct train_memory memory;
	uint64_t fitting; /* layouts that this is the fastest of; 0: it was said */
};

/* Machine, model and calibration; with `is_whole` the layout is checked and answered, and
 * where nothing of it was said it is the fastest that fits. */
enum err plan_run_make(const struct plan_args *args, bool is_whole, struct plan_run *run);
enum err plan_run_answer(struct plan_run *run);
void plan_run_free(struct plan_run *run);

/* Print "weft plan: .." with the library's sentence; the exit status that fits. */
int plan_failed(enum err e);

/* plan_cases.c, plan_accuracy.c */
int plan_cases_print(const char *path);
int plan_accuracy(const struct plan_args *args);
int plan_calibrate(const char *path);

/* plan_text.c */
void plan_page_print(const struct plan_run *run);
void plan_versus_print(const struct plan_run *run, const struct plan_run *other);
/* Days and GPU-hours for --train-tokens, failures included. */
struct plan_bill {
	double share, days, hours; /* of the time that is not lost */
	bool is_over;		   /* --budget */
};
void plan_bill_make(const struct plan_run *run, struct plan_bill *bill);
/* What would change the bound. */
const char *plan_advice(const struct plan_run *run);
/* What the answer rests on that nobody measured or said: a sentence each, and how many.
 */
enum { GUESSES_MAX = 5, GUESS_BYTES = 160 };
uint32_t plan_guesses(const struct plan_run *run, char texts[GUESSES_MAX][GUESS_BYTES]);
void plan_guesses_print(const struct plan_run *run);
/* "4 x dgx-h100, 8 GPUs each"; pods are parts of one machine. */
enum { CLUSTER_BYTES = 128 };
void plan_cluster_text(const struct plan_run *run, char text[CLUSTER_BYTES]);
void plan_goodput_print(const struct plan_run *run);
void plan_models_print(void);

/* plan_groups.c, plan_options.c */
int plan_groups_print(const struct plan_run *run);
void plan_options_print(const struct plan_run *run);

/* All layouts with what is said; ERR_SYSTEM with a sentence when none fits. */
enum err plan_layouts_search(struct plan_run *run, struct search_result *found);

/* plan_json.c, plan_svg.c, plan_search.c */
int plan_json(const struct plan_run *run);
json_t *plan_json_make(const struct plan_run *run);
json_t *plan_layout_json(const struct train_layout *layout);
int plan_versus_json(const struct plan_run *run, const struct plan_run *other);
int plan_svg(const struct plan_run *run, const struct search_result *found,
	const char *path); /* `found`: NULL, or a search to draw the map of */
int plan_search(struct plan_run *run);
int plan_scaling(const struct plan_args *args);

#endif
