#include "weft/hosts_args.h"

#include <getopt.h>
#include <stdio.h>

bool hosts_args_take(const char *command, struct sched_hosts **hosts)
{
	sched_hosts_destroy(*hosts);
	*hosts = NULL;
	if (!sched_hosts_read(optarg, hosts))
		return true;
	fprintf(stderr, "weft %s: --hosts: %s\n", command, err_last());
	return false;
}

bool hosts_args_count(const char *command, const struct sched_hosts *hosts,
	int64_t *rank_count, int64_t fallback)
{
	int64_t ranks = hosts ? hosts->rank_count : fallback;

	if (*rank_count && hosts && *rank_count != ranks) {
		fprintf(stderr, "weft %s: -n says %d ranks, --hosts %d\n", command,
			(int)*rank_count, (int)ranks);
		return false;
	}
	*rank_count = *rank_count ? *rank_count : ranks;
	return true;
}
