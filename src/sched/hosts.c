#include "sched/hosts.h"

#include <stdlib.h>
#include <string.h>

enum { RANKS_MAX = 1 << 16, TEXT_RANKS_MAX = 1 << 15 };

static struct sched_hosts *hosts_room(uint32_t rank_count)
{
	struct sched_hosts *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->rank_count = rank_count;
	h->host = calloc(rank_count, sizeof(*h->host));
	h->local = calloc(rank_count, sizeof(*h->local));
	h->ranks = calloc(rank_count, sizeof(*h->ranks));
	h->first = calloc((size_t)rank_count + 1, sizeof(*h->first));
	if (h->host && h->local && h->ranks && h->first)
		return h;
	sched_hosts_destroy(h);
	return NULL;
}

/* Number the hosts in the order in which they appear; `seen` has a number above 0 for
 * each that did. */
static void hosts_number(struct sched_hosts *h, const uint16_t *host, uint16_t *seen)
{
	for (uint32_t r = 0; r < h->rank_count; r++) {
		if (!seen[host[r]])
			seen[host[r]] = (uint16_t)++h->host_count;
		h->host[r] = (uint16_t)(seen[host[r]] - 1);
		h->local[r] = (uint16_t)h->first[h->host[r] + 1]++;
	}
}

static void hosts_list(struct sched_hosts *h)
{
	h->local_min = h->rank_count;
	for (uint32_t i = 0; i < h->host_count; i++) {
		uint32_t size = h->first[i + 1];

		h->local_min = size < h->local_min ? size : h->local_min;
		h->local_max = size > h->local_max ? size : h->local_max;
		h->first[i + 1] += h->first[i];
	}
	for (uint32_t r = 0; r < h->rank_count; r++)
		h->ranks[h->first[h->host[r]] + h->local[r]] = (uint16_t)r;
}

enum err sched_hosts_create(
	const uint16_t *host, uint32_t rank_count, struct sched_hosts **hosts)
{
	struct sched_hosts *h;
	uint16_t *seen;

	if (!rank_count || rank_count >= RANKS_MAX)
		return err_set(
			ERR_ARGUMENT, "%u ranks cannot be told by host", rank_count);
	h = hosts_room(rank_count);
	seen = calloc(RANKS_MAX, sizeof(*seen));
	if (!h || !seen) {
		free(seen);
		sched_hosts_destroy(h);
		return err_set(
			ERR_SYSTEM, "no memory for the hosts of %u ranks", rank_count);
	}
	hosts_number(h, host, seen);
	hosts_list(h);
	free(seen);
	*hosts = h;
	return OK;
}

/* Ranks of a text, as they are read. */
struct reading {
	uint16_t host[TEXT_RANKS_MAX];
	uint32_t count;
};

static bool number_read(const char **at, uint32_t max, uint32_t *number)
{
	uint32_t value = 0;

	if (**at < '0' || **at > '9')
		return false;
	for (; **at >= '0' && **at <= '9'; (*at)++) {
		value = value * 10 + (uint32_t)(**at - '0');
		if (value > max)
			return false;
	}
	*number = value;
	return true;
}

static bool ranks_add(struct reading *reading, uint32_t host, uint32_t count)
{
	if (!count || count > TEXT_RANKS_MAX - reading->count)
		return false;
	while (count--)
		reading->host[reading->count++] = (uint16_t)host;
	return true;
}

static bool read_grid(struct reading *reading, const char *at)
{
	uint32_t hosts, each;

	if (!number_read(&at, TEXT_RANKS_MAX, &hosts) || *at++ != 'x' ||
		!number_read(&at, TEXT_RANKS_MAX, &each) || *at || !hosts)
		return false;
	for (uint32_t host = 0; host < hosts; host++)
		if (!ranks_add(reading, host, each))
			return false;
	return true;
}

/* Numbers with `between` between them: of a host's ranks, or of a rank's host. */
static bool read_list(struct reading *reading, const char *at, char between)
{
	uint32_t number;

	for (uint32_t i = 0;; i++, at++) {
		if (!number_read(&at, TEXT_RANKS_MAX, &number))
			return false;
		if (between == '+' ? !ranks_add(reading, i, number)
				   : !ranks_add(reading, number, 1))
			return false;
		if (*at != between)
			return !*at;
	}
}

enum err sched_hosts_read(const char *text, struct sched_hosts **hosts)
{
	struct reading *reading = calloc(1, sizeof(*reading));
	bool known;
	enum err e;

	if (!reading)
		return err_set(ERR_SYSTEM, "no memory for a list of hosts");
	if (strchr(text, 'x'))
		known = read_grid(reading, text);
	else
		known = read_list(reading, text, strchr(text, ',') ? ',' : '+');
	if (known)
		e = sched_hosts_create(reading->host, reading->count, hosts);
	else
		e = err_set(ERR_ARGUMENT,
			"'%s' is no shape of hosts: 2x4 means two hosts of four ranks, "
			"3+5 hosts of three and five, 0,1,0,1 a host for each rank",
			text);
	free(reading);
	return e;
}

bool sched_hosts_regular(const struct sched_hosts *hosts)
{
	uint32_t size = hosts->local_max, host_count = hosts->host_count;
	bool dealt = true, neighbours = true;

	for (uint32_t r = 0; r < hosts->rank_count; r++) {
		neighbours = neighbours && hosts->host[r] == r / size;
		dealt = dealt && hosts->host[r] == r % host_count;
	}
	return hosts->local_min == size && (dealt || neighbours);
}

void sched_hosts_destroy(struct sched_hosts *hosts)
{
	if (!hosts)
		return;
	free(hosts->host);
	free(hosts->local);
	free(hosts->ranks);
	free(hosts->first);
	free(hosts);
}
