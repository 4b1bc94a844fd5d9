/*
 * compare.h - two decisions in JSON, area by area.
 *
 * An item is the smallest thing that is right or wrong as a whole: a path, a field of a
 * graph, a ring. Numbers may differ by the rounding of their printing, those of the model
 * by one in a thousand.
 */
#ifndef TESTS_DECISIONS_COMPARE_H
#define TESTS_DECISIONS_COMPARE_H

#include <jansson.h>
#include <stdbool.h>

enum area {
	AREA_SYSTEM,  /* nodes and links */
	AREA_PATHS,   /* type, bandwidth, hops */
	AREA_GDR,     /* GPUDirect per GPU, NIC and direction */
	AREA_GRAPHS,  /* counts, speeds, types */
	AREA_ORDERS,  /* which GPUs and NICs, in which order, per channel */
	AREA_AS_IF,   /* CollNet graphs of a run without CollNet, both of the above */
	AREA_COMM,    /* what all ranks agree on */
	AREA_RINGS,   /* joined, per channel */
	AREA_TREES,   /* joined, per channel */
	AREA_EDGES,   /* NICs and relays between nodes, per channel */
	AREA_NVLS,    /* heads and trees */
	AREA_MODEL,   /* latency, bandwidth, threads */
	AREA_CHOICES, /* algorithm, protocol, channels, threads per size */
	AREA_TIMES,   /* what the model thinks the choice takes */
	AREA_COUNT
};

struct tally {
	long equal, different;
};

struct comparison {
	struct tally tallies[AREA_COUNT];
	const char *name; /* of the decision, for the list; NULL: list nothing */
};

const char *area_name(enum area area);

/* Count into `comparison`, which starts zeroed but for its name; the first few
 * differences of each area are printed. */
void compare_decisions(
	const json_t *wanted, const json_t *got, struct comparison *comparison);

#endif
