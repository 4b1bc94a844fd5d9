/*
 * table.h - what came of many runs, as people read it.
 */
#ifndef CAMPAIGN_TABLE_H
#define CAMPAIGN_TABLE_H

#include "run.h"

/* Runs by kind of fault and verdict, the figures, and every bad one. The number of those
 * is returned. */
int table_print(const struct run_result *results, int count);

#endif
