/*
 * Read before every source by check-tidy: err_set() returns the code it is given, which
 * the analyser cannot see and without which it believes that failures go on as successes.
 */
#ifndef TIDY_MODEL_H
#define TIDY_MODEL_H
#include "base/err.h"
#define err_set(code, ...) ((void)(err_set)((code), __VA_ARGS__), (code))
#endif
