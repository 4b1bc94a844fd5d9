#include "weft/net_choice.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/param.h"
#include "ofi/platform.h"
#include "ofi/setting.h"
#include "topo/instance.h"

static const char *const names[] = {[NET_CHOICE_AUTO] = "",
	[NET_CHOICE_OFI] = "ofi",
	[NET_CHOICE_PLAIN] = "plain",
	[NET_CHOICE_SOCKET] = "socket"};

static const char this_machine[] = "this";

bool net_choice_parse(const char *text, enum net_choice *choice)
{
	for (int i = NET_CHOICE_OFI; i <= NET_CHOICE_SOCKET; i++)
		if (!strcasecmp(text, names[i])) {
			*choice = (enum net_choice)i;
			return true;
		}
	return false;
}

/* An instance type of AWS that the plugin knows, and no file of that name. */
static const struct platform *platform_named(const char *name)
{
	return access(name, F_OK) ? platform_of(name) : NULL;
}

/* "p5.48xlarge-32efa" for "p5.48xlarge"; "" where there is none. */
static void single_find(const char *name, char *single, size_t room)
{
	static const char *const tails[] = {"-32efa", "-16efa"};

	single[0] = '\0';
	for (int i = 0; i < 2; i++) {
		int length = snprintf(single, room, "%s%s", name, tails[i]);

		if (length > 0 && (size_t)length < room && instance_find(single))
			return;
		single[0] = '\0';
	}
}

/* As the plugin finds it, with the settings it has for that. */
static void here_find(char type[PLATFORM_TYPE_BYTES])
{
	type[0] = '\0';
	if (!settings_read())
		platform_type(type);
}

enum err net_assume(
	enum net_choice choice, int count, char *const *machines, struct net_assumed *net)
{
	bool is_here = !count || !strcasecmp(machines[0], this_machine), is_aws;

	*net = (struct net_assumed){.choice = choice};
	if (is_here)
		here_find(net->here);
	is_aws = !is_here || platform_of(net->here);
	for (int i = is_here; i < count; i++)
		is_aws = is_aws && platform_named(machines[i]);
	if (is_aws)
		net->type = is_here ? net->here : machines[0];
	if (choice == NET_CHOICE_OFI && !is_aws)
		return err_set(ERR_USAGE,
			"--net ofi: what the plugin does is known for one instance type "
			"of AWS, such as p4d.24xlarge");
	if (!is_aws)
		return OK;
	if (!net->here[0])
		single_find(net->type, net->single, sizeof(net->single));
	if (choice == NET_CHOICE_AUTO || choice == NET_CHOICE_OFI)
		net->platform = platform_of(net->type);
	return OK;
}

const char *net_assumed_machine(const struct net_assumed *net, const char *name)
{
	if (!strcasecmp(name, this_machine))
		return net->here[0] && net->platform && net->platform->topology &&
				       !param_text(PARAM_TOPO_FILE) &&
				       instance_find(net->here)
			       ? net->here
			       : name;
	/* of several kinds only the first is known to have one */
	return net->choice == NET_CHOICE_PLAIN && net->single[0] &&
			       !strcasecmp(name, net->type)
		       ? net->single
		       : name;
}

/* Of a network device: what NCCL's own module for sockets says. */
static enum err net_to_socket(struct xml_node *net)
{
	static const char *const facts[][2] = {{"name", "eth0"}, {"dev", "0"},
		{"latency", "0"}, {"speed", "10000"}, {"port", "0"}, {"guid", "0x0"},
		{"maxconn", "65536"}, {"gdr", "0"}};
	enum err e = OK;

	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]) && !e; i++)
		e = xml_attr_set(net, facts[i][0], facts[i][1]);
	xml_attr_remove(net, "coll");
	return e;
}

enum err net_assumed_tree(const struct net_assumed *net, struct xml_node *tree)
{
	struct xml_node *first = xml_find(tree, "net", NULL), *next;
	enum err e;

