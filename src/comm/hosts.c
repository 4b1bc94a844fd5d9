#include "comm/hosts.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/param.h"
#include "comm/state.h"
#include "comm/touch.h"
#include "link/wires.h"
#include "net/iface.h"
#include "net/psk.h"

/* What ranks on several hosts tell each other after they know who is where. */
struct host_record {
	struct board_address board; /* of the first rank of each host */
	struct net_handle handle;
	struct control_peer control;
	uint32_t pid, cache_bytes; /* the second-level cache of a core; 0: not known */
};

enum { TILE_MIN = 128 << 10, TILE_MAX = 512 << 10, TILES_IN_CACHE = 4 };

_Static_assert(sizeof(struct host_record) <= BOOT_GATHER_MAX, "it fits");

bool comm_is_near(const struct comm *comm, uint32_t rank)
{
	return !comm->hosts || comm->hosts[rank] == comm->hosts[comm->rank];
}

static uint32_t local_count(const struct comm *comm)
{
	uint32_t count = 0;

	for (uint32_t rank = 0; rank < comm->rank_count; rank++)
		count += comm_is_near(comm, rank);
	return count;
}

/* Signals from each rank to each other; there is room for one even where none is to be
 * used. */
struct board_size comm_board_size(const struct comm *comm)
{
	uint32_t signals = (uint32_t)comm->config.rma_contexts *
			   (uint32_t)comm->config.rma_signals;

	return (struct board_size){
		local_count(comm), signals ? signals : 1, comm->rank_count};
}

enum err comm_hosts_number(struct comm *comm, const uint64_t *identities)
{
	uint16_t *hosts = calloc(comm->rank_count, sizeof(*hosts));
	uint16_t count = 0;

	if (!hosts)
		return err_set(ERR_SYSTEM, "no memory for the hosts of %u ranks",
			comm->rank_count);
	for (uint32_t rank = 0; rank < comm->rank_count; rank++) {
		uint32_t same = 0;

		/* neighbours are mostly together */
		if (rank && identities[rank] == identities[rank - 1])
			same = rank - 1;
		else
			while (identities[same] != identities[rank])
				same++;
		hosts[rank] = same < rank ? hosts[same] : count++;
	}
	if (count == 1) {
		free(hosts);
		return OK;
	}
	comm->hosts = hosts;
	for (uint32_t rank = 0; rank < comm->rank; rank++)
		comm->local += comm_is_near(comm, rank);
	return OK;
}

/* Interfaces that the user names are used together; else each connection has one. */
static uint32_t cables_wanted(uint32_t iface_count)
{
	const char *names = param_text(PARAM_SOCKET_IFNAME);
	uint32_t threads = (uint32_t)param_int(PARAM_SOCKET_NTHREADS);
	uint32_t cables = (uint32_t)param_int(PARAM_NSOCKS_PERTHREAD) *
			  (threads ? threads : 1);

	if (names && names[0] != '^' && cables < iface_count)
		cables = iface_count;
	return cables < NET_CABLES_MAX ? cables : NET_CABLES_MAX;
}

/* A cable that is mute is given up before its rank would be. */
static struct net_manner manner_choose(bool is_sealed, uint32_t iface_count)
{
	enum net_guard plain = param_int(PARAM_CHECKSUM) ? NET_SUMMED : NET_BARE;

	return (struct net_manner){.guard = is_sealed ? NET_SEALED : plain,
		.cables = cables_wanted(iface_count),
		.threads = (uint32_t)param_int(PARAM_SOCKET_NTHREADS),
		.silence_ms = (uint32_t)param_int(PARAM_SILENCE) * 500};
}

static void manner_log(const struct net_manner *manner)
{
	static const char *const guards[] = {[NET_BARE] = "",
		[NET_SUMMED] = ", with checksums",
		[NET_SEALED] = ", encrypted"};

	log_info(LOG_INIT | LOG_NET, "Using network Socket");
	if (manner->cables > 1 || manner->guard != NET_BARE)
		log_info(LOG_INIT | LOG_NET,
			"NET/Socket : %u sockets a connection, %u threads%s",
			manner->cables, manner->threads, guards[manner->guard]);
}

/* The key of the data connections, and whether they are sealed: where the program has set
 * a key, that is in it. */
static bool data_key(const struct meeting *meeting, unsigned char key[AUTH_KEY_BYTES])
{
	unsigned char psk[AUTH_KEY_BYTES], met[AUTH_KEY_BYTES];
	bool is_sealed = psk_get(psk);

	boot_key(meeting, "wires", met);
	if (is_sealed)
		auth_tag(psk, "wires", met, sizeof(met), key);
	else
		memcpy(key, met, sizeof(met));
	auth_wipe(psk, sizeof(psk));
	auth_wipe(met, sizeof(met));
	return is_sealed;
}

/* Listen where the others can reach this rank for data. */
static enum err data_listen(struct comm *comm, const struct meeting *meeting,
	struct wires_args *wires, struct net_handle *handle)
{
	struct iface ifaces[IFACES_MAX];
	struct addr addrs[IFACES_MAX];
	struct net_listen_args args = {.addrs = addrs};
	char why[IFACE_NONE_BYTES];
	enum err e = iface_list(IFACE_DATA, ifaces, &args.addr_count);

