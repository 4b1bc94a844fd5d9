#include "comm/hosts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cores.h"
#include "base/log.h"
#include "base/param.h"
#include "comm/call_files.h"
#include "comm/near_nets.h"
#include "comm/rma.h"
#include "comm/state.h"
#include "comm/touch.h"
#include "link/watch.h"
#include "link/wires.h"
#include "net/iface.h"
#include "net/plugin.h"
#include "net/psk.h"
#include "tune/squad.h"

/* What ranks on several hosts tell each other after they know who is where. */
struct host_record {
	struct board_address board; /* of the first rank of each host */
	struct net_handle handle;
	struct net_handle plugin_handle; /* .. by its network plugin, */
	char plugin[PLUGIN_NAME_BYTES];	 /* which calls itself so; "": it has none */
	char rma[PLUGIN_NAME_BYTES]; /* its one-sided plugin's name; "": it has none */
	struct control_peer control;
	uint32_t pid, cache_bytes; /* the second-level cache of a core; 0: not known */
	/* threads that it would move a call by; and as many layers has its host's board,
	 * if it is the first of that host */
	uint32_t squad, layers;
	uint32_t rma_eager;   /* signals are to be ready at once */
	uint32_t share_bytes; /* the least that one is to take; 0: automatic */
};

/* A rank listens by its plugin and by sockets: what it uses is known when everybody's
 * plugins are. */
struct data_net {
	struct wires_args wires; /* by sockets */
	struct iface ifaces[IFACES_MAX];
	uint32_t iface_count;
	struct net_plugin *plugin;	 /* owned; NULL: none */
	struct net_end *plugin_listener; /* owned */
};

/* For how long a rank that is stopped by another's end looks for it. */
enum { CAUSE_MS = 30 };
enum { CORES_EACH = 2, SQUAD_AUTO_MAX = 4 };
enum { TILE_MIN = 128 << 10, TILE_MAX = 512 << 10, TILES_IN_CACHE = 2 };

_Static_assert(sizeof(struct host_record) <= BOOT_GATHER_MAX, "it fits");

bool comm_is_near(const struct comm *comm, uint32_t rank)
{
	return !comm->hosts.numbers ||
	       comm->hosts.numbers[rank] == comm->hosts.numbers[comm->rank];
}

uint32_t comm_near_count(const struct comm *comm)
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

	return (struct board_size){comm_near_count(comm), signals ? signals : 1,
		comm->rank_count, comm->hosts.layers};
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
	comm->hosts.numbers = hosts;
	for (uint32_t rank = 0; rank < comm->rank; rank++)
		comm->hosts.local += comm_is_near(comm, rank);
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

/* A cable that is mute is given up before its rank would be. Threads of their own make
 * a connection slower wherever that was measured (docs/design/07), so who asks for some
 * as NCCL has them gets the sockets. */
static struct net_manner manner_choose(bool is_sealed, uint32_t iface_count)
{
	enum net_guard plain = param_int(PARAM_CHECKSUM) ? NET_SUMMED : NET_BARE;
	int64_t threads = param_int(PARAM_SOCKET_HELPERS)
				  ? param_int(PARAM_SOCKET_NTHREADS)
				  : 0;

	return (struct net_manner){.guard = is_sealed ? NET_SEALED : plain,
		.cables = cables_wanted(iface_count),
		.threads = (uint32_t)threads,
		.silence_ms = (uint32_t)param_int(PARAM_SILENCE) * 500};
}

