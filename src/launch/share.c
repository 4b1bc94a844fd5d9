#include "launch/share.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/param.h"
#include "launch/hex.h"
#include "launch/idfile.h"
#include "launch/master.h"
#include "launch/pmi.h"
#include "launch/pmix.h"

enum { WHY_BYTES = 160, KEY_BYTES = 32, DAYS_NS_SHIFT = 62 };

/* One per process: the launcher knows us once. Callers take turns (share.h). */
static struct {
	uint32_t number; /* of the next exchange */
	struct pmi pmi;
	bool has_pmi;
	pid_t pid;		      /* that has been introduced; 0: none */
	char path[LAUNCH_PATH_BYTES]; /* of the files that we have written; "": none */
} session;

/* A launcher takes a process that goes without a word for one that crashed. A child of
 * fork() is not the one that it knows. */
static void session_close(void)
{
	if (session.pid != getpid())
		return;
	for (uint32_t i = 0; session.path[0] && i < session.number; i++)
		idfile_remove(&(struct idfile){.path = session.path, .number = i});
	if (session.has_pmi)
		pmi_close(&session.pmi);
	pmix_unload();
}

static void session_open(void)
{
	if (!session.pid && !atexit(session_close))
		session.pid = getpid();
}

static uint64_t deadline(void)
{
	uint64_t seconds = (uint64_t)param_int(PARAM_BOOT_TIMEOUT);

	return seconds ? clock_ns() + seconds * CLOCK_SEC
		       : UINT64_C(1) << DAYS_NS_SHIFT; /* for ever */
}

static void key_print(char key[KEY_BYTES])
{
	snprintf(key, KEY_BYTES, "weft-id-%u", session.number);
}

static struct idfile file_of(const struct launch *launch)
{
	return (struct idfile){.path = launch->path,
		.job = launch->job,
		.number = session.number,
		.rank = launch->rank,
		.timeout_s = (int)param_int(PARAM_BOOT_TIMEOUT)};
}

/* Rank 0 cannot know when the last has read it, so it goes with rank 0. */
static enum err by_file(const struct launch *launch, void *bytes, size_t count)
{
	struct idfile file = file_of(launch);

	if (launch->rank)
		return idfile_read(&file, bytes, count);
	session_open();
	snprintf(session.path, sizeof(session.path), "%s", launch->path);
	return idfile_write(&file, bytes, count);
}

static enum err by_tcp(const struct launch *launch, void *bytes, size_t count)
{
	struct master_args args = {
		.launch = launch, .number = session.number, .deadline_ns = deadline()};

	return launch->rank ? master_take(&args, bytes, count)
			    : master_give(&args, bytes, count);
}

static enum err pmi_begin(const struct launch *launch)
{
	struct pmi_args args = {.fd = launch->pmi_fd,
		.port = launch->pmi_port[0] ? launch->pmi_port : NULL,
		.rank = launch->rank,
		.is_2_first = launch->is_pmi2_first,
		.job = launch->pmi_job,
		.deadline_ns = deadline()};
	enum err e;

	session_open();
	session.pmi.deadline_ns = args.deadline_ns;
	if (session.has_pmi)
		return OK;
	e = pmi_open(&session.pmi, &args);
	session.has_pmi = !e;
	return e;
}

static enum err other_value(const char *text)
{
	return err_set(ERR_REMOTE,
		"the launcher gave '%.40s' instead of what rank 0 has put", text);
}

static enum err by_pmi(const struct launch *launch, void *bytes, size_t count)
{
	char key[KEY_BYTES], text[2 * SHARE_BYTES_MAX + 1];
	enum err e = pmi_begin(launch);

	key_print(key);
	hex_print(bytes, count, text);
	if (!e && !launch->rank)
		e = pmi_put(&session.pmi, key, text);
	if (!e)
		e = pmi_fence(&session.pmi);
	if (e || !launch->rank)
		return e;
	e = pmi_get(&session.pmi, key, text, sizeof(text));
	return !e && !hex_read(text, bytes, count) ? other_value(text) : e;
}

