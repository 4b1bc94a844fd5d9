/*
 * Configurations of every release: what the caller's header did not have is not read,
 * what it had is checked.
 */
#include <limits.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nccl.h"
#include "test.h"

struct release {
	size_t size;
	unsigned version;
	size_t used; /* bytes that hold members; the rest is padding */
};

static const struct release releases[] = {
	{24, 21400, 20},
	{40, 21700, 40},
	{48, 21800, 44},
	{48, 22304, 44},
	{48, 22602, 48},
	{72, 22703, 72},
	{80, 22809, 80},
	{88, 22907, 88},
	{96, 23003, 92},
	{96, 23007, 96},
	{112, 23102, 112},
	{120, 23203, 116},
};

enum { RELEASE_COUNT = sizeof(releases) / sizeof(releases[0]) };

static ncclResult_t try(ncclConfig_t *config)
{
	ncclUniqueId id;
	ncclComm_t comm = NULL;
	ncclResult_t result;

	EQ(ncclGetUniqueId(&id), ncclSuccess);
	result = ncclCommInitRankConfig(&comm, 1, id, 0, config);
	EQ(comm == NULL, result != ncclSuccess);
	EQ(ncclCommDestroy(comm), ncclSuccess);
	return result;
}

/* The end of a page, so that one byte too many is a fault. */
static char *page_end(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	TRUE(pages != MAP_FAILED);
	EQ(mprotect(pages + page, page, PROT_NONE), 0);
	return pages + page;
}

/* A caller's structure with garbage where its release had padding. */
static ncclConfig_t *make(char *end, const struct release *release)
{
	ncclConfig_t fresh = NCCL_CONFIG_INITIALIZER;
	char *config = end - release->size;

	fresh.size = release->size;
	fresh.version = release->version;
	memset(config, 0xa5, release->size);
	memcpy(config, &fresh, release->used);
	return (ncclConfig_t *)(void *)config;
}

static void set(ncclConfig_t *config, size_t offset, int value)
{
	memcpy((char *)config + offset, &value, sizeof(value));
}

/* One member: every release that has it takes good values and refuses bad ones. */
static void test_member(char *end, size_t offset, int good, int bad)
{
	for (int i = 0; i < RELEASE_COUNT; i++) {
		const struct release *release = &releases[i];
		ncclConfig_t *config;

		if (offset + sizeof(int) > release->used)
			continue;
		config = make(end, release);
		set(config, offset, good);
		EQ(try(config), ncclSuccess);
		config = make(end, release);
		set(config, offset, bad);
		EQ(try(config), ncclInvalidArgument);
		TRUE(strstr(ncclGetLastError(NULL), "range"));
	}
}

static void test_members(char *end)
{
	test_member(end, offsetof(ncclConfig_t, blocking), 1, 2);
	test_member(end, offsetof(ncclConfig_t, cgaClusterSize), 8, 9);
	test_member(end, offsetof(ncclConfig_t, minCTAs), 1, 0);
	test_member(end, offsetof(ncclConfig_t, maxCTAs), 2, -1);
	test_member(end, offsetof(ncclConfig_t, splitShare), 1, 2);
	test_member(end, offsetof(ncclConfig_t, trafficClass), 3, -1);
	test_member(end, offsetof(ncclConfig_t, collnetEnable), 1, 2);
	test_member(end, offsetof(ncclConfig_t, CTAPolicy), 3, 4);
	test_member(end, offsetof(ncclConfig_t, shrinkShare), 0, -1);
	test_member(end, offsetof(ncclConfig_t, nvlsCTAs), 4, 0);
	test_member(end, offsetof(ncclConfig_t, nChannelsPerNetPeer), 64, 65);
	test_member(end, offsetof(ncclConfig_t, nvlinkCentricSched), 1, 2);
	test_member(end, offsetof(ncclConfig_t, graphUsageMode), 2, 3);
	test_member(end, offsetof(ncclConfig_t, numRmaCtx), 0, -1);
	test_member(end, offsetof(ncclConfig_t, maxP2pPeers), 1, 0);
	test_member(end, offsetof(ncclConfig_t, graphStreamOrdering), 1, 2);
	test_member(end, offsetof(ncclConfig_t, launchOrderImplicit), 1, 2);
	test_member(end, offsetof(ncclConfig_t, numRmaSig), 0, -1);
	test_member(end, offsetof(ncclConfig_t, rmaEagerInit), 1, 2);
	test_member(end, offsetof(ncclConfig_t, hostCftMode), ncclHostCftFallback, 4);
	test_member(end, offsetof(ncclConfig_t, hostCftMode), ncclHostCftEnable, 0);
	test_member(end, offsetof(ncclConfig_t, nvlsHostMode), INT_MAX, 4);
	test_member(end, offsetof(ncclConfig_t, nvlsHostMode), 3, -1);
}