static void sockets_log(const struct data_net *net)
{
	static const char *const guards[] = {[NET_BARE] = "",
		[NET_SUMMED] = ", with checksums",
		[NET_SEALED] = ", encrypted"};
	const struct net_manner *manner = &net->wires.manner;

	iface_log(net->ifaces, net->iface_count);
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
static enum err sockets_listen(struct comm *comm, const struct meeting *meeting,
	struct data_net *net, struct host_record *mine)
{
	struct addr addrs[IFACES_MAX];
	struct net_listen_args args = {.addrs = addrs};
	char why[IFACE_NONE_BYTES];
	enum err e = iface_list(IFACE_DATA, net->ifaces, &net->iface_count);

	if (!e && !net->iface_count) {
		iface_none(IFACE_DATA, why);
		e = err_set(ERR_SYSTEM,
			"there is no network interface to reach other hosts by: %s", why);
	}
	if (e)
		return e;
	args.addr_count = net->iface_count;
	for (uint32_t i = 0; i < args.addr_count; i++)
		addrs[i] = net->ifaces[i].addr;
	args.manner = manner_choose(data_key(meeting, args.key), args.addr_count);
	memcpy(net->wires.key, args.key, sizeof(args.key));
	net->wires.manner = args.manner;
	net->wires.net = &net_socket;
	net->wires.rank = comm->rank;
	net->wires.rank_count = comm->rank_count;
	e = net_socket.listen(&args, &net->wires.listener, &mine->handle);
	auth_wipe(args.key, sizeof(args.key));
	return e;
}

/* What the user calls the network; NULL: any. */
static const char *network_wanted(const struct comm *comm)
{
	return comm->config.net_name[0] ? comm->config.net_name : param_text(PARAM_NET);
}

/* What travels by a plugin is as the plugin sends it. */
static bool guard_allows_plugin(const struct comm *comm, const struct data_net *net)
{
	if (net->wires.manner.guard == NET_BARE)
		return true;
	if (network_wanted(comm) || param_text(PARAM_NET_PLUGIN))
		log_attn("NET/Plugin: not used: %s is for sockets alone",
			net->wires.manner.guard == NET_SEALED ? "encryption"
							      : "WEFT_CHECKSUM");
	return false;
}

/* A device may have few connections: those of every lane, to and from each rank of
 * another host, by all ranks that share it. */
static enum err connections_check(
	const struct comm *comm, const struct net_plugin *plugin, uint32_t sharing)
{
	const struct plugin_device *device = net_plugin_device(plugin);
	uint32_t near = comm_near_count(comm);
	uint64_t most = 2ull * WIRE_PURPOSES * (comm->rank_count - near) * sharing;

	if (device->comms_max <= 0 || most <= (uint64_t)device->comms_max)
		return OK;
	return err_set(ERR_USAGE,
		"the network plugin %s is not used: its device %s takes %d connections "
		"(maxComms), and %u ranks that share it may need %llu",
		net_plugin_name(plugin), device->name, device->comms_max, sharing,
		(unsigned long long)most);
}

/* .. and by its plugin, if there is one. One that cannot listen is none. */
static enum err plugin_listen(const struct comm *comm, struct data_net *net,
	const struct gpu_place *places, struct host_record *mine)
{
	struct net_plugin_args wish = {.comm = comm->id_hash,
		.local = comm->hosts.local,
		.network = network_wanted(comm)};
	struct net_listen_args args = {0};
	uint32_t sharing = 0;
	enum err e;

	if (!guard_allows_plugin(comm, net))
		return OK;
	e = net_plugin_open(&wish, &net->plugin);
	if (e || !net->plugin)
		return e;
	args.plugin = net->plugin;
	memcpy(args.key, net->wires.key, sizeof(args.key));
	near_nets_choose(comm, net->plugin, places, &sharing);
	e = connections_check(comm, net->plugin, sharing);
	if (!e)
		e = net_by_plugin.listen(
			&args, &net->plugin_listener, &mine->plugin_handle);
	auth_wipe(args.key, sizeof(args.key));
	if (!e)
		snprintf(mine->plugin, sizeof(mine->plugin), "%s",
			net_plugin_name(net->plugin));
	return wish.network ? e : OK;
}

static enum err data_listen(struct comm *comm, const struct meeting *meeting,
	struct data_net *net, const struct gpu_place *places, struct host_record *mine)
{
	enum err e = sockets_listen(comm, meeting, net, mine);

	return e ? e : plugin_listen(comm, net, places, mine);
}

/* All ranks have to use the same network. False, with a warning by rank 0, when one has
 * another plugin than this rank. */
static bool plugins_agree(const struct comm *comm, const struct host_record *records)
{
	for (uint32_t rank = 0; rank < comm->rank_count; rank++) {
		const char *name = records[rank].plugin;

		if (!strcmp(name, records[0].plugin))
			continue;
		if (!comm->rank)
			log_warn("ranks have different networks, so all use Socket: "
				 "rank 0 has %s and rank %u has %s; set "
				 "NCCL_NET_PLUGIN alike, and see the log of the one "
				 "without",
				records[0].plugin[0] ? records[0].plugin : "no plugin",
				rank, name[0] ? name : "no plugin");
		return false;
	}
	return records[0].plugin[0];
}

/* What travels by a plugin is as the plugin sends it. */
static void rma_choose(struct comm *comm, const struct data_net *net, char *name)
{
	if (net->wires.manner.guard == NET_BARE)
		rma_open(comm, net->plugin, name);
	else if (param_text(PARAM_RMA_PLUGIN))
		log_attn("RMA/Plugin: not used: encryption and WEFT_CHECKSUM are not "
			 "for what a plugin carries");
}

static void rma_agree(struct comm *comm, const struct host_record *records)
{
	for (uint32_t rank = 0; rank < comm->rank_count; rank++)
		if (strcmp(records[rank].rma, records[comm->rank].rma)) {
			rma_disagree(comm, rank, records[rank].rma);
			return;
		}
	for (uint32_t rank = 0; rank < comm->rank_count; rank++)
		if (records[rank].rma_eager)
			rma_hurry(comm);
}

/* The network that all ranks have; what is not used is closed with `net`. */
static enum err data_choose(
	const struct comm *comm, struct data_net *net, const struct host_record *records)
{
	const char *wanted = network_wanted(comm);
	struct net_end *sockets = net->wires.listener;

	if (!plugins_agree(comm, records)) {
		if (net->plugin && wanted)
			return err_set(ERR_USAGE,
				"NCCL_NET or netName asks for %s, and not all ranks have "
				"it: set NCCL_NET_PLUGIN alike, and see their logs",
				wanted);
		sockets_log(net);
		return OK;
	}
	net->wires.net = &net_by_plugin;
	net->wires.plugin = net->plugin;
	net->wires.listener = net->plugin_listener;
	net->plugin = NULL;
	net->plugin_listener = NULL;
	net_socket.close(sockets);
	log_info(LOG_INIT | LOG_NET, "Assigned NET plugin %s to comm",
		net_plugin_name(net->wires.plugin));
	log_info(LOG_INIT | LOG_NET, "Using network %s",
		net_plugin_name(net->wires.plugin));
	return OK;
}

static void data_close(struct data_net *net)
{
	if (net->wires.listener)
		net->wires.net->close(net->wires.listener);
	net_plugin_close(net->wires.plugin);
	if (net->plugin_listener)
		net_by_plugin.close(net->plugin_listener);
	net_plugin_close(net->plugin);
	auth_wipe(net, sizeof(*net));
}

static uint32_t first_of_host(const struct comm *comm)
{
	uint32_t rank = 0;

	while (!comm_is_near(comm, rank))
		rank++;
	return rank;
}

/* A process that is about to end has closed its files before it is seen to have ended. */
static bool ends_now(uint32_t pid)
{
	struct watch *watch = NULL;
	bool has_ended = false;
	enum err e = watch_get(pid, &watch);

	for (int i = 0; !e && watch && i < CAUSE_MS && !has_ended; i++) {
		has_ended = watch_has_ended(watch);
		if (!has_ended)
			usleep(1000);
	}
	watch_put(watch);
	return has_ended;
}

enum err comm_board_attach(
	struct comm *comm, const struct board_address *address, uint32_t owner)
{
	const struct board_size size = comm_board_size(comm);
	enum err e = board_attach(address, &size, &comm->hosts.board);
	char why[ERR_TEXT_BYTES];

	if (!e)
		return OK;
	snprintf(why, sizeof(why), "%s", err_last());
	if (ends_now((uint32_t)address->pid))
		return err_set(ERR_REMOTE,
			"rank %u (process %d) died while the communicator was made",
			owner, address->pid);
	return err_set(e, "%s", why);
}

/* Rank 0 had made a board before it knew that there are several hosts. */
static enum err board_renew(struct comm *comm)
{
	const struct board_size size = comm_board_size(comm);

	board_release(comm->hosts.board);
	comm->hosts.board = NULL;
	return first_of_host(comm) == comm->rank
		       ? board_create(&size, comm->config.comm_name, &comm->hosts.board)
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
		handles[rank] = args->plugin ? records[rank].plugin_handle
					     : records[rank].handle;
	args->handles = handles;
	e = wires_create(args, &comm->hosts.wires);
	args->listener = NULL;
	args->plugin = NULL;
	free(handles);
	return e;
}

static uint32_t cache_of_a_core(void)
{
	long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);

	return bytes > 0 && bytes < INT32_MAX ? (uint32_t)bytes : 0;
}

