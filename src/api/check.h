/*
 * check.h - argument checks, in the order NCCL makes them, each with its sentence.
 *
 * `function` is the name the caller knows, for the sentence.
 */
#ifndef API_CHECK_H
#define API_CHECK_H

#include "api/export.h"

/* Not NULL. `name` is the argument's. */
enum err check_pointer(const void *pointer, const char *function, const char *name);

/* A communicator, whatever state it is in. */
enum err check_handle(struct comm *comm, const char *function);

/* And nothing pending or failed on it. */
enum err check_ready(struct comm *comm, const char *function);

/* A communicator, whatever state it is in, but not finalized. */
enum err check_not_finalized(struct comm *comm, const char *function);

/* Ready, and neither revoked nor finalized: it can be given work. */
enum err check_comm(struct comm *comm, const char *function);

/* A collective or point-to-point call as the user made it. */
struct call_args {
	const char *function; /* "AllReduce" */
	struct comm *comm;
	enum call_kind kind;
	enum coll coll;
	const void *in;
	void *out;
	size_t count;
	int type, op;
	int root; /* or peer */
	cudaStream_t stream;
};

/* The host stream behind a handle; NULL for the default streams. */
enum err check_stream(cudaStream_t given, const char *function, struct stream **stream);

/* Check all of it and make the call the comm room takes. */
enum err check_call(const struct call_args *args, struct comm_call *call);

#endif