/* A release that shares its size with a later one, but says an older version: the later
 * one's member is padding and must not be believed. */
static void test_version_gate(char *end)
{
	ncclConfig_t *config = make(end, &(struct release){48, 22403, 48});

	config->trafficClass = -5;
	EQ(try(config), ncclSuccess);
	config = make(end, &(struct release){96, 23003, 96});
	config->graphStreamOrdering = 77;
	EQ(try(config), ncclSuccess);
	config = make(end, &(struct release){120, 23007, 116});
	config->launchOrderImplicit = config->numRmaSig = config->rmaEagerInit = -7;
	config->hostCftMode = config->nvlsHostMode = -7;
	EQ(try(config), ncclSuccess);
	/* one more than a caller of 2.31 has, with its version: as in NCCL it is read */
	config = make(end, &(struct release){120, 23102, 116});
	config->nvlsHostMode = -7;
	EQ(try(config), ncclInvalidArgument);
}

int main(void)
{
	char *end = page_end();
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	struct {
		ncclConfig_t config;
		char more[64];
	} newer;

	EQ(try(NULL), ncclSuccess);
	for (int i = 0; i < RELEASE_COUNT; i++)
		EQ(try(make(end, &releases[i])), ncclSuccess);
	test_members(end);
	test_version_gate(end);

	config.magic = 1;
	EQ(try(&config), ncclInvalidArgument);
	TRUE(strstr(ncclGetLastError(NULL), "NCCL_CONFIG_INITIALIZER"));
	config = (ncclConfig_t)NCCL_CONFIG_INITIALIZER;
	config.size = 8;
	EQ(try(&config), ncclInvalidArgument);
	config = (ncclConfig_t)NCCL_CONFIG_INITIALIZER;
	config.minCTAs = 8;
	config.maxCTAs = 4;
	EQ(try(&config), ncclInvalidArgument);
	config = (ncclConfig_t)NCCL_CONFIG_INITIALIZER; /* one alone is legal */
	config.minCTAs = 100;
	EQ(try(&config), ncclSuccess);
	config = (ncclConfig_t)NCCL_CONFIG_INITIALIZER;
	config.maxCTAs = 4;
	EQ(try(&config), ncclSuccess);
	config.minCTAs = 4;
	config.numRmaCtx = 9;
	config.numRmaSig = 9;
	EQ(try(&config), ncclInvalidArgument);
	TRUE(strstr(ncclGetLastError(NULL), "64 signals"));
	config.numRmaCtx = 1;
	config.commName =
		"a name that is much longer than the sixty-three characters that "
		"the library keeps of it";
	EQ(try(&config), ncclSuccess);

	/* From the future: larger, newer; what we know of it is used. */
	memset(&newer, 0x5a, sizeof(newer));
	newer.config = (ncclConfig_t)NCCL_CONFIG_INITIALIZER;
	newer.config.size = sizeof(newer);
	newer.config.version = 29900;
	EQ(try(&newer.config), ncclSuccess);
	newer.config.blocking = 3;
	EQ(try(&newer.config), ncclInvalidArgument);
	return 0;
}
