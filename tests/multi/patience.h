/*
 * patience.h - deadlines that follow the machine's load.
 *
 * A test gives up on what takes far too long. How long that is depends on who else wants
 * the cores: beside eight busy programs on two cores everything takes five times as long
 * and nothing is wrong. So deadlines are set and compared on a clock that runs the slower
 * the more wait for a core. On a quiet machine it is the ordinary clock; ranks that hang
 * asleep do not slow it down.
 */
#ifndef MULTI_PATIENCE_H
#define MULTI_PATIENCE_H

#include <stdint.h>
#include <sys/types.h>

/* Who wants to run, by what /proc/loadavg says (its text), per core: at least 1. */
double crowding_of(const char *loadavg, int cores);

/* The same of this machine now; looked at ten times a second. */
double crowding(void);

/* Microseconds of this thread's patient clock. Its deadlines are its own: what one thread
 * reads is not compared with what another does. */
uint64_t patient_us(void);

/* Waits until a process that stops itself, or was told to, stands still: a SIGCONT that
 * comes before its SIGSTOP is lost. Gives up after a minute of patience. */
void stop_wait(pid_t pid);

#endif
