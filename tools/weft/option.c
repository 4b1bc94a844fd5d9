#include "weft/option.h"

#include <stdio.h>
#include <string.h>

#include "common/units.h"

enum { PODS_MAX = 9999 };

void option_start(void)
{
	optind = 0; /* for GNU getopt: from the start, whoever parsed before */
	opterr = 0;
}

int option_next(const struct option_set *set, int argc, char **argv)
{
	int flag = getopt_long(argc, argv, set->letters, set->options, NULL);

	if (flag == 1 || flag == -1 || flag == '?' || flag == ':' || !optarg)
		return flag;
	if (optarg != argv[optind - 1] || optarg[0] != '-' || !optarg[1])
		return flag;
	optind--; /* the word that option_refuse() is about */
	return ':';
}

static void print_all(const struct option_set *set)
{
	const char *letter = set->letters + strspn(set->letters, "+-:");

	for (; *letter; letter++)
		if (*letter != ':')
			fprintf(stderr, " -%c", *letter);
	for (int i = 0; set->options[i].name; i++)
		if (strcmp(set->options[i].name, "help"))
			fprintf(stderr, " --%s", set->options[i].name);
	fprintf(stderr, " --help\n");
}

/* getopt leaves behind in `optopt`: 0 of an unknown long option, the flag of one that was
 * given a value for nothing, or the letter. */
bool option_refuse(const struct option_set *set, int flag, char **argv)
{
	const char *word = argv[optind - 1];
	int name_bytes = (int)strcspn(word, "=");

	if (flag == ':')
		fprintf(stderr, "weft %s: %s needs a value; see weft %s --help\n",
			set->command, word, set->command);
	else if (optopt >= OPTION_LONG)
		fprintf(stderr, "weft %s: %.*s takes no value; leave out '%s'\n",
			set->command, name_bytes, word, word + name_bytes);
	else if (optopt)
		fprintf(stderr, "weft %s: there is no option -%c; there are",
			set->command, optopt);
	else
		fprintf(stderr, "weft %s: there is no option %.*s; there are",
			set->command, name_bytes, word);
	if (flag != ':' && optopt < OPTION_LONG)
		print_all(set);
	return false;
}

bool option_wrong(const struct option_set *set, const char *flag, const char *how)
{
	fprintf(stderr, "weft %s: %s '%s': %s\n", set->command, flag, optarg, how);
	return false;
}

bool option_count(
	const struct option_set *set, const char *flag, int64_t most, uint32_t *value)
{
	int64_t number;

	if (!units_int(optarg, 1, most, &number))
		return option_wrong(
			set, flag, "give a whole number from 1, within reason");
	*value = (uint32_t)number;
	return true;
}

bool option_pods(const struct option_set *set, uint32_t *pods, uint32_t *gpus)
{
	int64_t pod_count, pod_gpus;

	if (!units_pair(optarg, PODS_MAX, &pod_count, &pod_gpus))
		return option_wrong(
			set, "--pods", "give pods and GPUs of each, such as 8x1");
	*pods = (uint32_t)pod_count;
	*gpus = (uint32_t)pod_gpus;
	return true;
}
