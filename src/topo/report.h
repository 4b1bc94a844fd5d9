/*
 * report.h - what a look at the machine could not see, in sentences.
 *
 * Discovery never fails because a part is hidden; it goes on with what NCCL would assume
 * and says so here. Tools print the sentences as they are.
 */
#ifndef TOPO_REPORT_H
#define TOPO_REPORT_H

#include <stdbool.h>
#include <stdint.h>

enum { REPORT_SENTENCES_MAX = 48, REPORT_SENTENCE_BYTES = 240, REPORT_PATH_BYTES = 256 };

struct discover_report {
	/* Each is a whole sentence without a full stop, the most important first. */
	char sentences[REPORT_SENTENCES_MAX][REPORT_SENTENCE_BYTES];
	uint32_t sentence_count;
	uint32_t gpu_count, net_count; /* that detection saw, whatever a file says */
	bool p2p_known;		       /* NVML was asked about every pair of GPUs */
	bool p2p_ok; /* and said that all may read and write each other */
	char file[REPORT_PATH_BYTES]; /* the topology file that was used; "" none */
	char driver[64];	      /* of NVIDIA; "" none */
};

/* Add a sentence; one that is there already, or finds no room, is dropped. */
void report_add(struct discover_report *report, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