static enum err by_pmix(const struct launch *launch, void *bytes, size_t count)
{
	char key[KEY_BYTES], text[2 * SHARE_BYTES_MAX + 1];
	enum err e;

	key_print(key);
	hex_print(bytes, count, text);
	e = pmix_share(key, text, sizeof(text), (int)param_int(PARAM_BOOT_TIMEOUT));
	if (!e && launch->rank && !hex_read(text, bytes, count))
		e = other_value(text);
	return e;
}

/* Where there is no PMIx library, the next best way that launch_read() knows of. */
static enum err without_pmix(struct launch *launch, const char *why)
{
	bool is_one_host = launch->rank_count > 0 &&
			   launch->local_count == launch->rank_count;

	if (launch->master[0])
		launch->travel = TRAVEL_TCP;
	else if (is_one_host)
		launch_use_host_file(launch);
	else
		return err_set(ERR_SYSTEM,
			"%s started this process as rank %d, and the PMIx library, by "
			"which ranks find each other, cannot be loaded (%s): install "
			"libpmix2, or set WEFT_MASTER to rank 0's host",
			launch_name(launch->kind), launch->rank, why);
	log_info(LOG_INIT, "launch: no PMIx library (%s)", why);
	return OK;
}

/* Who listens at PMI_PORT knows which rank this is, and of how many. */
static enum err complete_by_port(struct launch *launch)
{
	enum err e = pmi_begin(launch);

	if (e)
		return e;
	if (session.pmi.rank_count > LAUNCH_RANKS_MAX)
		return err_set(ERR_REMOTE,
			"the launcher says rank %d of %d, and Weft "
			"has at most %d",
			session.pmi.rank, session.pmi.rank_count, LAUNCH_RANKS_MAX);
	launch->rank = session.pmi.rank;
	launch->rank_count = session.pmi.rank_count;
	if (launch->local_count > launch->rank_count)
		launch->local_count = launch->local_rank = -1;
	if (launch->rank_count == 1)
		launch->travel = TRAVEL_NONE;
	return OK;
}

enum err launch_complete(struct launch *launch)
{
	char why[WHY_BYTES];
	int rank;
	enum err e = OK;

	if (launch->travel != TRAVEL_PMIX && launch->rank_count)
		return OK;
	if (launch->pmi_port[0])
		return complete_by_port(launch);
	if (!pmix_load(why, sizeof(why)))
		return without_pmix(launch, why);
	session_open();
	if (launch->rank_count)
		return OK;
	e = pmix_job(&rank, &launch->rank_count);
	if (!e && (launch->rank_count < 1 || launch->rank_count > LAUNCH_RANKS_MAX ||
			  rank < 0 || rank >= launch->rank_count))
		e = err_set(
			ERR_REMOTE, "PMIx says rank %d of %d", rank, launch->rank_count);
	if (!e)
		launch->rank = rank;
	if (!e && launch->rank_count == 1)
		launch->travel = TRAVEL_NONE;
	return e;
}

static enum err by_travel(const struct launch *launch, void *bytes, size_t count)
{
	switch (launch->travel) {
	case TRAVEL_FILE:
		return by_file(launch, bytes, count);
	case TRAVEL_PMI:
		return by_pmi(launch, bytes, count);
	case TRAVEL_PMIX:
		return by_pmix(launch, bytes, count);
	case TRAVEL_TCP:
		return by_tcp(launch, bytes, count);
	default:
		return OK;
	}
}

enum err launch_share(const struct launch *launch, void *bytes, size_t count)
{
	enum err e;

	if (count > SHARE_BYTES_MAX)
		return err_set(ERR_INTERNAL, "%zu bytes to share", count);
	e = by_travel(launch, bytes, count);
	session.number++;
	return e;
}
