/* The regions of the AWS tuner: where its choice changes, by machine family, ranks of a
 * node and collective, at the numbers of nodes where they were evaluated. Between two
 * rows the nearest holds, by ratio. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/scene.h"

static const struct {
	const char *family;
	uint32_t gpus, nodes;
	int coll;
	const char *text; /* CHOICE<limit CHOICE<limit .. CHOICE; "-": none */
} regions[] = {
	{"p5en", 8, 4, COLL_ALL_REDUCE,
		"tree-ll<192K tree-ll128<26.9M ring-ll128<280M nvls-tree<486M "
		"ring-simple"},
	{"p5en", 8, 8, COLL_ALL_REDUCE,
		"tree-ll<192K tree-ll128<57.9M ring-ll128<562M nvls-tree<1.16G "
		"ring-simple"},
	{"p5en", 8, 16, COLL_ALL_REDUCE,
		"tree-ll<192K tree-ll128<124M nvls-tree<2.85G ring-simple"},
	{"p5en", 8, 32, COLL_ALL_REDUCE,
		"tree-ll<192K tree-ll128<147M nvls-tree<7G ring-simple"},
	{"p5en", 8, 64, COLL_ALL_REDUCE,
		"tree-ll<192K tree-ll128<175M nvls-tree<19.5G ring-simple"},
	{"p5en", 8, 128, COLL_ALL_REDUCE, "tree-ll<192K tree-ll128<208M nvls-tree"},
	{"p5en", 8, 4, COLL_ALL_GATHER, "ring-ll<1.36M ring-ll128<454M ring-simple"},
	{"p5en", 8, 8, COLL_ALL_GATHER, "ring-ll<2.48M ring-ll128<912M ring-simple"},
	{"p5en", 8, 16, COLL_ALL_GATHER, "ring-ll<4.5M ring-ll128<1.95G ring-simple"},
	{"p5en", 8, 32, COLL_ALL_GATHER, "ring-ll<8.79M ring-ll128<4.27G ring-simple"},
	{"p5en", 8, 64, COLL_ALL_GATHER, "ring-ll<19M ring-ll128<9.05G ring-simple"},
	{"p5en", 8, 128, COLL_ALL_GATHER, "ring-ll<32M ring-ll128<18.3G ring-simple"},
	{"p5en", 8, 4, COLL_REDUCE_SCATTER, "ring-ll<1.36M ring-ll128<562M ring-simple"},
	{"p5en", 8, 8, COLL_REDUCE_SCATTER, "ring-ll<2.48M ring-ll128<1.11G ring-simple"},
	{"p5en", 8, 16, COLL_REDUCE_SCATTER, "ring-ll<4.5M ring-ll128<2.25G ring-simple"},
	{"p5en", 8, 32, COLL_REDUCE_SCATTER, "ring-ll<7M ring-ll128<6.75G ring-simple"},
	{"p5en", 8, 64, COLL_REDUCE_SCATTER, "ring-ll<18M ring-ll128<13G ring-simple"},
	{"p5en", 8, 128, COLL_REDUCE_SCATTER,
		"ring-ll<46.3M ring-ll128<24.9G ring-simple"},
	{"p5_p5e", 8, 4, COLL_ALL_REDUCE,
		"tree-ll128<36M ring-ll128<1.39G -<1.5G ring-simple"},
	{"p5_p5e", 8, 8, COLL_ALL_REDUCE,
		"tree-ll128<112M ring-ll128<2G -<2.5G ring-simple"},
	{"p5_p5e", 8, 16, COLL_ALL_REDUCE,
		"tree-ll128<288M ring-ll128<2G nvls-tree<6G ring-simple"},
	{"p5_p5e", 8, 32, COLL_ALL_REDUCE, "tree-ll128<288M nvls-tree<12G ring-simple"},
	{"p5_p5e", 8, 64, COLL_ALL_REDUCE, "tree-ll128<320M nvls-tree<24G ring-simple"},
	{"p5_p5e", 8, 128, COLL_ALL_REDUCE, "tree-ll128<512M nvls-tree"},
	{"p5_p5e", 1, 4, COLL_ALL_REDUCE, "ring-ll128<8.86M ring-simple"},
	{"p5_p5e", 1, 8, COLL_ALL_REDUCE, "ring-ll128<17.4M ring-simple"},
	{"p5_p5e", 1, 16, COLL_ALL_REDUCE,
		"tree-ll128<2.26M ring-ll128<34.1M ring-simple"},
	{"p5_p5e", 1, 32, COLL_ALL_REDUCE,
		"tree-ll128<4.64M ring-ll128<66.8M ring-simple"},
	{"p5_p5e", 1, 64, COLL_ALL_REDUCE,
		"tree-ll128<9.54M ring-ll128<131M ring-simple"},
	{"p5_p5e", 1, 128, COLL_ALL_REDUCE,
		"tree-ll128<114M ring-ll128<257M ring-simple"},
	{"p6", 8, 4, COLL_ALL_REDUCE,
		"tree-ll<384K tree-ll128<17.5M ring-ll128<127M nvls-tree<415M "
		"ring-simple"},
	{"p6", 8, 8, COLL_ALL_REDUCE,
		"tree-ll<384K tree-ll128<38.5M nvls-tree<48.5M ring-ll128<114M "
		"nvls-tree<1023M ring-simple"},
	{"p6", 8, 16, COLL_ALL_REDUCE,
		"tree-ll<384K tree-ll128<54.5M nvls-tree<2.15G ring-simple"},
	{"p6", 8, 32, COLL_ALL_REDUCE,
		"tree-ll<384K tree-ll128<69.5M nvls-tree<4.64G ring-simple"},
	{"p6", 8, 64, COLL_ALL_REDUCE,
		"tree-ll<384K tree-ll128<80.2M nvls-tree<10G ring-simple"},
	{"p6", 8, 128, COLL_ALL_REDUCE,
		"tree-ll<384K tree-ll128<92.5M nvls-tree<21.2G ring-simple"},
	{"p6", 8, 4, COLL_ALL_GATHER, "ring-ll<1.5M ring-ll128<435M ring-simple"},
	{"p6", 8, 8, COLL_ALL_GATHER, "ring-ll<2.5M ring-ll128<831M ring-simple"},
	{"p6", 8, 16, COLL_ALL_GATHER, "ring-ll<4.5M ring-ll128<1.72G ring-simple"},
	{"p6", 8, 32, COLL_ALL_GATHER, "ring-ll<16.5M ring-ll128<3.65G ring-simple"},
	{"p6", 8, 64, COLL_ALL_GATHER, "ring-ll<34.3M ring-ll128<7.75G ring-simple"},
	{"p6", 8, 128, COLL_ALL_GATHER, "ring-ll<71.5M ring-ll128<15.2G ring-simple"},
	{"p6", 8, 4, COLL_REDUCE_SCATTER, "ring-ll<1.5M ring-ll128<485M ring-simple"},
	{"p6", 8, 8, COLL_REDUCE_SCATTER, "ring-ll<2.5M ring-ll128<565M ring-simple"},
	{"p6", 8, 16, COLL_REDUCE_SCATTER, "ring-ll<4.5M ring-ll128<1.49G ring-simple"},
	{"p6", 8, 32, COLL_REDUCE_SCATTER, "ring-ll<16.5M ring-ll128<4G ring-simple"},
	{"p6", 8, 64, COLL_REDUCE_SCATTER, "ring-ll<33.5M ring-ll128<8G ring-simple"},
	{"p6", 8, 128, COLL_REDUCE_SCATTER, "ring-ll<70.5M ring-ll128<16G ring-simple"},
	{"p6_b300", 8, 4, COLL_ALL_REDUCE,
		"tree-ll<480K tree-ll128<52M ring-ll128<576M ring-simple"},
	{"p6_b300", 8, 8, COLL_ALL_REDUCE,
		"tree-ll<416K tree-ll128<104M ring-ll128<960M nvls-tree<1.88G "
		"ring-simple"},
	{"p6_b300", 8, 16, COLL_ALL_REDUCE,
		"tree-ll<416K tree-ll128<120M nvls-tree<3.75G ring-simple"},
	{"p6_b300", 8, 32, COLL_ALL_REDUCE,
		"tree-ll<416K tree-ll128<120M nvls-tree<9G ring-simple"},
	{"p6_b300", 8, 64, COLL_ALL_REDUCE,
		"tree-ll<352K tree-ll128<176M nvls-tree<18G ring-simple"},
	{"p6_b300", 8, 128, COLL_ALL_REDUCE, "tree-ll<352K tree-ll128<208M nvls-tree"},
};

