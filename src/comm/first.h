/*
 * first.h - device memory comes to a communicator whose ranks had shown no GPU.
 */
#ifndef COMM_FIRST_H
#define COMM_FIRST_H

#include "comm/comm.h"

/* For a group's calls: the GPUs of communicators that are on none yet meet, several side
 * by side, because one thread may call for all of them. A collective can do that, all
 * ranks make it; ERR_USAGE for anything else. */
enum err first_meet(const struct comm_call *calls, uint32_t count);

#endif
