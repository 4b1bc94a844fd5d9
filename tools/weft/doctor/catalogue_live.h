/*
 * catalogue_live.h - the entries of the catalogue that only looking at a host can find.
 */
#ifndef TOOLS_WEFT_DOCTOR_CATALOGUE_LIVE_H
#define TOOLS_WEFT_DOCTOR_CATALOGUE_LIVE_H

#include "weft/doctor/catalogue.h"

/* Of an id from FIND_LIVE_GPU on. */
const struct finding_info *catalogue_live(enum finding_id id);

#endif
