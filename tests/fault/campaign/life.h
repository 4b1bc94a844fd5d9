/*
 * life.h - what one rank of a job does, from its id to its last buffer.
 */
#ifndef CAMPAIGN_LIFE_H
#define CAMPAIGN_LIFE_H

#include "page.h"

/* Everything that came of it is in the rank's seat. */
void life_run(const struct job *job, struct page *page, int rank);

#endif
