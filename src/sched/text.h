/*
 * text.h - schedules and programs as text: what tools, tests and hang reports print.
 *
 *   ring all_reduce, rank 3 of 8, chunks 8, lane 0, rx 2, tx 4
 *    0  in[2] -> send
 *    1  in[1] + recv -> send  x6 chunk-1
 *    2  in[3] + recv -> out[3], send  post
 *    3  recv -> out[2], send  x6 chunk-1
 *    4  recv -> out[4]
 *
 * One head and its instructions per lane, ranks and lanes in order. Operands stand in
 * fold order. recvs and sends are fans of as many connections as x says; recv#2 begins
 * at the lane's connection 2. Further words: count N (chunks), peer+N (connection step),
 * push, after L.N (lane L has retired N). A head may have root N and tmp N.
 * text_read.h reads it back, exactly.
 */
#ifndef SCHED_TEXT_H
#define SCHED_TEXT_H

#include <stdio.h>

#include "sched/lower.h"

/* All lanes of one rank's schedule under the name of its kind (one word). */
void text_print_sched(FILE *file, const char *name, const struct sched *sched);

/* One instruction, without its number and without a newline. */
void text_print_insn(FILE *file, const struct insn *insn);

/* All moves of one rank, a line each:
 *   wait rank 2 at 5; in[3] + in[3] of rank 2 -> out[3], out[3] of rank 4; publish 6 */
void text_print_program(FILE *file, const struct program *program);

#endif
