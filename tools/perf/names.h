/*
 * names.h - what types and operators are called, in tables and on the command line.
 */
#ifndef TOOLS_PERF_NAMES_H
#define TOOLS_PERF_NAMES_H

#include "perf/data.h"

/* nccl-tests' names. */
const char *element_name(enum element type);
const char *data_op_name(enum data_op op);

/* What has that name; ELEMENT_COUNT and DATA_OP_COUNT for none. A type may be called by
 * its older fp8 spelling. */
enum element element_find(const char *name);
enum data_op data_op_find(const char *name);

#endif
