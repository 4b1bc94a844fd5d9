/*
 * seal.h - a stream socket whose bytes nobody else can read, change, leave out or repeat.
 *
 * Both ends know a key. Each connection has keys of its own: both ends make a fresh pair
 * (X25519), prove by a tag under the shared key whose pair it is, and mix what the pairs
 * give with the shared key. So nobody without the key gets a word in, and who learns it
 * later cannot read what was said before. Then bytes travel in frames (XChaCha20 and
 * Poly1305, libsodium's secretstream), each bound to the ones before it.
 *
 *      client                                         server
 *        | hello    magic, public key, tag ------------> |  the client has the key
 *        | <------- answer   magic, public key, header,  |
 *        |                   tag                         |  the server has it, just now
 *        | header, frames: length, sealed bytes -------> |  and so has the client
 *        | <---------------------------- frames          |
 *
 * An end that cannot go on, because the other has no key or another one, says so with a
 * notice in the answer's place. It is not proved and only makes the sentence better.
 *
 * The functions are those of a socket that does not block; the socket is the caller's.
 */
#ifndef NET_SEAL_H
#define NET_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "net/auth.h"

struct seal;

enum seal_role { SEAL_CLIENT, SEAL_SERVER };

/* Why a connection came to nothing. */
enum seal_fault {
	SEAL_WELL,
	SEAL_PLAIN,	   /* the other end speaks no such thing: it has no key */
	SEAL_OTHER_KEY,	   /* it has another key */
	SEAL_NO_KEY_THERE, /* it says that it has no key */
	SEAL_KEY_DIFFERS,  /* it says that its key is another */
	SEAL_FORGED,	   /* bytes were changed, repeated or left out on the way */
};

/* One end of a connected socket that does not block; NULL after err_set(). */
struct seal *seal_create(
	int fd, enum seal_role role, const unsigned char key[AUTH_KEY_BYTES]);

/* Wipes the keys; does not close the socket. NULL is fine. */
void seal_destroy(struct seal *seal);

/* As send() and recv(): -1 with EAGAIN when it would block, also because the two ends do
 * not know each other yet; with EPROTO when the other end is not what it should be
 * (seal_fault() says how); with ECONNRESET when it went without an end. What
 * seal_send() has taken may still have to be flushed. seal_recv() gives 0 after the other
 * end's seal_end(). */
ssize_t seal_send(struct seal *seal, const void *from, size_t bytes);
ssize_t seal_recv(struct seal *seal, void *to, size_t bytes);

/* Write on what was taken; 0 when all of it is written, else -1 as send(). */
int seal_flush(struct seal *seal);
bool seal_has_output(const struct seal *seal);

/* Nothing more will be sent: so that the other end knows it from a connection that was
 * cut. Flush it. */
int seal_end(struct seal *seal);

/* What to poll() for, to do `events`. */
short seal_events(const struct seal *seal, short events);

/* Bytes have come that seal_recv() has not given out: poll() does not know of them. */
bool seal_has_input(const struct seal *seal);

enum seal_fault seal_fault(const struct seal *seal);

/* In words, as the end of a sentence. */
const char *seal_fault_text(enum seal_fault fault);

/* ---- for those who have no key ---- */

enum { SEAL_MAGIC_BYTES = 8, SEAL_NOTICE_BYTES = 96 };

/* Are these the first bytes of a client that has one? Then it can be told. */
bool seal_is_hello(const void *bytes);
void seal_turn_away(int fd);

/* Are these the first bytes of a server that has one, and wants it? */
bool seal_is_notice(const void *bytes);

#endif
