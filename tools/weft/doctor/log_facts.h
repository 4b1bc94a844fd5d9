/*
 * log_facts.h - what logs say, gathered line by line into tables that do not grow.
 *
 * Nothing here judges: diagnose.h reads these facts. Lines that are torn count for
 * little, as everything that matters is written by many ranks.
 */
#ifndef TOOLS_WEFT_DOCTOR_LOG_FACTS_H
#define TOOLS_WEFT_DOCTOR_LOG_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "weft/doctor/catalogue.h"
#include "weft/doctor/record.h"

enum {
	FACTS_NAME_BYTES = 64,
	FACTS_TEXT_BYTES = 240,
	FACTS_FILES_MAX = 4096,
	FACTS_HOSTS_MAX = 4096,
	FACTS_HOST_SLOTS = 4 * FACTS_HOSTS_MAX,
	FACTS_PROCS_MAX = 1 << 15,
	FACTS_EDGES_MAX = 1 << 16,
	FACTS_ENVS_MAX = 160,
	FACTS_NETS_MAX = 16,
	FACTS_WORDS_MAX = 16,
	FACTS_ROWS_MAX = 64,
	FACTS_LINKS_MAX = 256,
	FACTS_RINGS_MAX = 64,
	FACTS_MEMBERS_MAX = 1 << 13,
	FACTS_COMMS_MAX = 256,
	FACTS_SIZES_MAX = 16,
	FACTS_RING_RANKS = 64
};

/* Where something was first said, how often, and by whom. */
struct evidence {
	uint64_t count;
	uint32_t file; /* index of a name */
	uint64_t line; /* 0: never */
	int64_t time;  /* seconds since 1970, -1 */
	int32_t proc;  /* index, -1 */
	int32_t rank;  /* that the launcher or the line itself names, -1 */
	char text[FACTS_TEXT_BYTES];
};

/* A short list of texts with their counts: versions, interfaces, GPUs. */
struct fact_word {
	char text[FACTS_NAME_BYTES];
	int32_t host; /* the first that said it, -1 */
	bool several_hosts;
	struct evidence seen;
};
struct fact_words {
	struct fact_word words[FACTS_WORDS_MAX];
	uint32_t count;
};

/* One process on one GPU, as far as lines can tell. */
struct fact_proc {
	bool is_used;
	int64_t pid;
	int32_t host, device;
	int32_t rank, rank_count; /* of the largest communicator; -1 */
	int32_t comm_ranks;	  /* of the newest communicator; 0 unknown */
	bool warned;		  /* a WARN of it is in the catalogue */
	bool chained;		  /* an error went up its calls */
};

enum via { VIA_P2P, VIA_SHM, VIA_NET, VIA_COLLNET, VIA_NVLS, VIA_COUNT };

struct fact_edge {
	bool is_used;
	int32_t from, to, comm_ranks;
	uint32_t counts[VIA_COUNT];
	uint16_t net; /* index of the network, + 1 */
	bool gdr;
};

struct fact_net {
	char name[32];
	uint64_t lines, gdr_lines;
	uint64_t devices;	     /* bit per device number */
	struct evidence seen, plain; /* any; without GPUDirect */
};

struct fact_env {
	char name[FACTS_NAME_BYTES], value[FACTS_NAME_BYTES];
	bool differs;
	char other[FACTS_NAME_BYTES];
	struct evidence seen;
};

struct fact_row {
	uint64_t bytes;
	double algbw, busbw; /* the better of out-of-place and in-place, GB/s */
};

/* "+ NVL[240.0] - NVS/0-0" below a GPU. */
struct fact_link {
	char from[24], to[24];
	double bw;
};

/* A rank of a communicator, as "rank 3 nranks 8 .. commId 0x7f" says. */
struct fact_member {
	int32_t rank, rank_count;
	uint64_t comm; /* 0: it does not say */
};

struct log_facts {
	char (*files)[FACTS_TEXT_BYTES]; /* owned */
	uint32_t file_count;
	uint64_t line_count, nccl_line_count, byte_count;
	uint64_t line_first, line_last;	 /* of the newest file */
	char (*hosts)[FACTS_NAME_BYTES]; /* owned */
	uint64_t *host_lines;		 /* owned */
	uint16_t *host_slots;		 /* owned; a hash table of hosts, + 1; 0 free */
	uint32_t host_count;
	struct fact_proc *procs; /* owned; a hash table */
	uint32_t proc_count;
	struct fact_edge *edges; /* owned; a hash table */
	uint32_t edge_count;

	struct fact_words versions, gpus, boot_ifaces, networks, platforms, plugins,
		libfabrics, providers, ib_devices, socket_ifaces, tests, protocols;
	struct fact_net nets[FACTS_NETS_MAX];
	uint32_t net_count;
	struct fact_env envs[FACTS_ENVS_MAX];
	uint32_t env_count;

	/* which ranks were taken, for jobs.h */
	uint64_t *pids;	   /* owned; a hash table of hosts' processes; 0 free */
	uint64_t *members; /* owned; likewise of ranks and sizes */
	uint32_t member_count;
	uint64_t comms[FACTS_COMMS_MAX];
	uint32_t comm_count;
	int32_t sizes[FACTS_SIZES_MAX];
	uint32_t size_count;

