/*
 * net_choice.h - which network is assumed between machines, and what that changes of what
 * NCCL sees of one: --net of `weft topo`, `weft graph` and `weft tune`.
 *
 *	ofi	with the libfabric plugin of AWS: its topology file, EFA devices in
 *		groups, the variables it sets; assumed for instance types of AWS
 *	plain	without a plugin: every EFA device by itself
 *	socket	TCP over the first interface
 */
#ifndef TOOLS_WEFT_NET_CHOICE_H
#define TOOLS_WEFT_NET_CHOICE_H

#include <stdbool.h>

#include "topo/rules.h"
#include "topo/xml.h"

enum net_choice { NET_CHOICE_AUTO, NET_CHOICE_OFI, NET_CHOICE_PLAIN, NET_CHOICE_SOCKET };

/* False: there is no such network. */
bool net_choice_parse(const char *text, enum net_choice *choice);

struct net_assumed {
	enum net_choice choice; /* as asked for */
	const char *type;	/* borrowed, or `here`: the instance; NULL: not AWS's */
	char here[64];		/* this machine's type, where it is this one; "" if not */
	const struct platform *platform; /* what the plugin knows; NULL: it is not used */
	char single[64]; /* the same machine with every EFA device by itself; "": none */
};

/* For these machines; none, or "this", is the one we run on. ERR_USAGE when the plugin is
 * asked for and they are not of AWS. `net` is not to be copied. */
enum err net_assume(
	enum net_choice choice, int count, char *const *names, struct net_assumed *net);

/* The description to take for a machine of that name: also of this one, where the plugin
 * has a file for its type. */
const char *net_assumed_machine(const struct net_assumed *net, const char *name);

/* What a tree and rules become. */
enum err net_assumed_tree(const struct net_assumed *net, struct xml_node *tree);
void net_assumed_rules(const struct net_assumed *net, struct topo_rules *rules);

/* Does the plugin have LL and LL128 switched off there? Not where the user has said which
 * protocols there are. */
bool net_forces_simple(const char *type);

/* What was assumed, in a sentence without a full stop; "" where nothing was. */
enum { NET_ASSUMED_TEXT = 320 };
void net_assumed_text(const struct net_assumed *net, char text[NET_ASSUMED_TEXT]);

/* For programs: "ofi", "plain" or "socket". */
const char *net_assumed_name(const struct net_assumed *net);

#endif
