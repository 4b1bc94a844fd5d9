/*
 * psk.h - the key that all processes of a job share, if the program has set one
 * (ncclSetEncryption). One for the process; any thread may ask.
 */
#ifndef NET_PSK_H
#define NET_PSK_H

#include <stdbool.h>

#include "net/auth.h"

enum { PSK_BYTES_LEAST = 32 };

/* Take the key from this text, of at least so many bytes; NULL: there is none any more.
 */
enum err psk_set(const char *text);

/* What is derived from the text; false when there is none. Wipe it after use. */
bool psk_get(unsigned char key[AUTH_KEY_BYTES]);

#endif
