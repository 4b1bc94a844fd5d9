/*
 * print.h - a topology as the lines NCCL logs under NCCL_DEBUG_SUBSYS=GRAPH.
 *
 *   === System : maxBw 240.0 totalBw 240.0 ===
 *   CPU/0-0 (1/1/2)
 *   + PCI[24.0] - DEV/0-17000
 *                 + LOC[5000.0] - GPU/0-17000
 *   ==========================================
 *   GPU/0-17000 :GPU/0-17000 (0/5000.0/LOC) CPU/0-0 (2/24.0/PHB)
 *
 * Scripts read these, so the format is NCCL's to the blank at the end of the path lines.
 */
#ifndef TOPO_PRINT_H
#define TOPO_PRINT_H

#include "topo/topo.h"

/* Gets one line at a time, without the newline. */
typedef void topo_line_fn(void *context, const char *line);

/* The whole block; topo_bandwidths() and topo_paths() come before it. */
void topo_print(const struct topo *topo, topo_line_fn *line, void *context);

#endif
