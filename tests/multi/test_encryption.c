/* ncclSetEncryption: ranks with one key meet, and nothing readable crosses the socket;
 * ranks with another key, or none, get a sentence. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "free_port.h"
#include "ranks.h"

static const char one[] = "a key that every process of the job knows";
static const char other[] = "a key that only one process of the job knows";

static void key_set(const char *psk)
{
	ncclEncryptionConfig_t config = NCCL_ENCRYPTION_CONFIG_INITIALIZER;

	config.mode = NCCL_ENCRYPTION_MODE_PSK;
	config.psk = psk;
	OK(ncclSetEncryption(&config));
}

static void sum_check(ncclComm_t comm, int n)
{
	int word = 1;

	OK(ncclAllReduce(&word, &word, 1, ncclInt, ncclSum, comm, NULL));
	HOLDS(word == n);
}

/* Communicators, children, and plaintext again. */
static void works(struct rank *rank)
{
	ncclComm_t comm, child;
	int n = rank->rank_count;

	key_set(one);
	comm = rank_comm(rank, 0);
	sum_check(comm, n);
	OK(ncclCommSplit(comm, 0, -rank->rank, &child, NULL));
	sum_check(child, n);
	OK(ncclCommDestroy(child));
	OK(ncclCommDestroy(comm));
	rank_meet(rank);
	OK(ncclSetEncryption(NULL));
	rank_meet(rank);
	comm = rank_comm(rank, 1);
	sum_check(comm, n);
	OK(ncclCommDestroy(comm));
}

/* The last rank does not have rank 0's key: it is told, and the others that it did not
 * come. */
static void differs(struct rank *rank)
{
	const char *last = rank->argument;
	bool is_last = rank->rank == rank->rank_count - 1;
	ncclUniqueId id;
	ncclComm_t comm;

	if (!is_last)
		key_set(one);
	else if (last)
		key_set(last);
	id = rank_id(rank, 0);
	GIVES(ncclCommInitRank(&comm, rank->rank_count, id, rank->rank),
		is_last ? ncclInvalidUsage : ncclTimeout);
	HOLDS(strstr(
		ncclGetLastError(NULL), !is_last ? "did not come"
					: last	 ? "another pre-shared key"
						 : "this process has no pre-shared key"));
}

/* Only the last rank has a key. */
static void alone(struct rank *rank)
{
	bool is_last = rank->rank == rank->rank_count - 1;
	ncclUniqueId id = rank_id(rank, 0);
	ncclComm_t comm;

	if (is_last)
		key_set(one);
	GIVES(ncclCommInitRank(&comm, rank->rank_count, id, rank->rank),
		is_last ? ncclInvalidUsage : ncclTimeout);
	if (is_last)
		HOLDS(strstr(ncclGetLastError(NULL), "has no pre-shared key"));
}

static char folder[] = "/tmp/weft-encryption-XXXXXX"; /* of the logs */

/* The log of the process where the ranks meet has a line for whoever was dropped. */
static void attn_check(struct rank *rank)
{
	char path[64], text[4096] = "";
	FILE *file;

	differs(rank);
	if (rank->rank)
		return;
	snprintf(path, sizeof(path), "%s/%d", folder, (int)getpid());
	file = fopen(path, "r");
	HOLDS(file);
	HOLDS(fread(text, 1, sizeof(text) - 1, file) > 0);
	HOLDS(strstr(text, "NCCL ATTN boot: dropped a connection"));
	fclose(file);
	unlink(path);
}

static void arguments(struct rank *rank)
{
	ncclEncryptionConfig_t config = NCCL_ENCRYPTION_CONFIG_INITIALIZER;
	ncclComm_t comm;

	HOLDS(sizeof(config) == 32 && config.size == 32);
	OK(ncclSetEncryption(&config));
	config.mode = NCCL_ENCRYPTION_MODE_PSK;
	GIVES(ncclSetEncryption(&config), ncclInvalidArgument);
	HOLDS(strstr(ncclGetLastError(NULL), "needs a psk"));
	config.psk = "too short";
	GIVES(ncclSetEncryption(&config), ncclInvalidArgument);
	HOLDS(strstr(ncclGetLastError(NULL), "at least 32"));
	config.mode = 2;
	GIVES(ncclSetEncryption(&config), ncclInvalidArgument);
	config.magic = 1;
	GIVES(ncclSetEncryption(&config), ncclInvalidArgument);
	HOLDS(strstr(ncclGetLastError(NULL), "NCCL_ENCRYPTION_CONFIG_INITIALIZER"));
	/* a caller that has no such members has no such wish */
	config = (ncclEncryptionConfig_t)NCCL_ENCRYPTION_CONFIG_INITIALIZER;
	config.mode = 77;
	config.size = 16;
	OK(ncclSetEncryption(&config));
	comm = rank_comm(rank, 0);
	sum_check(comm, 1);
	OK(ncclCommDestroy(comm));
}

int main(void)
{
	static const char *const soon[] = {"WEFT_BOOT_TIMEOUT_SEC", "2", NULL};
	char where[32], logs[64], tidy[64];
	const char *const address[] = {"NCCL_COMM_ID", where, "WEFT_SECRET", "s", NULL};
	const char *const logged[] = {"WEFT_BOOT_TIMEOUT_SEC", "2", "NCCL_DEBUG", "ATTN",
		"NCCL_DEBUG_FILE", logs, NULL};

	HOLDS(mkdtemp(folder));
	snprintf(logs, sizeof(logs), "%s/%%p", folder);
	snprintf(tidy, sizeof(tidy), "rm -r %s", folder);
	snprintf(where, sizeof(where), "127.0.0.1:%d", port_find(AF_INET));
	ranks_run(&(struct ranks){.processes = 1, .threads = 1, .function = arguments});
	ranks_run(&(struct ranks){.processes = 3, .threads = 1, .function = works});
	ranks_run(&(struct ranks){.processes = 1, .threads = 3, .function = works});
	ranks_run(&(struct ranks){
		.processes = 3, .threads = 1, .function = works, .environment = address});
	ranks_run(&(struct ranks){.processes = 3,
		.threads = 1,
		.function = differs,
		.argument = other,
		.environment = soon});
	ranks_run(&(struct ranks){
		.processes = 3, .threads = 1, .function = differs, .environment = soon});
	ranks_run(&(struct ranks){.processes = 2,
		.threads = 1,
		.function = attn_check,
		.argument = other,
		.environment = logged});
	ranks_run(&(struct ranks){
		.processes = 3, .threads = 1, .function = alone, .environment = soon});
	return system(tidy) != 0;
}
