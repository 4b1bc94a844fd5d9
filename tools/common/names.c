#include "common/names.h"

#include <ctype.h>
#include <string.h>

bool names_match(const char *typed, const char *name)
{
	for (;;) {
		typed += strspn(typed, "_");
		name += strspn(name, "_");
		if (tolower((unsigned char)*typed) != tolower((unsigned char)*name))
			return false;
		if (!*typed)
			return true;
		typed++;
		name++;
	}
}