/* The more a message carries, the less of a call is waiting for the next one; but what
 * has come is still to be in the cache when it is added. All ranks cut alike, so that the
 * smallest cache decides. */
size_t comm_hosts_tile(const struct comm *comm)
{
	uint32_t least = TILE_MAX * TILES_IN_CACHE;

	if (!comm->hosts.records)
		return 0;
	for (uint32_t rank = 0; rank < comm->rank_count; rank++)
		if (comm->hosts.records[rank].cache_bytes < least)
			least = comm->hosts.records[rank].cache_bytes;
	least /= TILES_IN_CACHE;
	return least > TILE_MIN ? least / TILE_MIN * TILE_MIN : TILE_MIN;
}

/* Each thread may have two connections each way with every rank of another host, and one
 * for shares of messages. */
static uint32_t squad_files(const struct comm *comm)
{
	return 6 * (comm->rank_count - comm_near_count(comm));
}

/* Half of the cores that the ranks of this host may use are for the squads: what a thread
 * receives has been handled by the kernel, on another core as it may be. A rank that a
 * launcher has given cores of its own, or a container's share of them, is taken to share
 * these, which is never too much. */
static uint32_t squad_wish(struct comm *comm)
{
	uint32_t asked = (uint32_t)param_int(PARAM_SQUAD), wish;

	if (asked)
		return asked;
	wish = cores_usable("") / comm_near_count(comm) / CORES_EACH;
	wish = call_files_take(
		wish < SQUAD_AUTO_MAX ? wish : SQUAD_AUTO_MAX, squad_files(comm));
	if (wish > 1)
		comm->hosts.call_files = wish * squad_files(comm);
	return wish < 1 ? 1 : wish;
}

