/*
 * cut.h - a send or receive of a large message with a rank of another host, cut in
 * shares.
 *
 * Both ends know from its length and from what was agreed when the ranks met in how many
 * shares it is cut. It travels in pieces, dealt to the shares in turns; each share is a
 * message of its own (p2p_far.h), by connections that no other share has. So it does not
 * matter to the other end who moves them: the first thread moves share 0, and the others
 * are its squad's, or the first's as well where a collective of the same group has the
 * squad, or threads cannot be had. The send or receive is over when all shares are.
 */
#ifndef EXEC_HOST_CUT_H
#define EXEC_HOST_CUT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "exec/host/run.h"

/* What the shares of a message have in common. */
struct p2p_cut {
	_Atomic uint32_t left;	  /* that are not over: what the first sleeps on */
	_Atomic uint32_t stamp;	  /* changes whenever one comes on */
	_Atomic uint32_t blocked; /* one of the others waits for the peer */
	_Atomic uint64_t pieces[SQUAD_MAX]; /* that each has moved */
};

/* Bytes of a piece, for its sender; 0: it travels whole. */
size_t cut_piece(const struct p2p *p2p);

/* This share has moved so many pieces. How many are through of the message, from the
 * first on? */
uint64_t cut_tell(const struct p2p *p2p, uint64_t pieces);

/* This share is over: OK, but for share 0 only when all are, until then ERR_AGAIN. */
enum err cut_join(struct p2p *p2p);

/* .. and it looks how far they are, or sleeps meanwhile. */
void cut_look(struct p2p *p2p);
void cut_sleep(const struct p2p *p2p, uint32_t timeout_us);

/* One of the others is blocked. Is none, but by this rank's own buffer? */
void cut_block(const struct p2p *p2p);
bool cut_awaits_tide(const struct p2p *p2p);

/* Shares of these jobs beyond the first of each. */
uint32_t cut_count(const struct host_job *const *jobs, uint32_t count);

/* host_run() where there are such; `run` runs what is the calling thread's. */
typedef enum err cut_runner(const struct host_job *const *jobs, uint32_t count);
enum err cut_run(const struct host_job *const *jobs, uint32_t count, cut_runner *run);

#endif
