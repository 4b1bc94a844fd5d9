/*
 * plugin_log.h - the logger that NCCL hands to its plugins, ours.
 */
#ifndef BASE_PLUGIN_LOG_H
#define BASE_PLUGIN_LOG_H

/* Levels and subsystem bits are those of log.h, which are NCCL's. */
typedef void plugin_log(int level, unsigned long subsystems, const char *file, int line,
	const char *format, ...) __attribute__((format(printf, 5, 6)));

/* What a plugin says, as lines of this library's log; file and line are not printed. */
plugin_log plugin_says;

#endif
