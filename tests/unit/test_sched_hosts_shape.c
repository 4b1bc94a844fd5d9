/* Ranks are told by host: even, uneven, taken in turn; texts that say so, or do not. */
#include "sched/hosts.h"
#include "test.h"

static void test_numbers(void)
{
	const uint16_t host[] = {7, 3, 7, 7, 9, 3};
	struct sched_hosts *h;

	EQ(sched_hosts_create(host, 6, &h), OK);
	EQ(h->host_count, 3);
	EQ(h->local_min, 1);
	EQ(h->local_max, 3);
	EQ(h->host[0], 0);
	EQ(h->host[1], 1);
	EQ(h->host[4], 2);
	EQ(h->local[3], 2);
	EQ(h->local[5], 1);
	EQ(sched_hosts_size(h, 0), 3);
	EQ(sched_hosts_size(h, 2), 1);
	EQ(sched_hosts_rank(h, 0, 1), 2);
	EQ(sched_hosts_rank(h, 1, 1), 5);
	TRUE(sched_hosts_several(h));
	TRUE(!sched_hosts_several(NULL));
	sched_hosts_destroy(h);
	EQ(sched_hosts_create(host, 0, &h), ERR_ARGUMENT);
	EQ(sched_hosts_create(host, 1 << 16, &h), ERR_ARGUMENT);
}

static void test_texts(void)
{
	static const char *const wrong[] = {"", "x", "2x", "x4", "0x4", "2x0", "2x4x",
		"3+", "+3", "3+0", "0,", ",0", "0,1;", "-1", "99999", "2x99999",
		"40000+1", "0,1+2"};
	struct sched_hosts *h;

	EQ(sched_hosts_read("2x4", &h), OK);
	EQ(h->rank_count, 8);
	EQ(h->host_count, 2);
	EQ(h->host[4], 1);
	sched_hosts_destroy(h);
	EQ(sched_hosts_read("3+5", &h), OK);
	EQ(h->rank_count, 8);
	EQ(sched_hosts_size(h, 1), 5);
	sched_hosts_destroy(h);
	EQ(sched_hosts_read("0,1,0,1", &h), OK);
	EQ(h->rank_count, 4);
	EQ(sched_hosts_rank(h, 1, 1), 3);
	sched_hosts_destroy(h);
	EQ(sched_hosts_read("4", &h), OK);
	TRUE(!sched_hosts_several(h));
	sched_hosts_destroy(h);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		EQ(sched_hosts_read(wrong[i], &h), ERR_ARGUMENT);
}

int main(void)
{
	test_numbers();
	test_texts();
	return 0;
}
