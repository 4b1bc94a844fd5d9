/*
 * ncclXConfig(): what is checked, in which order, of callers of every release.
 */
#include <limits.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nccl.h"
#include "test.h"

static ncclComm_t comm;
static float in[4] = {1, 2, 3, 4}, out[4];

static ncclResult_t reduce(const ncclCollConfig_t *config)
{
	memset(out, 0, sizeof(out));
	return ncclAllReduceConfig(in, out, 4, ncclFloat, ncclSum, comm, NULL, config);
}

static void works(const ncclCollConfig_t *config)
{
	EQ(reduce(config), ncclSuccess);
	TRUE(!memcmp(in, out, sizeof(in)));
}

static void fails(const ncclCollConfig_t *config, ncclResult_t code, const char *sentence)
{
	EQ(reduce(config), code);
	if (!strstr(ncclGetLastError(NULL), sentence)) {
		printf("'%s' is not in '%s'\n", sentence, ncclGetLastError(NULL));
		TRUE(0);
	}
}

static ncclCollConfig_t fresh(void)
{
	ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;

	return config;
}

static ncclCollConfig_t selected(const char *names, int force)
{
	ncclCollConfig_t config = fresh();

	config.algSelection = names;
	config.forceAlgSelection = force;
	return config;
}

static void test_layout(void)
{
	ncclCollConfig_t config = fresh();

	EQ(sizeof(config), 72);
	EQ(config.size, 72);
	EQ(config.magic, 0xcafebeef);
	EQ(config.version, 23203);
	EQ(config.forceAlgSelection, 1);
	EQ(config.minCTAs, INT_MIN);
	EQ(config.CTAPolicy, INT_MIN);
	TRUE(!config.ext && !config.algSelection && !config.launchCompletionEvent);
	EQ(config.userProfilerTag, 0);
}

/* Only so much is read as the caller has. */
static void test_sizes(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static const size_t sizes[] = {16, 24, 40, 64, 72};
	struct {
		ncclCollConfig_t config;
		char more[64];
	} newer;

	TRUE(pages != MAP_FAILED);
	EQ(mprotect(pages + page, page, PROT_NONE), 0);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		ncclCollConfig_t config = fresh();
		char *at = pages + page - sizes[i];

		config.size = sizes[i];
		memcpy(at, &config, sizes[i]);
		works((const ncclCollConfig_t *)(const void *)at);
	}
	munmap(pages, 2 * page);
	memset(&newer, 0x5a, sizeof(newer));
	newer.config = fresh();
	newer.config.size = sizeof(newer);
	newer.config.version = 29900;
	works(&newer.config);
	newer.config.version = 0; /* not looked at */
	works(&newer.config);
}

static void test_header(void)
{
	ncclCollConfig_t config = fresh();

	works(NULL);
	works(&config);
	config.magic = 1;
	fails(&config, ncclInvalidArgument,
		"magic mismatch (got 0x1, expected 0xcafebeef)");
	config = fresh();
	config.size = 0;
	fails(&config, ncclInvalidArgument, "magic mismatch");
	config = fresh();
	config.forceAlgSelection = 2;
	fails(&config, ncclInvalidArgument, "forceAlgSelection is 2");
	config = fresh();
	config.CTAPolicy = 4;
	fails(&config, ncclInvalidArgument, "CTAPolicy is 4");
	/* before the communicator, and everything else */
	EQ(ncclAllReduceConfig(NULL, NULL, 1, ncclFloat, ncclSum, NULL, NULL, &config),
		ncclInvalidArgument);
	TRUE(strstr(ncclGetLastError(NULL), "CTAPolicy"));
	config = selected("no such", 1);
	EQ(ncclAllReduceConfig(in, out, 4, ncclFloat, ncclSum, NULL, NULL, &config),
		ncclInvalidArgument);
	TRUE(strstr(ncclGetLastError(NULL), "comm is NULL"));
}

/* Numbers out of their range are passed over, and so is what others' libraries read. */
static void test_passed_over(void)
{
	ncclConfigExt_t ext = {.key = {77, 1}, .val = {.i = 5}};
	ncclCollConfig_t config = fresh();

	config.minCTAs = 1000;
	config.maxCTAs = -1;
	config.nvlsCTAs = 0;
	config.cgaClusterSize = 9;
	config.userProfilerTag = 0x1234;
	config.ext = &ext;
	works(&config);
	config.CTAPolicy = NCCL_CTA_POLICY_ZERO | NCCL_CTA_POLICY_EFFICIENCY;
	works(&config);
	config = fresh();
	config.launchCompletionEvent = (cudaEvent_t)(void *)&config;
	fails(&config, ncclInvalidUsage, "launchCompletionEvent");
}

/* Also checked for one rank, and for collectives that have no names; not for nothing. */
static void test_selection(void)
{
	ncclCollConfig_t config = selected("", 1);

	works(&config);
	config = selected("ring", 1);
	works(&config);
	config = selected("NVLS", 1); /* a name, and one rank needs no algorithm */
	works(&config);
	config = selected("rings", 1);
	fails(&config, ncclInvalidArgument, "'rings' is the beginning of no");
	EQ(ncclAllReduceConfig(in, out, 0, ncclFloat, ncclSum, comm, NULL, &config),
		ncclSuccess);
	config.forceAlgSelection = 0;
	works(&config);
	config = selected("ring", 1);
	EQ(ncclAlltoAllConfig(in, out, 1, ncclFloat, comm, NULL, &config),
		ncclInvalidArgument);
	EQ(ncclGatherConfig(in, out, 1, ncclFloat, 0, comm, NULL, &config),
		ncclInvalidArgument);
	EQ(ncclScatterConfig(in, out, 1, ncclFloat, 0, comm, NULL, &config),
		ncclInvalidArgument);
	config.forceAlgSelection = 0;
	EQ(ncclAlltoAllConfig(in, out, 1, ncclFloat, comm, NULL, &config), ncclSuccess);
	EQ(ncclGatherConfig(in, out, 1, ncclFloat, 0, comm, NULL, &config), ncclSuccess);
	EQ(ncclScatterConfig(in, out, 1, ncclFloat, 0, comm, NULL, &config), ncclSuccess);
}

/* A wrong one fails the group it is in. */
static void test_group(void)
{
	ncclCollConfig_t config = selected("rings", 1);

	EQ(ncclGroupStart(), ncclSuccess);
	EQ(reduce(&config), ncclInvalidArgument);
	EQ(ncclGroupEnd(), ncclInvalidArgument);
	works(NULL);
}

int main(void)
{
	ncclUniqueId id;

	test_layout();
	EQ(ncclGetUniqueId(&id), ncclSuccess);
	EQ(ncclCommInitRank(&comm, 1, id, 0), ncclSuccess);
	test_sizes();
	test_header();
	test_passed_over();
	test_selection();
	test_group();
	EQ(ncclCommDestroy(comm), ncclSuccess);
	return 0;
}
