/*
 * log.h - NCCL_DEBUG logging, in NCCL's line format.
 *
 * A line is `host:pid:tid [dev] NCCL INFO text`, with a timestamp in front where
 * NCCL_DEBUG_TIMESTAMP_LEVELS asks for one. Levels and subsystems are NCCL's. The level
 * test is one load, so a disabled line costs nothing worth counting. Lines go out whole,
 * in one write(), from any thread. The settings are read at the first line.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>

/* Not in the order of severity: ATTN, for what is worth attention and harms nobody, comes
 * after WARN and was added last. */
enum log_level {
	LOG_NONE,
	LOG_VERSION,
	LOG_WARN,
	LOG_INFO,
	LOG_ABORT,
	LOG_TRACE,
	LOG_ATTN
};

enum log_subsystem {
	LOG_INIT = 1 << 0,
	LOG_COLL = 1 << 1,
	LOG_P2P = 1 << 2,
	LOG_SHM = 1 << 3,
	LOG_NET = 1 << 4,
	LOG_GRAPH = 1 << 5,
	LOG_TUNING = 1 << 6,
	LOG_ENV = 1 << 7,
	LOG_ALLOC = 1 << 8,
	LOG_CALL = 1 << 9,
	LOG_PROXY = 1 << 10,
	LOG_NVLS = 1 << 11,
	LOG_BOOTSTRAP = 1 << 12,
	LOG_REG = 1 << 13,
	LOG_PROFILE = 1 << 14,
	LOG_RAS = 1 << 15,
	LOG_DESTROY = 1 << 16,
	LOG_ALLOC_HOST = 1 << 17,
	LOG_ALL = (1 << 18) - 1
};

/* Would a line of this level and subsystem be printed? */
bool log_is_on(enum log_level level, unsigned subsystem);

/* Print one line if it is on. No newline in the text. */
void log_info(unsigned subsystem, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_attn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The `[dev]` of this thread's lines from now on; negative for none, as at first. */
void log_set_device(int device);

/* Forget the settings: the next line reads NCCL_DEBUG and its family anew
 * (ncclResetDebugInitInternal). */
void log_reset(void);

/* Print `NCCL version ...` once per process when the level asks for it. */
void log_banner(const char *version);

#endif