/* What others have too few threads for is left to other communicators. */
static void squad_files_settle(struct comm *comm)
{
	uint32_t threads = comm->hosts.squad.threads;
	uint32_t files = threads > 1 ? threads * squad_files(comm) : 0;

	if (files >= comm->hosts.call_files)
		return;
	call_files_give(comm->hosts.call_files - files);
	comm->hosts.call_files = files;
}

/* The same for all ranks: as few threads as any has, and as large shares as any asks. */
static void squad_agree(struct comm *comm, const struct host_record *records)
{
	uint32_t least = wires_has_sets(comm->hosts.wires) ? SQUAD_MAX : 1;
	uint32_t share = 0;

	for (uint32_t rank = 0; rank < comm->rank_count; rank++) {
		if (records[rank].squad < least)
			least = records[rank].squad;
		if (records[rank].layers < least)
			least = records[rank].layers;
		if (records[rank].share_bytes > share)
			share = records[rank].share_bytes;
	}
	comm->hosts.squad = (struct squad_room){least, share};
	squad_files_settle(comm);
	if (least > 1)
		log_info(LOG_INIT | LOG_NET,
			"large calls between hosts: by %u threads of each rank", least);
}

/* What the first rank of this host has laid out. */
static enum err board_join(struct comm *comm, const struct host_record *records)
{
	uint32_t first = first_of_host(comm), layers = records[first].layers;