	/* the largest communicator */
	int32_t rank_count, node_count, local_max, local_min;
	int32_t one_rank_comms; /* processes with a communicator of one rank */
	uint64_t init_starts, init_completes, destroys, aborts;
	int32_t coll_channels_max, coll_channels_ranks, nvls_channels;
	struct evidence init_start_seen;
	struct evidence summary, channels_seen; /* the nRanks line; coll channels */
	uint64_t via_lines[VIA_COUNT];
	uint64_t p2p_kinds[5]; /* direct pointer, IPC, CUMEM, indirect, MNNVL */
	struct evidence via_seen[VIA_COUNT];
	char rings[FACTS_RINGS_MAX][FACTS_TEXT_BYTES]; /* "0 1 2", ".." where it is cut */
	uint32_t ring_ranks[FACTS_RINGS_MAX];
	uint32_t ring_count;
	double max_bw;
	bool has_nvlink, has_system;
	char gpu_above[24]; /* the GPU whose links come next */
	struct fact_link links[FACTS_LINKS_MAX];
	uint32_t link_count;
	struct evidence system_seen;
	int32_t found_nics, ib_nic_count_min, ib_nic_count_max, socket_iface_count;
	struct evidence nics_seen, ib_seen, socket_seen;
	uint32_t boot_networks; /* distinct /16 of bootstrap addresses */
	uint32_t boot_addresses[FACTS_WORDS_MAX];
	uint32_t bus_ids[FACTS_WORDS_MAX]; /* of processes that are alone on a node */
	uint32_t bus_id_count;

	/* tables of results */
	struct fact_row rows[FACTS_ROWS_MAX];
	uint32_t row_count;
	bool header_has_wrong;	    /* the column is #wrong, not the old error */
	struct evidence table_seen; /* the head of a table */
	double average_busbw;
	int32_t average_count, average_zero;
	uint64_t rank0_devices; /* device lines of rank 0 */
	uint64_t wrong;
	bool ended_well;
	double gbps_best; /* of scripts that print Gbps */

	/* events */
	struct evidence signs[FIND_COUNT];
	struct evidence sign_detail[FIND_COUNT]; /* a second line worth showing */
	struct evidence chain, first_fatal;
	int32_t chain_code;
	int64_t seq_low, seq_high; /* of watchdog timeouts; -1 */
	int32_t seq_low_rank, seq_high_rank;
	uint64_t watchdog_ranks;
	char operation[FACTS_NAME_BYTES];
	int32_t root_rank; /* that torchrun or mpirun calls the first failure; -1 */
	int32_t root_exit; /* its exit code; negative: the signal */
	int root_lines;	   /* lines left of torchrun's paragraph */
	struct evidence root_seen;
	bool is_last_error; /* the next line is NCCL's last warning, told by an exception
			     */
	uint64_t benign;
	bool link_local_gid;	     /* fe80:: as both ends of a failing transfer */
	char peer[FACTS_NAME_BYTES]; /* of the first completion error */
};

enum err log_facts_create(struct log_facts **facts);
void log_facts_destroy(struct log_facts *facts);

/* A log's name begins; its lines follow. */
enum err log_facts_file(struct log_facts *facts, const char *name);

/* Count an event at this place; the first of all is kept. */
struct fact_place {
	uint64_t line;
	const char *whole; /* the line, for its timestamp and its launcher's rank */
	size_t whole_bytes;
	const struct record *record;
	int32_t proc;
};
void evidence_add(
	struct log_facts *facts, struct evidence *evidence, const struct fact_place *at);

/* Put a text on a list; NULL when the list is full and it is new. */
struct fact_word *fact_words_add(struct log_facts *facts, struct fact_words *words,
	const char *text, size_t bytes, const struct fact_place *at);

/* The host of a record, if it was seen before; -1. */
int32_t log_facts_find_host(const struct log_facts *facts, const struct record *record);

/* The host and process of a record; -1: it does not say, or the table is full. */
int32_t log_facts_host(struct log_facts *facts, const struct record *record);
int32_t log_facts_proc(struct log_facts *facts, const struct record *record);

/* Has this process been seen, with whatever GPU? It is not added. */
bool log_facts_has_pid(const struct log_facts *facts, const struct record *record);
void log_facts_add_pid(struct log_facts *facts, int32_t host, int64_t pid);

/* What a line says of a rank's place in a communicator; false: nothing. */
bool log_facts_member(const struct record *record, struct fact_member *member);
void log_facts_add_member(struct log_facts *facts, const struct fact_member *member);
bool log_facts_has_member(
	const struct log_facts *facts, const struct fact_member *member);
bool log_facts_has_comm(const struct log_facts *facts, uint64_t comm);
bool log_facts_has_size(const struct log_facts *facts, int32_t rank_count);

/* NULL when the table is full. */
struct fact_edge *log_facts_edge(
	struct log_facts *facts, int32_t from, int32_t to, int32_t comm_ranks);

/* How much of a job these facts tell; 0: nothing of what was read is of one. It grows. */
uint64_t log_facts_told(const struct log_facts *facts);

const char *log_facts_env(const struct log_facts *facts, const char *name);

/* The rank that said something, as well as it is known; -1. */
int32_t evidence_rank(const struct log_facts *facts, const struct evidence *evidence);

#endif
