/*
 * severity.h - how bad a finding is, for whoever finds something: logs, hosts, manifests.
 */
#ifndef TOOLS_WEFT_SEVERITY_H
#define TOOLS_WEFT_SEVERITY_H

/* From the least to the worst. */
enum severity { SEVERITY_NOTE, SEVERITY_PERFORMANCE, SEVERITY_FATAL };
enum { SEVERITY_COUNT = SEVERITY_FATAL + 1 };

const char *severity_name(enum severity severity);

#endif