	if (net->choice != NET_CHOICE_SOCKET || !first)
		return OK;
	e = net_to_socket(first);
	/* the device goes; the PCI function that it was on stays */
	while (!e && (next = xml_find(tree, "net", first)))
		xml_free(next);
	return e;
}

/* Does the plugin set this, and the user not? */
static const char *variable_set(const struct net_assumed *net, enum param id)
{
	const char *name = param_info(id)->name;
	size_t length = strlen(name);

	if (!net->platform || param_text(id))
		return NULL;
	for (int i = 0; i < PLATFORM_VARIABLES_MAX && net->platform->variables[i]; i++) {
		const char *entry = net->platform->variables[i];

		if (!strncmp(entry, name, length) && entry[length] == '=')
			return entry;
	}
	return NULL;
}

void net_assumed_rules(const struct net_assumed *net, struct topo_rules *rules)
{
	const char *entry = variable_set(net, PARAM_NETDEVS_POLICY);
	int most;

	if (entry && sscanf(strchr(entry, '='), "=max:%d", &most) == 1) {
		rules->netdevs = NETDEVS_MAX;
		rules->netdevs_max = most;
	}
}

/* The order of bytes is not kept there, which LL and LL128 rely on. */
bool net_forces_simple(const char *type)
{
	return !strncmp(type, "p4d", 3) && !param_text(PARAM_PROTO);
}

static void plain_text(const struct net_assumed *net, char text[NET_ASSUMED_TEXT])
{
	const struct platform *platform = platform_of(net->type);

	if (net->single[0])
		snprintf(text, NET_ASSUMED_TEXT,
			"without the libfabric plugin of AWS: every EFA device by "
			"itself");
	else
		snprintf(text, NET_ASSUMED_TEXT,
			"without the libfabric plugin of AWS%s%s%s",
			platform->topology ? "; the PCI tree is that of its file " : "",
			platform->topology ? platform->topology : "",
			platform->topology ? " all the same" : "");
}

static void ofi_text(const struct net_assumed *net, char text[NET_ASSUMED_TEXT])
{
	const char *file = param_text(PARAM_TOPO_FILE) ? NULL : net->platform->topology;
	const char *policy = variable_set(net, PARAM_NETDEVS_POLICY);
	const char *const parts[][2] = {
		{"allows Simple alone", net_forces_simple(net->type) ? "" : NULL},
		{"sets NCCL_TOPO_FILE to its ", file},
		{"shows the EFA devices of a GPU as one", net->single[0] ? "" : NULL},
		{"sets ", policy},
	};
	int used = snprintf(text, NET_ASSUMED_TEXT, "with the libfabric plugin of AWS");
	const char *joint = ", which";

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (!parts[i][1] || used >= NET_ASSUMED_TEXT)
			continue;
		used += snprintf(text + used, (size_t)(NET_ASSUMED_TEXT - used),
			"%s %s%s", joint, parts[i][0], parts[i][1]);
		joint = ", and";
	}
	if (used < NET_ASSUMED_TEXT)
		snprintf(text + used, (size_t)(NET_ASSUMED_TEXT - used),
			"; --net plain: without");
}

void net_assumed_text(const struct net_assumed *net, char text[NET_ASSUMED_TEXT])
{
	text[0] = '\0';
	if (net->choice == NET_CHOICE_SOCKET)
		snprintf(text, NET_ASSUMED_TEXT,
			"over sockets of the first interface, for which NCCL takes 10 "
			"Gb/s where it does not tell its speed");
	else if (net->platform)
		ofi_text(net, text);
	else if (net->type)
		plain_text(net, text);
}

const char *net_assumed_name(const struct net_assumed *net)
{
	if (net->choice == NET_CHOICE_SOCKET)
		return names[NET_CHOICE_SOCKET];
	return names[net->platform ? NET_CHOICE_OFI : NET_CHOICE_PLAIN];
}
