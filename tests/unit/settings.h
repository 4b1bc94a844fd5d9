/*
 * settings.h - the environment as a test wants it, read anew by the library.
 */
#ifndef UNIT_SETTINGS_H
#define UNIT_SETTINGS_H

#include <stdlib.h>

#include "base/param.h"
#include "test.h"

/* NULL: not set. */
static inline void set(enum param id, const char *value)
{
	const char *name = param_info(id)->name;

	EQ(value ? setenv(name, value, 1) : unsetenv(name), 0);
	param_forget(id);
}

#endif
