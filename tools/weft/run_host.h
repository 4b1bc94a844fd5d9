/*
 * run_host.h - `weft run --serve`: starts this host's ranks and watches over them, as the
 * other end of standard input and output says (run_wire.h).
 */
#ifndef TOOLS_WEFT_RUN_HOST_H
#define TOOLS_WEFT_RUN_HOST_H

/* Until all ranks have ended and nothing that they started is left. The exit status. */
int run_host_serve(void);

#endif
