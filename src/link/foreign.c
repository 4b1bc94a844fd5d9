#include "link/foreign.h"

#include <errno.h>
#include <sys/uio.h>

/* The kernel may stop early, at a page it has to bring in; what is left is asked again.
 */
static enum err foreign_copy(
	uint32_t pid, struct iovec mine, struct iovec theirs, bool read)
{
	while (mine.iov_len) {
		ssize_t done =
			read ? process_vm_readv((pid_t)pid, &mine, 1, &theirs, 1, 0)
			     : process_vm_writev((pid_t)pid, &mine, 1, &theirs, 1, 0);

		if (done < 0 && errno == EINTR)
			continue;
		if (!done)
			errno = EFAULT;
		if (done <= 0)
			return err_set(errno == ESRCH ? ERR_REMOTE : ERR_SYSTEM,
				"cannot copy %zu bytes %s process %u: %m (WEFT_CMA=0 "
				"goes "
				"through shared memory instead)",
				mine.iov_len, read ? "from" : "to", pid);
		mine.iov_base = (char *)mine.iov_base + done;
		mine.iov_len -= (size_t)done;
		theirs.iov_base = (char *)theirs.iov_base + done;
		theirs.iov_len -= (size_t)done;
	}
	return OK;
}

bool foreign_works(uint32_t pid, const void *theirs, uint64_t expected)
{
	uint64_t found = ~expected;
	struct iovec to = {&found, sizeof(found)};
	struct iovec from = {(void *)(uintptr_t)theirs, sizeof(found)};

	return process_vm_readv((pid_t)pid, &to, 1, &from, 1, 0) == sizeof(found) &&
	       found == expected;
}

enum err foreign_read(uint32_t pid, void *mine, const void *theirs, size_t bytes)
{
	return foreign_copy(pid, (struct iovec){mine, bytes},
		(struct iovec){(void *)(uintptr_t)theirs, bytes}, true);
}

enum err foreign_write(uint32_t pid, const void *mine, void *theirs, size_t bytes)
{
	return foreign_copy(pid, (struct iovec){(void *)(uintptr_t)mine, bytes},
		(struct iovec){theirs, bytes}, false);
}
