/*
 * tune_net.h - what a network plugin changes of NCCL's choices. On instances of AWS the
 * libfabric plugin is assumed: it forces a protocol on some, and brings a tuner on
 * others.
 */
#ifndef TOOLS_WEFT_TUNE_NET_H
#define TOOLS_WEFT_TUNE_NET_H

#include "tune/regions.h"
#include "weft/tune_args.h"

struct tune_net {
	const char *type;	     /* borrowed: the instance; NULL: no plugin */
	bool forces_simple;	     /* it has LL and LL128 switched off */
	bool is_socket;		     /* TCP was asked for */
	enum region_machine machine; /* whose tables its tuner has */
};

/* What --net says, and the machine's name where it says nothing. */
struct tune_net tune_net_find(const struct tune_args *args);

/* The plugin sets variables that the user has not. */
enum err tune_net_apply(const struct tune_net *net, struct model_rules *rules);

/* As model_choose(), after the tuner has had its say. */
enum err tune_net_choose(const struct tune_net *net, const struct model *model,
	const struct model_call *call, struct model_choice *choice);

/* A sentence about it; "" where there is no plugin. */
enum { TUNE_NET_TEXT = 256 };
void tune_net_text(const struct tune_net *net, const struct cluster *cluster,
	char text[TUNE_NET_TEXT]);

#endif
