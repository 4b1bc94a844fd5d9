/*
 * fabric_names.h - slips in the variables of libfabric, FI_*, which libfabric passes over
 * in silence.
 */
#ifndef PLUGINS_OFI_FABRIC_NAMES_H
#define PLUGINS_OFI_FABRIC_NAMES_H

/* Say which variables are like one that the providers here know, or efa's, and are none.
 * After fi_getinfo(), which loads the providers. */
void fabric_names_check(void);

/* The provider that was probably meant; NULL: none is like it. */
const char *fabric_provider_near(const char *name);

#endif
