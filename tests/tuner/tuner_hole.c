/* Has no function to ask. */
#include "tuner.h"

EXPORT const struct {
	const char *name;
	void *init, *get, *destroy;
} ncclTunerPlugin_v4 = {"with a hole", NULL, NULL, NULL};
