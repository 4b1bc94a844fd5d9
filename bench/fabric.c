/*
 * What libfabric alone takes to exchange BYTES between two processes, as two hosts that
 * reduce do: each sends them to the other and receives as many, by tagged messages of at
 * most 256 KiB of which eight are under way, on one endpoint. Nothing is added and
 * nothing else is sent. The best of many exchanges; receives are asked for before the
 * other end sends (`ahead`), or as soon as the exchange begins (`late`), as a library has
 * to that does not know the next call.
 *
 * usage: FI_PROVIDER=NAME fabric [INTERFACE]
 */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	ADDRESS_BYTES = 128,
	PIECE_BYTES = 256 << 10,
	DEPTH = 8,
	BYTES_MAX = 16 << 20,
	TAG = 1,
	SEND = 0,
	RECV = 1
};

static struct {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t peer;
} end;

static struct fi_context2 contexts[2][BYTES_MAX / PIECE_BYTES];
static char *data[2];

static void need(long rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "fabric: %s: %s\n", what, fi_strerror((int)-rc));
	exit(1);
}

static double now_us(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (double)at.tv_sec * 1e6 + (double)at.tv_nsec * 1e-3;
}

static void info_find(const char *interface)
{
	struct fi_info *hints = fi_allocinfo(), *list = NULL;

	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_TAGGED | FI_MSG;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	need(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &list), "fi_getinfo");
	end.info = list;
	while (interface && end.info && strcmp(end.info->domain_attr->name, interface))
		end.info = end.info->next;
	if (!end.info)
		need(-FI_ENODATA, interface);
}

static void end_open(void)
{
	struct fi_av_attr av = {.type = FI_AV_TABLE};
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .size = 1024};

	need(fi_fabric(end.info->fabric_attr, &end.fabric, NULL), "fi_fabric");
	need(fi_domain(end.fabric, end.info, &end.domain, NULL), "fi_domain");
	need(fi_av_open(end.domain, &av, &end.av, NULL), "fi_av_open");
	need(fi_cq_open(end.domain, &cq, &end.cq, NULL), "fi_cq_open");
	need(fi_endpoint(end.domain, end.info, &end.ep, NULL), "fi_endpoint");
	need(fi_ep_bind(end.ep, &end.av->fid, 0), "fi_ep_bind");
	need(fi_ep_bind(end.ep, &end.cq->fid, FI_SEND | FI_RECV), "fi_ep_bind");
	need(fi_enable(end.ep), "fi_enable");
}

static void peers_meet(int channel)
{
	char address[ADDRESS_BYTES] = {0};
	size_t bytes = sizeof(address);

	need(fi_getname(&end.ep->fid, address, &bytes), "fi_getname");
	if (write(channel, address, sizeof(address)) != sizeof(address) ||
		read(channel, address, sizeof(address)) != sizeof(address))
		need(-FI_EIO, "the other process");
	need(fi_av_insert(end.av, address, 1, &end.peer, 0, NULL) - 1, "fi_av_insert");
}

/* How many completions came, in `done` by direction. */
static void move(int done[2])
{
	struct fi_cq_tagged_entry entries[16];
	ssize_t got = fi_cq_read(end.cq, entries, 16);
	static unsigned in_vain;

	if (got == -FI_EAGAIN) {
		if (++in_vain % 64 == 0) /* the other process may need the core */
			sched_yield();
		return;
	}
	need(got, "fi_cq_read");
	for (ssize_t i = 0; i < got; i++)
		done[entries[i].flags & FI_RECV ? RECV : SEND]++;
}

static bool ask(int way, int piece, size_t bytes)
{
	size_t first = (size_t)piece * PIECE_BYTES;
	size_t part = bytes - first < PIECE_BYTES ? bytes - first : PIECE_BYTES;
	ssize_t rc;

	if (way == SEND)
		rc = fi_tsend(end.ep, data[SEND] + first, part, NULL, end.peer, TAG,
			&contexts[SEND][piece]);
	else
		rc = fi_trecv(end.ep, data[RECV] + first, part, NULL, FI_ADDR_UNSPEC, TAG,
			0, &contexts[RECV][piece]);
	if (rc == -FI_EAGAIN)
		return false;
	need(rc, way == SEND ? "fi_tsend" : "fi_trecv");
	return true;
}

/* `asked` receives of it are asked for already; those of the next, too, where it says. */
static void exchange(size_t bytes, int *asked_next, bool is_ahead)
{
	int count = (int)((bytes + PIECE_BYTES - 1) / PIECE_BYTES);
	int asked[2] = {0, *asked_next}, done[2] = {0, 0};

	*asked_next = 0;
	while (done[SEND] < count || done[RECV] < count) {
		for (int way = SEND; way <= RECV; way++)
			while (asked[way] < count && asked[way] - done[way] < DEPTH &&
				ask(way, asked[way], bytes))
				asked[way]++;
		move(done);
	}
	/* of the next call, before the other end can begin it */
	while (is_ahead && *asked_next < count && *asked_next < DEPTH &&
		ask(RECV, *asked_next, bytes))
		++*asked_next;
}

/* Microseconds of the best run of exchanges. */
static double best_of(size_t bytes, bool is_ahead)
{
	int rounds = 30, turns = bytes >= 1 << 20 ? 4 : 100, asked = 0;
	double best = 1e18;

	for (int round = 0; round < rounds; round++) {
		double from = now_us(), took;

		for (int i = 0; i < turns; i++)
			exchange(bytes, &asked,
				is_ahead && (i + 1 < turns || round + 1 < rounds));
		took = (now_us() - from) / turns;
		best = took < best ? took : best;
	}
	return best;
}

static void rank_run(int rank, int channel, const char *interface)
{
	static const size_t sizes[] = {
		8, 512, 4096, 32768, 1 << 20, 2 << 20, 4 << 20, 8 << 20, 16 << 20};

	info_find(interface);
	end_open();
	peers_meet(channel);
	for (int way = SEND; way <= RECV; way++)
		data[way] = calloc(1, BYTES_MAX);
	if (!rank)
		printf("# %s\n# %10s %10s %10s\n", end.info->fabric_attr->prov_name,
			"bytes", "ahead us", "late us");
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		double ahead = best_of(sizes[i], true), late = best_of(sizes[i], false);

		if (!rank)
			printf("%12zu %10.2f %10.2f\n", sizes[i], ahead, late);
	}
}

int main(int argc, char **argv)
{
	int channel[2], status = 0;
	pid_t child;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, channel))
		return 1;
	child = fork();
	rank_run(!child, channel[!child], argc > 1 ? argv[1] : NULL);
	if (!child)
		_exit(0);
	waitpid(child, &status, 0);
	return status != 0;
}
