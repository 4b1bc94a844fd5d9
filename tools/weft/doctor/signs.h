/*
 * signs.h - the words in a log that give something away, as data.
 *
 * A sign is a word that must be there, perhaps a second one in the same line, and what it
 * stands for. Benign ones are listed as well, so that they are never taken for anything.
 */
#ifndef TOOLS_WEFT_DOCTOR_SIGNS_H
#define TOOLS_WEFT_DOCTOR_SIGNS_H

#include "weft/doctor/catalogue.h"
#include "weft/doctor/record.h"

enum {
	SIGN_WARN = 1,	 /* only in a WARN */
	SIGN_NCCL = 2,	 /* only in a line of NCCL's */
	SIGN_APP = 4,	 /* only in a line that is not */
	SIGN_BENIGN = 8, /* stands for nothing */
	SIGN_HOOK = 32,	 /* the reader of programs' lines wants to see it */
	SIGN_DETAIL = 16 /* says more of a finding that something else must show */
};

struct sign {
	enum finding_id finding;
	unsigned flags;
	const char *word;
	const char *also;   /* NULL: nothing more */
	const char *unless; /* NULL likewise */
};

const struct sign *signs_list(uint32_t *count);

#endif
