/*
 * machine_files.h - the topology files of data/machines, built into the library.
 *
 * The C file behind this is made by cmake/machines.cmake.
 */
#ifndef TOPO_MACHINE_FILES_H
#define TOPO_MACHINE_FILES_H

#include <stddef.h>

struct machine_file {
	const char *name; /* without folder and ending; NULL ends the list */
	const char *text; /* ends with a 0 that `bytes` does not count */
	size_t bytes;
};

extern const struct machine_file machine_files[];

#endif