	if (!e && !args.addr_count) {
		iface_none(IFACE_DATA, why);
		e = err_set(ERR_SYSTEM,
			"there is no network interface to reach other hosts by: %s", why);
	}
	if (e)
		return e;
	iface_log(ifaces, args.addr_count);
	for (uint32_t i = 0; i < args.addr_count; i++)
		addrs[i] = ifaces[i].addr;
	args.manner = manner_choose(data_key(meeting, args.key), args.addr_count);
	manner_log(&args.manner);
	memcpy(wires->key, args.key, sizeof(args.key));
	wires->manner = args.manner;
	wires->net = &net_socket;
	wires->rank = comm->rank;
	wires->rank_count = comm->rank_count;
	e = wires->net->listen(&args, &wires->listener, handle);
	auth_wipe(args.key, sizeof(args.key));
	return e;
}

static uint32_t first_of_host(const struct comm *comm)
{
	uint32_t rank = 0;

	while (!comm_is_near(comm, rank))
		rank++;
	return rank;
}

/* Rank 0 had made a board before it knew that there are several hosts. */
static enum err board_renew(struct comm *comm)
{
	const struct board_size size = comm_board_size(comm);

	board_release(comm->board);
	comm->board = NULL;
	return first_of_host(comm) == comm->rank
		       ? board_create(&size, comm->config.comm_name, &comm->board)
		       : OK;
}

static enum err wires_make(
	struct comm *comm, struct wires_args *args, const struct host_record *records)
{
	struct net_handle *handles = malloc(comm->rank_count * sizeof(*handles));
	enum err e;

	if (!handles)
		return err_set(ERR_SYSTEM, "no memory for connections with %u ranks",
			comm->rank_count);
	for (uint32_t rank = 0; rank < comm->rank_count; rank++)
		handles[rank] = records[rank].handle;
	args->handles = handles;
	e = wires_create(args, &comm->wires);
	args->listener = NULL;
	free(handles);
	return e;
}

static uint32_t cache_of_a_core(void)
{
	long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);

	return bytes > 0 && bytes < INT32_MAX ? (uint32_t)bytes : 0;
}

/* A tile lies in an inbox, in a sum and on its way out at once; all ranks cut alike, so
 * that the smallest cache decides. */
size_t comm_hosts_tile(const struct comm *comm)
{
	uint32_t least = TILE_MAX * TILES_IN_CACHE;

	if (!comm->host_records)
		return 0;
	for (uint32_t rank = 0; rank < comm->rank_count; rank++)
		if (comm->host_records[rank].cache_bytes < least)
			least = comm->host_records[rank].cache_bytes;
	least /= TILES_IN_CACHE;
	return least > TILE_MIN ? least / TILE_MIN * TILE_MIN : TILE_MIN;
}

enum err comm_hosts_connect(struct comm *comm, struct meeting *meeting)
{
	const struct board_size size = comm_board_size(comm);
	struct host_record *records = calloc(comm->rank_count, sizeof(*records));
	struct host_record mine = {
		.pid = (uint32_t)getpid(), .cache_bytes = cache_of_a_core()};
	struct wires_args wires = {0};
	enum err e = records ? board_renew(comm)
			     : err_set(ERR_SYSTEM, "no memory to meet %u ranks",
				       comm->rank_count);

	if (!e && comm->board)
		mine.board = board_address(comm->board);
	if (!e)
		e = data_listen(comm, meeting, &wires, &mine.handle);
	if (!e)
		e = touch_listen(comm, &mine.control);
	e = boot_gather(meeting, e, &mine, sizeof(mine), records);
	if (!e && !records) /* without them this rank has refused to come */
		e = ERR_SYSTEM;
	if (!e && !comm->board)
		e = board_attach(
			&records[first_of_host(comm)].board, &size, &comm->board);
	if (!e)
		e = wires_make(comm, &wires, records);
	if (wires.listener)
		wires.net->close(wires.listener);
	auth_wipe(&wires, sizeof(wires));
	comm->host_records = records;
	return e;
}

/* What a rank of this host would have shown. */
static void shadows_fill(struct comm *comm)
{
	for (uint32_t rank = 0; rank < comm->rank_count; rank++) {
		struct rank_status *status = peer_status(comm->peers, rank);

		if (peer_is_local(comm->peers, rank))
			continue;
		status->pid = comm->host_records[rank].pid;
		status->rank = rank;
		atomic_store(&status->state, RANK_LIVE);
	}
}

enum err comm_hosts_touch(struct comm *comm, const struct meeting *meeting)
{
	struct control_peer *peers;
	enum err e;

	if (!comm->hosts)
		return OK;
	peers = malloc(comm->rank_count * sizeof(*peers));
	if (!peers)
		return err_set(ERR_SYSTEM, "no memory for connections with %u ranks",
			comm->rank_count);
	for (uint32_t rank = 0; rank < comm->rank_count; rank++)
		peers[rank] = comm->host_records[rank].control;
	shadows_fill(comm);
	e = touch_open(comm, meeting, peers);
	free(peers);
	return e;
}
