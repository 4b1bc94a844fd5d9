/*
 * p2p_far.h - a send or receive whose other end is on another host.
 *
 * A head goes first, with the length and how the message is cut: the sender says so, for
 * its pieces come one after the other, and any receiver takes it as it is cut. Each
 * share of a message (cut.h) has the head, and then the pieces that are its own.
 */
#ifndef EXEC_HOST_P2P_FAR_H
#define EXEC_HOST_P2P_FAR_H

#include "exec/host/p2p.h"

/* As p2p_step(). */
enum err far_step(struct p2p *p2p);

/* A send that waits for its next piece, and for nobody else. */
bool far_awaits_tide(const struct p2p *p2p);

/* Is there a connection that what a rank sent before it left may still come by? */
bool far_is_heard(const struct p2p *p2p);

/* So many bytes, from the first on, are in pieces of which each share has moved so many.
 */
size_t far_bytes_of(const struct p2p *p2p, uint64_t pieces);

/* Sleep until there is news. */
void far_sleep(const struct p2p *p2p, uint32_t timeout_us);

#endif
