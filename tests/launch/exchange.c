/* What the tests of launchers start: says which rank it is and which id it got, twice, so
 * that they see whether all got the same. It makes no communicator, so the ranks may be
 * on hosts that have nothing but the exchange in common. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <weft.h>

static int fail(const char *what)
{
	printf("%s: %s\n", what, ncclGetLastError(NULL));
	return 1;
}

static uint64_t fingerprint(const ncclUniqueId *id)
{
	uint64_t hash = 14695981039346656037u;

	for (size_t i = 0; i < sizeof(*id); i++)
		hash = (hash ^ (unsigned char)id->internal[i]) * 1099511628211u;
	return hash;
}

int main(void)
{
	ncclUniqueId first, second;
	weftLaunch_t launch;

	if (weftGetLaunch(&launch))
		return fail("weftGetLaunch");
	if (weftGetUniqueIdFromEnv(&first) || weftGetUniqueIdFromEnv(&second))
		return fail("weftGetUniqueIdFromEnv");
	if (!memcmp(&first, &second, sizeof(first))) {
		printf("the second id is the first again\n");
		return 1;
	}
	printf("rank %d of %d local %d of %d by %s ids %016llx %016llx\n", launch.rank,
		launch.nRanks, launch.localRank, launch.nLocalRanks, launch.launcher,
		(unsigned long long)fingerprint(&first),
		(unsigned long long)fingerprint(&second));
	return 0;
}
