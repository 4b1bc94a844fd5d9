/*
 * mps.h - do the kernels of several processes run on the GPU together?
 *
 * Without an MPS server a GPU runs one process at a time, so kernels that wait for those
 * of another process stall until they are switched out.
 */
#ifndef EXEC_CUDA_DRIVER_MPS_H
#define EXEC_CUDA_DRIVER_MPS_H

#include <stdbool.h>

#include "exec/cuda/driver/driver.h"

/*
 * Is this process a client of an MPS server on that device?
 *
 * Newer drivers say so. An older one does not, and then the control daemon's socket is
 * looked for, in CUDA_MPS_PIPE_DIRECTORY. That is wrong in three cases: a socket that a
 * killed daemon left behind, a socket that only other users may connect to, and a
 * variable set after CUDA began. And two clients may belong to two servers, in containers
 * or on MIG instances: whoever relies on this compares the device's uuid and asks every
 * rank.
 */
bool mps_is_client(const struct cuda_driver *driver, cu_device device);

#endif
