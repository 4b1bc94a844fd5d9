/*
 * auth.h - proving that a peer knows the secret of an id, and that nobody changed its
 * words.
 *
 * Both sides put a fresh nonce in; each proves itself by a keyed hash (BLAKE2b) over
 * both, under its own label, so that neither side's proof can be replayed or reflected.
 * What follows is tagged under a key of this connection alone.
 */
#ifndef NET_AUTH_H
#define NET_AUTH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum { AUTH_KEY_BYTES = 32, AUTH_NONCE_BYTES = 32, AUTH_TAG_BYTES = 32 };

/* Both nonces of a connection, the rank's first. */
struct auth_nonces {
	unsigned char rank[AUTH_NONCE_BYTES];
	unsigned char root[AUTH_NONCE_BYTES];
};

/* Make the crypto library ready; cheap and harmless to call again. */
enum err auth_init(void);

/* Unpredictable bytes. */
void auth_random(void *bytes, size_t count);

/* A hash of `count` bytes without a key; `out` has AUTH_TAG_BYTES. */
void auth_digest(const void *bytes, size_t count, unsigned char *out);

/* The tag of `count` bytes under `key`; `label` says what the bytes are. */
void auth_tag(const unsigned char *key, const char *label, const void *bytes,
	size_t count, unsigned char *out);

/* Does `tag` belong to these bytes? Takes the same time whatever the answer. */
bool auth_check(const unsigned char *key, const char *label, const void *bytes,
	size_t count, const unsigned char *tag);

/* The key of one connection. */
void auth_session(const unsigned char *secret, const struct auth_nonces *nonces,
	unsigned char *key);

/* Wipe a key in a way the compiler keeps. */
void auth_wipe(void *bytes, size_t count);

#endif
