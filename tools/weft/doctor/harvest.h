/*
 * harvest.h - from lines of logs to facts.
 */
#ifndef TOOLS_WEFT_DOCTOR_HARVEST_H
#define TOOLS_WEFT_DOCTOR_HARVEST_H

#include "base/err.h"
#include "weft/doctor/jobs.h"
#include "weft/doctor/lines.h"
#include "weft/doctor/log_facts.h"
#include "weft/doctor/words.h"

enum { HARVEST_SIGNS_MAX = 512, HARVEST_QUIET = 1 << 12 };

struct harvest {
	struct words *words; /* owned; the signs' */
	/* what else must, or must not, be in the line: looked for only where a sign is */
	struct words *details;					     /* owned */
	uint16_t also[HARVEST_SIGNS_MAX], unless[HARVEST_SIGNS_MAX]; /* + 1; 0: none */
	struct jobs jobs;
	struct log_facts *facts; /* borrowed; of the job whose record is read */
	bool is_hooked;		 /* a word says that this line is worth a closer look */
	/* hashes of texts without any word: ranks all write the same */
	uint64_t quiet[HARVEST_QUIET];
};

enum err harvest_init(struct harvest *harvest);
void harvest_fini(struct harvest *harvest);

/* Read a whole log; "-" is standard input. What it said before a failure is kept.
 * ERR_USAGE: it could be read, and nothing in it is of NCCL or of a job. */
enum err harvest_log(struct harvest *harvest, const char *path);

/* Read them all, and say on standard error, in the name of a command, which cannot be
 * read or tell nothing. False: there is nothing to report. `bad` counts those that cannot
 * be read; one that tells nothing beside others that do is no failure. */
bool harvest_logs(struct harvest *harvest, const char *command, char *const *paths,
	int count, int *bad);

/* One line of it, for those who have the lines already; harvest_end() after the last. */
void harvest_line(struct harvest *harvest, const struct line *wrapped);
void harvest_end(struct harvest *harvest);

/* What INFO lines, and lines of programs, say beside signs. */
void harvest_info(struct log_facts *facts, const struct fact_place *at);
void harvest_program(
	struct log_facts *facts, const struct fact_place *at, bool is_hooked);

/* "Channel 00/0 : 0[0] -> 1[1] via P2P/IPC" and the earlier "Ring 00 : ..". */
void harvest_channel(struct log_facts *facts, const struct fact_place *at);

#endif
