/* A quarter of the files that a process may open is for the threads of large calls, once
 * and not once for each communicator. */
#include "comm/call_files.h"

#include <sys/resource.h>

#include "test.h"

static void limit(rlim_t files)
{
	struct rlimit now;

	EQ(getrlimit(RLIMIT_NOFILE, &now), 0);
	now.rlim_cur = files;
	EQ(setrlimit(RLIMIT_NOFILE, &now), 0);
}

int main(void)
{
	limit(100);
	EQ(call_files_take(1, 1000), 1);
	EQ(call_files_take(0, 4), 0);
	EQ(call_files_take(4, 4), 4); /* 16 of 25 */
	EQ(call_files_take(4, 4), 2); /* 24 */
	EQ(call_files_take(4, 4), 1);
	call_files_give(16);
	EQ(call_files_take(4, 9), 1);
	EQ(call_files_take(4, 8), 2); /* 24 */
	call_files_give(8);
	call_files_give(16);
	EQ(call_files_take(8, 3), 8);
	/* what is taken may be more than there is room for by now */
	limit(40);
	EQ(call_files_take(4, 4), 1);
	limit(200);
	EQ(call_files_take(4, 4), 4);
	return 0;
}
