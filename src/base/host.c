#include "base/host.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/param.h"

/* A system without the file is known by its name alone; one that only cannot open it now
 * must not pass for another host. */
static enum err boot_read(char *boot, int room)
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

	boot[0] = '\0';
	if (!file && errno != ENOENT && errno != EACCES)
		return err_set(ERR_SYSTEM, "cannot tell which host this is: %m");
	if (!file)
		return OK;
	if (!fgets(boot, room, file))
		boot[0] = '\0';
	fclose(file);
	return OK;
}

enum err host_identity(char *name, size_t room, uint64_t *identity)
{
	const char *forced = param_text(PARAM_HOSTID);
	struct stat processes;
	uint64_t hash = HASH_START;
	char boot[64];
	enum err e;

	if (gethostname(name, room))
		snprintf(name, room, "unknown");
	name[room - 1] = '\0';
	if (forced) {
		hash = hash_add_text(hash, forced);
	} else {
		e = boot_read(boot, sizeof(boot));
		if (e)
			return e;
		hash = hash_add_text(hash_add_text(hash, name), boot);
	}
	if (!stat("/proc/self/ns/pid", &processes))
		hash = hash_add(hash, processes.st_ino);
	else if (errno != ENOENT && errno != EACCES)
		return err_set(ERR_SYSTEM,
			"cannot tell whose processes this host has in common: %m");
	*identity = hash;
	return OK;
}
