/*
 * pmi.h - a client of the process management interface: a few words with the launcher
 * over the descriptor PMI_FD, or a connection to PMI_PORT, by which ranks put values and
 * get each other's.
 *
 * It speaks PMI-1 and PMI-2, whichever the launcher takes. The messages are texts
 * (pmi_text.h); a launcher that says something else ends it with a sentence.
 */
#ifndef LAUNCH_PMI_H
#define LAUNCH_PMI_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "launch/pmi_text.h"

enum { PMI_NAME_BYTES = 288 };

struct pmi {
	int fd;			   /* the launcher gave it, or owned; -1: not open */
	bool is_owned;		   /* a connection to PMI_PORT */
	char name[PMI_NAME_BYTES]; /* of the way, for sentences */
	int version;
	int rank, rank_count; /* rank_count: as told at PMI_PORT, else 0 */
	uint64_t deadline_ns;
	char kvs[256];	 /* PMI-1: the name of the job's key-value space */
	size_t in_bytes; /* read and not used yet */
	char in[PMI_TEXT_BYTES];
};

struct pmi_args {
	int fd;		  /* PMI_FD */
	const char *port; /* or PMI_PORT, and `rank` is PMI_ID; NULL: by the descriptor */
	int rank;
	bool is_2_first; /* ask for PMI-2 before PMI-1 */
	const char *job; /* PMI_JOBID, for PMI-2 */
	uint64_t deadline_ns;
};

/* Introduce this process. ERR_REMOTE when nobody is there or speaks so, ERR_TIMEOUT at
 * the deadline, which counts for what follows, too, until it is set anew. */
enum err pmi_open(struct pmi *pmi, const struct pmi_args *args);

/* Put a value (of bytes that need no quoting: hexadecimal) under a key of its own. */
enum err pmi_put(struct pmi *pmi, const char *key, const char *value);

/* Wait for all ranks; afterwards everybody sees what was put. */
enum err pmi_fence(struct pmi *pmi);

enum err pmi_get(struct pmi *pmi, const char *key, char *value, size_t room);

/* Say goodbye; a launcher takes an end without it for a crash. Never fails, or waits for
 * more than a moment. */
void pmi_close(struct pmi *pmi);

#endif
