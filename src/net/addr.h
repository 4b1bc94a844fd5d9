/*
 * addr.h - where somebody listens: an abstract Unix name, or an address and port.
 *
 * Sockets made here do not block, close on exec, and listen on a wildcard address only
 * where the user asks for it (WEFT_LISTEN_ANY).
 */
#ifndef NET_ADDR_H
#define NET_ADDR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum addr_family { ADDR_UNIX = 1, ADDR_IPV4 = 2, ADDR_IPV6 = 3 };
enum { ADDR_TEXT_BYTES = 64 };

/* As it stands inside an id: no padding, ports in network order. */
struct addr {
	uint8_t family; /* enum addr_family */
	uint8_t zero;
	uint16_t port;
	unsigned char bytes[16]; /* random name, or the address; unused ones are 0 */
	uint32_t scope;		 /* of a link-local IPv6 address */
};

/* A fresh Unix name nobody can guess. */
void addr_random(struct addr *addr);

/* Read `1.2.3.4:5`, `[::1]:5` or `host:5`. Of a host's addresses that NCCL_SOCKET_FAMILY
 * allows, the first that is not loopback is taken. Fails with ERR_ARGUMENT on anything
 * else, on a wildcard or multicast address and on port 0. */
enum err addr_parse(const char *text, struct addr *addr);

/* 127.0.0.0/8 or ::1. */
bool addr_is_loopback(const struct addr *addr);

/* NCCL_SOCKET_FAMILY: the family it allows, or 0: both. */
int addr_family_wanted(void);

struct sockaddr;

/* Of an address as the system has it; false when it is no internet address. */
bool addr_from_system(const struct sockaddr *from, struct addr *addr);

/* The address as people write it, for messages. */
void addr_print(const struct addr *addr, char text[ADDR_TEXT_BYTES]);

/* The same as NCCL's logs have it: interface:address<port>. */
enum { ADDR_LOG_BYTES = 96 };
void addr_print_log(const struct addr *addr, char text[ADDR_LOG_BYTES]);

/* A listening socket at exactly this address. A port of 0 is any that is free, among
 * those of WEFT_PORT_RANGE if set. `bound`, if not NULL, is the address with the port it
 * has. ERR_AGAIN, without a sentence: somebody listens there now. */
enum err addr_listen(const struct addr *addr, int *fd, struct addr *bound);

/* Accept one connection, if there is one. 0, or the errno: EAGAIN means nobody is there,
 * EMFILE and the like that somebody is. */
int addr_accept(int listener, int *fd);

/* Begin to connect. 0, or the errno: EINPROGRESS means wait until writable and ask
 * addr_connected(); EAGAIN (the queue is full) and ECONNREFUSED mean close and retry.
 * `fd` is -1 when no socket could be made. */
int addr_connect(const struct addr *addr, int *fd);

/* How a connect that was in progress ended: 0 or the errno. */
int addr_connected(int fd);

#endif