/* "26.9M<": bytes; what follows the number is a unit. */
static double limit_read(const char *text)
{
	char *end;
	double number = strtod(text, &end);

	switch (*end) {
	case 'K':
		return number * 0x1p10;
	case 'M':
		return number * 0x1p20;
	default:
		return number * 0x1p30;
	}
}

static bool choice_read(const char *word, size_t length, enum sim_method *method)
{
	char name[24] = {0};

	memcpy(name, word, length < sizeof(name) ? length : sizeof(name) - 1);
	*method = sim_method_find(name);
	return *method != SIM_METHODS;
}

static bool text_choose(const char *text, uint64_t bytes, enum sim_method *method)
{
	for (;;) {
		size_t length = strcspn(text, "< ");

		if (text[length] != '<' || (double)bytes < limit_read(text + length + 1))
			return choice_read(text, length, method);
		text = strchr(text + length, ' ');
		if (!text)
			return false;
		text++;
	}
}

bool sim_region(
	const struct sim_site *site, int coll, uint64_t bytes, enum sim_method *method)
{
	const char *best = NULL;
	double best_ratio = 0;

	if (!site->family || site->nodes < 3 || *site->algo || *site->proto)
		return false;
	for (size_t i = 0; i < sizeof(regions) / sizeof(regions[0]); i++) {
		double ratio = fabs(log((double)site->nodes / regions[i].nodes));

		if (strcmp(regions[i].family, site->family) ||
			regions[i].gpus != site->gpus || regions[i].coll != coll ||
			(best && ratio >= best_ratio))
			continue;
		best = regions[i].text;
		best_ratio = ratio;
	}
	return best && text_choose(best, bytes, method);
}