	if (!layers || layers > SQUAD_MAX)
		return err_set(
			ERR_INTERNAL, "rank %u has a board of %u layers", first, layers);
	comm->hosts.layers = layers;
	return comm->hosts.board ? OK
				 : comm_board_attach(comm, &records[first].board, first);
}

enum err comm_hosts_connect(
	struct comm *comm, struct meeting *meeting, const struct gpu_place *places)
{
	struct host_record *records = calloc(comm->rank_count, sizeof(*records));
	struct host_record mine = {
		.pid = (uint32_t)getpid(), .cache_bytes = cache_of_a_core()};
	struct data_net net = {0};
	enum err e;

	mine.share_bytes = (uint32_t)param_int(PARAM_SHARE_BYTES);
	mine.rma_eager = comm->config.rma_eager;
	mine.squad = mine.layers = comm->hosts.layers = squad_wish(comm);
	e = records ? board_renew(comm)
		    : err_set(ERR_SYSTEM, "no memory to meet %u ranks", comm->rank_count);
	if (!e && comm->hosts.board)
		mine.board = board_address(comm->hosts.board);
	if (!e)
		e = data_listen(comm, meeting, &net, places, &mine);
	if (!e)
		rma_choose(comm, &net, mine.rma);
	if (net.wires.manner.cables > 1 || net.plugin)
		mine.squad = 1;
	if (!e)
		e = touch_listen(comm, &mine.control);
	e = boot_gather(meeting, e, &mine, sizeof(mine), records);
	if (!e && !records) /* without them this rank has refused to come */
		e = ERR_SYSTEM;
	if (!e)
		e = board_join(comm, records);
	if (!e)
		e = data_choose(comm, &net, records);
	if (!e)
		e = wires_make(comm, &net.wires, records);
	if (!e)
		squad_agree(comm, records);
	if (!e)
		rma_agree(comm, records);
	data_close(&net);
	comm->hosts.records = records;
	return e;
}

uint32_t *comm_hosts_pids(const struct comm *comm)
{
	uint32_t *pids = malloc(comm->rank_count * sizeof(*pids));

	if (!pids)
		err_set(ERR_SYSTEM, "no memory for a communicator of %u",
			comm->rank_count);
	for (uint32_t rank = 0; pids && rank < comm->rank_count; rank++)
		pids[rank] = comm->hosts.records[rank].pid;
	return pids;
}

/* What a rank of this host would have shown. */
static void shadows_fill(struct comm *comm)
{
	for (uint32_t rank = 0; rank < comm->rank_count; rank++) {
		struct rank_status *status = peer_status(comm->peers, rank);

		if (peer_is_local(comm->peers, rank))
			continue;
		status->pid = comm->hosts.records[rank].pid;
		status->rank = rank;
		peers_place(comm->peers, rank, &comm->hosts.records[rank].control.addr);
		atomic_store(&status->state, RANK_LIVE);
	}
}

enum err comm_hosts_touch(struct comm *comm, const struct meeting *meeting)
{
	struct control_peer *peers;
	enum err e;

	if (!comm->hosts.numbers)
		return OK;
	peers = malloc(comm->rank_count * sizeof(*peers));
	if (!peers)
		return err_set(ERR_SYSTEM, "no memory for connections with %u ranks",
			comm->rank_count);
	for (uint32_t rank = 0; rank < comm->rank_count; rank++)
		peers[rank] = comm->hosts.records[rank].control;
	shadows_fill(comm);
	e = touch_open(comm, meeting, peers);
	free(peers);
	return e;
}
