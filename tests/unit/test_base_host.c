/* Two processes are on one host when they can share memory and the user agrees. */
#include "base/host.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/param.h"
#include "test.h"

static uint64_t identity_with(const char *forced)
{
	char name[64];
	uint64_t identity = 0;

	if (forced)
		setenv("NCCL_HOSTID", forced, 1);
	else
		unsetenv("NCCL_HOSTID");
	param_forget(PARAM_HOSTID);
	EQ(host_identity(name, sizeof(name), &identity), OK);
	TRUE(name[0] != '\0');
	return identity;
}

/* What a child finds, in a pid namespace or with a host name of its own if wanted; false
 * where the machine forbids that. */
static bool child_finds(int apart, const char *forced, uint64_t *identity)
{
	int ends[2], status;
	pid_t pid;
	ssize_t n;

	EQ(pipe(ends), 0);
	fflush(NULL);
	pid = fork();
	TRUE(pid >= 0);
	if (!pid) {
		if (apart && unshare(apart))
			_exit(77);
		if (apart & CLONE_NEWUTS && sethostname("elsewhere", 9))
			_exit(77);
		if (apart & CLONE_NEWPID && (pid = fork())) { /* children are in it */
			waitpid(pid, &status, 0);
			_exit(WEXITSTATUS(status));
		}
		*identity = identity_with(forced);
		n = write(ends[1], identity, sizeof(*identity));
		_exit(n != sizeof(*identity));
	}
	close(ends[1]);
	n = read(ends[0], identity, sizeof(*identity));
	close(ends[0]);
	EQ(waitpid(pid, &status, 0), pid);
	if (WEXITSTATUS(status) == 77)
		return false;
	EQ(status, 0);
	EQ(n, sizeof(*identity));
	return true;
}

int main(void)
{
	uint64_t here, there = 0, named;

	setenv("NCCL_CONF_FILE", "/nonexistent", 1);
	here = identity_with(NULL);
	TRUE(child_finds(0, NULL, &there));
	EQ(here, there);
	named = identity_with("pod 1");
	TRUE(named != here);
	TRUE(named != identity_with("pod 2"));
	EQ(named, identity_with("pod 1"));
	if (!child_finds(CLONE_NEWUTS, NULL, &there)) {
		printf("no namespaces of its own for a process here\n");
		return 0;
	}
	TRUE(there != here);
	TRUE(child_finds(CLONE_NEWUTS, "pod 1", &there));
	EQ(there, named);
	TRUE(child_finds(CLONE_NEWPID, "pod 1", &there));
	TRUE(there != named); /* its memory could not be reached */
	return 0;
}
