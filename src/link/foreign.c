#include "link/foreign.h"

#include <errno.h>
#include <sys/uio.h>

bool foreign_works(uint32_t pid, const void *theirs, uint64_t expected)
{
	uint64_t found = ~expected;
	struct iovec to = {&found, sizeof(found)};
	struct iovec from = {(void *)(uintptr_t)theirs, sizeof(found)};

	return process_vm_readv((pid_t)pid, &to, 1, &from, 1, 0) == sizeof(found) &&
	       found == expected;
}

/* The kernel may stop early, at a page it has to bring in; what is left is asked again.
 */
enum err foreign_read(uint32_t pid, void *mine, const void *theirs, size_t bytes)
{
	struct iovec to = {mine, bytes}, from = {(void *)(uintptr_t)theirs, bytes};

	while (to.iov_len) {
		ssize_t done = process_vm_readv((pid_t)pid, &to, 1, &from, 1, 0);

		if (done < 0 && errno == EINTR)
			continue;
		if (!done)
			errno = EFAULT;
		if (done <= 0)
			return err_set(errno == ESRCH ? ERR_REMOTE : ERR_SYSTEM,
				"cannot copy %zu bytes from process %u: %m (WEFT_CMA=0 "
				"goes through shared memory instead)",
				to.iov_len, pid);
		to.iov_base = (char *)to.iov_base + done;
		to.iov_len -= (size_t)done;
		from.iov_base = (char *)from.iov_base + done;
		from.iov_len -= (size_t)done;
	}
	return OK;
}
