/* A shared object that is no tuner plugin. */
#include "tuner.h"

EXPORT const int something_else = 1;
