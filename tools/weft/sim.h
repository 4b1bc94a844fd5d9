/*
 * sim.h - the parts of `weft sim`: what it is asked, and one function for each kind of
 * answer. All return an exit status, after a sentence on standard error when it is not 0.
 */
#ifndef TOOLS_WEFT_SIM_H
#define TOOLS_WEFT_SIM_H

#include "sim/cases.h"

/* Print "weft sim: .." with the library's sentence; the exit status that fits. */
int sim_failed(enum err e);

/* sim_cases.c: --cases FILE */
int sim_cases_print(const char *path);

/* sim_accuracy.c: --accuracy FILE.., --calibrate FILE.. */
int sim_accuracy(int count, char **paths);
int sim_fitted(int count, char **paths);
int sim_calibrate(int count, char **paths);

#endif
