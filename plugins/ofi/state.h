/*
 * state.h - what a connection is made of, for comm.c and rdma.c.
 */
#ifndef PLUGINS_OFI_STATE_H
#define PLUGINS_OFI_STATE_H

#include "comm.h"
#include "rdma.h"

/* A test has a plugin of another version. */
#ifndef OFI_WIRE_VERSION
#define OFI_WIRE_VERSION 4
#endif

enum {
	MAGIC = 0x57464f31, /* of handles and of what is said when connecting */
	WIRE_VERSION = OFI_WIRE_VERSION,
	CALLERS_HEARD = 8,	     /* at once, by a listener */
	CALLERS = 2 * CALLERS_HEARD, /* as in rdma.c: none is used again at once */
	REQUESTS_MAX = 128,
	FLUSHES_MAX = 32, /* as many as NCCL has under way */
};

/* What the two ends say when they connect. */
struct call {
	uint32_t magic; /* the same in all versions */
	uint16_t version;
	uint16_t address_bytes;
	uint32_t answer; /* a tag of who calls; of the RDMA protocol also for invitations
			  */
	uint8_t is_rdma, rail_count;
	unsigned char addresses[RAILS_MAX][ADDRESS_BYTES];
};

struct answer {
	uint32_t magic, version;
	uint32_t tag; /* for messages */
	uint32_t number;
	uint8_t is_rdma, rail_count;
	unsigned char addresses[RAILS_MAX][ADDRESS_BYTES];
};

enum comm_kind { COMM_LISTENER, COMM_SENDER, COMM_RECEIVER };

struct caller {
	struct ofi_request request;
	struct call call;
};

struct ofi_comm {
	enum comm_kind kind;
	struct ofi_context *context;
	struct ofi_port *port;
	struct ofi_comm *next;	   /* of the port's graves, or of those that connect */
	struct ofi_end own;	   /* where each connection needs one .. */
	const struct ofi_end *end; /* .. or that of the port's first rail */
	fi_addr_t peers[RAILS_MAX];
	int rail_count; /* that both ends have */
	uint32_t tag;	/* of its messages; of a listener what callers use */
	uint32_t answer_tag;
	uint32_t number;  /* of the receiver, for what is written to it */
	bool is_enlisted; /* under that number */
	/* while it is being made, and afterwards the memory of that */
	struct ofi_request call_request, answer_request;
	struct call call;
	struct answer answer;
	struct caller *callers; /* owned: of a listener */
	uint32_t callers_heard, callers_taken;
	struct ofi_comm *accepting; /* owned: the answer is not on its way yet */
	struct rdma_end *rdma;	    /* owned: of the RDMA protocol */
	uint32_t next_request;
	struct ofi_request requests[REQUESTS_MAX];
	struct ofi_request flushes[FLUSHES_MAX];
};

/* The sentence for a request that has failed; its result. */
int request_lost(const struct ofi_comm *comm, const struct ofi_request *request);

#endif
