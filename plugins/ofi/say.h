/*
 * say.h - what the plugin says: lines of the log of whoever loaded it, `NET/OFI ..`.
 */
#ifndef PLUGINS_OFI_SAY_H
#define PLUGINS_OFI_SAY_H

#include "net/plugin_abi.h"

/* The results of NCCL that the plugin gives. */
enum ofi_result {
	OFI_OK = 0,
	OFI_SYSTEM = 2,	  /* libfabric or the operating system refused */
	OFI_INTERNAL = 3, /* a bug, here or in who calls */
	OFI_ARGUMENT = 4,
	OFI_USAGE = 5,	/* legal, but not now or not together */
	OFI_REMOTE = 6, /* the other end */
	OFI_AGAIN = 100 /* internal only: nothing to do now */
};

void say_open(plugin_log *log);

/* For who looks at a start: NCCL_DEBUG=INFO. */
void say_info(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A sentence with the cause and what to do; returns `result`. */
int say_wrong(int result, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What to do where there is no memory to register, into `text`; returns it. "" where the
 * error is another. */
enum { SAY_REMEDY_BYTES = 160 };
const char *say_memlock(int error, char text[SAY_REMEDY_BYTES]);

#endif
