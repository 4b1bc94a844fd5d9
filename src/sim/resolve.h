/*
 * resolve.h - a site from the words people use: "Nebius H100", "InfiniBand (k8s)".
 *
 * Two tables of words, in the tree: what names a machine, and what names or changes a
 * network. The first word of a table that the text contains decides.
 */
#ifndef SIM_RESOLVE_H
#define SIM_RESOLVE_H

#include "sim/site.h"

struct sim_words {
	const char *platform, *net, *version; /* free text; version may be "" */
	uint32_t nodes, gpus;		      /* gpus of all nodes together */
};

/* ERR_USAGE when no word of the platform is known, or the GPUs do not divide. */
enum err sim_resolve(const struct sim_words *words, struct sim_site *site);

/* The machine that one word names: as topo/instance.h does, the family of an instance
 * type ("p5"), or a word of the first table ("a3-mega", "gb200-nvl72"). A rack's name
 * sets its NVLink domain, and `nodes` to its trays where that is 0. What the site already
 * has of algorithms stays. ERR_USAGE with the nearest name. */
enum err sim_site_named(struct sim_site *site, const char *name);

/* "dgx-h100 x2, 8 GPUs each, ib 8x50 GB/s": what it was taken for. */
enum { SIM_TAKEN_BYTES = 160 };
void sim_site_text(const struct sim_site *site, char text[SIM_TAKEN_BYTES]);

#endif
