/* Network plugins of every version: found, asked the right way, and what is said of those
 * that fail, hang or lie. */
#include "net/plugin.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/param.h"
#include "child.h"
#include "link/region.h"
#include "log_text.h"
#include "net/plugin_abi.h"
#include "net_pair.h"

enum { PATH_BYTES = 512 };

static char log_path[] = "/tmp/weft-net-plugin-XXXXXX";

static void set(enum param id, const char *value)
{
	const char *name = param_info(id)->name;

	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
	param_forget(id);
}

static void set_version(int version)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "%s/libnccl-net-test%d.so", WEFT_PLUGIN_FOLDER,
		version);
	set(PARAM_NET_PLUGIN, path);
}

static struct net_plugin *open_for(const char *network, uint32_t local)
{
	struct net_plugin_args args = {.comm = 42, .local = local, .network = network};
	struct net_plugin *plugin = NULL;

	EQ(net_plugin_open(&args, &plugin), OK);
	return plugin;
}

static void test_device(const struct net_plugin *plugin)
{
	const struct plugin_device *device = net_plugin_device(plugin);
	int version = net_plugin_version(plugin);
	struct plugin_device other;

	EQ(net_plugin_device_count(plugin), 2);
	EQ_STR(device->name, "test1"); /* the second rank of the host */
	EQ_STR(device->pci_path, "");
	EQ(device->guid, 101);
	EQ(device->memory, PLUGIN_HOST);
	EQ(device->speed_mbps, 25000);
	EQ(device->port, 1);
	EQ(device->latency_us * 10, 125);
	EQ(device->comms_max, 1000);
	EQ(device->recvs_max, 1);
	EQ(device->is_reg_global, version >= 8);
	EQ(device->must_flush, version >= 9);
	EQ(device->part_count, 1);
	EQ(device->message_bytes_max, 1 << 30);
	EQ(device->rail, version >= 12 ? 3 : -1);
	EQ(device->plane, version >= 12 ? 4 : -1);
	EQ(net_plugin_look(plugin, 0, &other), OK);
	EQ_STR(other.name, "test0");
	EQ(net_plugin_look(plugin, 2, &other), ERR_SYSTEM);
}

/* Another device, and one that is not there. */
static void test_use(struct net_plugin *plugin)
{
	EQ(net_plugin_use(plugin, 0), OK);
	EQ_STR(net_plugin_device(plugin)->name, "test0");
	EQ(net_plugin_use(plugin, 2), ERR_SYSTEM);
	EQ_STR(net_plugin_device(plugin)->name, "test0");
	EQ(net_plugin_use(plugin, 1), OK);
}

/* .. each by itself, and short ones together. */
static void both_sizes(void)
{
	check_sizes();
	pair_is_packed = true;
	check_sizes();
	pair_is_packed = false;
}

/* What the test plugin of the newest version counts under this name. */
static atomic_int *counter(const char *name)
{
	char path[PATH_BYTES];
	void *library;
	atomic_int *count;

	snprintf(path, sizeof(path), "%s/libnccl-net-test12.so", WEFT_PLUGIN_FOLDER);
	library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
	TRUE(library);
	count = (atomic_int *)dlsym(library, name);
	TRUE(count);
	return count;
}

static int counted(const char *name)
{
	return atomic_load(counter(name));
}

/* Sends and receives of so many bytes; how many messages of the plugin were they? */
static int messages_of(const struct pair *pair, const size_t *sizes, int count)
{
	static char out[20000], in[20000];
	struct net_request sent, taken;
	int before = counted("net_test_sends");
	size_t at = 0;

	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (char)(i * 2654435761u >> 11);
	memset(in, 0, sizeof(in));
	for (int i = 0; i < count; at += sizes[i++])
		EQ(net->send(pair->to, out + at, sizes[i], &sent), OK);
	at = 0;
	for (int i = 0; i < count; at += sizes[i++]) { /* one after the other */
		EQ(net->recv(pair->from, in + at, sizes[i], &taken), OK);
		while (net->test(&taken, 0) == ERR_AGAIN)
			net->test(&sent, 0);
		EQ(net->test(&taken, 0), OK);
	}
	run_both(&sent, &taken);
	EQ(memcmp(in, out, at), 0);
	return counted("net_test_sends") - before;
}

/* What is short goes together, as far as it has room and nothing else is between. */
static void test_packed(void)
{
	static const size_t two[] = {48, 8}, full[] = {8000, 180, 8, 8, 1};
	static const size_t between[] = {8, 9000, 8, 0, 8}, edge[] = {8184, 8185};
	struct pair pair;

	set_version(12);
	pair_plugin = open_for(NULL, 0);
	TRUE(pair_plugin);
	for (int i = 0; i < 2; i++) {
		pair_is_packed = i;
		pair_listen(&pair);
		pair_join(&pair);
		EQ(messages_of(&pair, two, 2), i ? 1 : 2);
		EQ(messages_of(&pair, full, 5), i ? 2 : 5);
		EQ(messages_of(&pair, between, 5), i ? 3 : 4);
		EQ(messages_of(&pair, edge, 2), 2);
		pair_close(&pair);
	}
	pair_is_packed = false;
	net_plugin_close(pair_plugin);
}

/* Two ends whose short messages go together. */
static void packed_open(struct pair *pair)
{
	set_version(12);
	pair_plugin = open_for(NULL, 0);
	pair_is_packed = true;
	pair_listen(pair);
	pair_join(pair);
}

static void packed_end(struct pair *pair)
{
	pair_close(pair);
	pair_is_packed = false;
	net_plugin_close(pair_plugin);
}

/* Long messages are asked for while the frame before them has not come. */
static void test_packed_ahead(void)
{
	static const size_t sizes[] = {8, 9000, 20000, 8, 8184, 8185, 8, 8, 10000};
	enum { COUNT = sizeof(sizes) / sizeof(*sizes), ALL = 60000 };
	static char out[ALL], in[ALL];
	struct net_request sent[COUNT], taken[COUNT];
	struct pair pair;
	size_t at = 0;

	for (size_t i = 0; i < ALL; i++)
		out[i] = (char)(i * 2654435761u >> 11);
	packed_open(&pair);
	for (int i = 0; i < COUNT; at += sizes[i++])
		EQ(net->recv(pair.from, in + at, sizes[i], &taken[i]), OK);
	for (int turn = 0; turn < 10; turn++)
		EQ(net->test(&taken[COUNT - 1], 0), ERR_AGAIN);
	at = 0;
	for (int i = 0; i < COUNT; at += sizes[i++])
		EQ(net->send(pair.to, out + at, sizes[i], &sent[i]), OK);
	run_both(&sent[COUNT - 1], &taken[COUNT - 1]);
	EQ(memcmp(in, out, at), 0);
	packed_end(&pair);
}

/* A frame has more than what may be in front of a long message. */
static void test_packed_more(void)
{
	struct net_request sent, taken;
	static char text[9000];
	struct pair pair;
	enum err e;

	packed_open(&pair);
	EQ(net->recv(pair.from, text, 8, &taken), OK);
	EQ(net->recv(pair.from, text, 9000, &taken), OK);
	EQ(net->send(pair.to, text, 8, &sent), OK);
	EQ(net->send(pair.to, text, 8, &sent), OK);
	while ((e = net->test(&taken, 0)) == ERR_AGAIN)
		net->test(&sent, 0);
	EQ(e, ERR_REMOTE);
	TRUE(strstr(err_last(), "says that 8 bytes came from rank 7 where 0 were sent"));
	packed_end(&pair);
}

/* A frame ends in the middle of what is asked for: the ends do not agree. */
static void test_packed_apart(void)
{
	struct net_request sent, taken;
	struct pair pair;
	char text[64] = "";
	enum err e;

	packed_open(&pair);
	EQ(net->send(pair.to, text, 8, &sent), OK);
	EQ(net->recv(pair.from, text, 9, &taken), OK);
	while ((e = net->test(&taken, 0)) == ERR_AGAIN)
		net->test(&sent, 0);
	EQ(e, ERR_REMOTE);
	TRUE(strstr(err_last(), "says that 8 bytes came from rank 7 where 9 were sent"));
	packed_end(&pair);
}

/* ---- memory that is kept ---- */

enum { KEPT_BYTES = 400000, PART_BYTES = 100000 };

static char kept_out[KEPT_BYTES + 64], kept_in[KEPT_BYTES + 64];

/* A message from and to the k-th part of the memory: how often was memory registered? */
static int part_moves(const struct pair *pair, int k)
{
	struct net_request sent, taken;
	int before = counted("net_test_registered");
	char *out = kept_out + k * PART_BYTES, *in = kept_in + k * PART_BYTES;

	for (int i = 0; i < PART_BYTES; i++)
		out[i] = (char)((unsigned)(before + i) * 2654435761u >> 11);
	memset(in, 0, PART_BYTES);
	EQ(net->send(pair->to, out, PART_BYTES, &sent), OK);
	EQ(net->recv(pair->from, in, PART_BYTES, &taken), OK);
	run_both(&sent, &taken);
	EQ(memcmp(in, out, PART_BYTES), 0);
	return counted("net_test_registered") - before;
}

static void keep_both(void)
{
	EQ(net_plugin_keep(pair_plugin, kept_out, KEPT_BYTES), OK);
	EQ(net_plugin_keep(pair_plugin, kept_in, KEPT_BYTES), OK);
}

static void forget_both(void)
{
	net_plugin_forget(pair_plugin, kept_out, KEPT_BYTES);
	net_plugin_forget(pair_plugin, kept_in, KEPT_BYTES);
}

static void pair_open(struct pair *pair)
{
	set_version(12);
	pair_plugin = open_for(NULL, 0);
	TRUE(pair_plugin);
	pair_listen(pair);
	pair_join(pair);
}

static void pair_end(struct pair *pair)
{
	pair_close(pair);
	EQ(counted("net_test_known"), 0);
	net_plugin_close(pair_plugin);
}

/* Each end is told of it once, however often it is kept. */
static void test_kept(void)
{
	struct pair pair;
	int known;

	pair_open(&pair);
	EQ(part_moves(&pair, 0), 2);
	known = counted("net_test_known"); /* for short messages */
	keep_both();
	EQ(part_moves(&pair, 0), 2);
	EQ(part_moves(&pair, 3), 0);
	EQ(part_moves(&pair, 1), 0);
	EQ(counted("net_test_known"), known + 2);
	keep_both();
	forget_both();
	EQ(part_moves(&pair, 2), 0);
	forget_both();
	EQ(counted("net_test_known"), known);
	EQ(part_moves(&pair, 2), 2);
	EQ(part_moves(&pair, 2), 2);
	keep_both();
	EQ(part_moves(&pair, 1), 2);
	net_plugins_pages_replaced(kept_out + KEPT_BYTES, 1); /* .. behind it */
	EQ(part_moves(&pair, 1), 0);
	net_plugins_pages_replaced(kept_out + KEPT_BYTES - 1, 1);
	EQ(part_moves(&pair, 1), 1);
	net_plugins_pages_replaced(kept_in, 1);
	EQ(counted("net_test_known"), known + 1);
	EQ(part_moves(&pair, 1), 1);
	EQ(part_moves(&pair, 1), 0);
	pair_end(&pair); /* what is kept goes with the connection */
}

/* Parts that are kept by themselves, in any order; a message lies in one of them. */
static void test_kept_parts(void)
{
	struct pair pair;

	pair_open(&pair);
	EQ(net_plugin_keep(pair_plugin, kept_in + PART_BYTES, PART_BYTES), OK);
	EQ(net_plugin_keep(pair_plugin, kept_in + 2 * PART_BYTES, PART_BYTES), OK);
	EQ(part_moves(&pair, 1), 2);
	EQ(part_moves(&pair, 1), 1); /* what is sent is not kept */
	EQ(part_moves(&pair, 3), 2);
	keep_both();
	EQ(part_moves(&pair, 3), 2);
	EQ(part_moves(&pair, 0), 0);
	EQ(part_moves(&pair, 2), 1); /* the smaller one is nearer */
	EQ(part_moves(&pair, 2), 0);
	net_plugin_forget(pair_plugin, kept_in + 2 * PART_BYTES, PART_BYTES);
	EQ(part_moves(&pair, 2), 0);
	forget_both();
	EQ(part_moves(&pair, 1), 1);
	EQ(part_moves(&pair, 3), 2);
	net_plugin_forget(pair_plugin, kept_in, PART_BYTES); /* not kept: nothing */
	net_plugin_forget(pair_plugin, kept_in + PART_BYTES, PART_BYTES);
	pair_end(&pair);
}

/* It is forgotten while messages are under way. */
static void test_kept_under_way(void)
{
	struct net_request sent, taken;
	struct pair pair;
	int known;

	pair_open(&pair);
	EQ(part_moves(&pair, 0), 2);
	known = counted("net_test_known");
	keep_both();
	EQ(net->send(pair.to, kept_out, PART_BYTES, &sent), OK);
	EQ(net->recv(pair.from, kept_in, PART_BYTES, &taken), OK);
	EQ(net->test(&taken, 0), ERR_AGAIN);
	EQ(counted("net_test_known"), known + 1);
	forget_both();
	EQ(counted("net_test_known"), known + 1);
	run_both(&sent, &taken);
	EQ(counted("net_test_known"), known);
	EQ(memcmp(kept_in, kept_out, PART_BYTES), 0);
	keep_both();
	EQ(net->send(pair.to, kept_out, PART_BYTES, &sent), OK);
	EQ(net->test(&sent, 0), ERR_AGAIN);
	forget_both();
	pair_end(&pair); /* .. and nobody has received it */
}

/* Pages are replaced whole, also those of which a part was asked for. */
static void test_kept_beside(void)
{
	enum { PAGE = 4096, ALL = 3 * PAGE, BYTES = 2 * PAGE + 2000 };
	struct net_request sent, taken;
	struct pair pair;
	void *memory;
	char *pages;

	EQ(region_alloc(ALL, &memory), OK);
	pages = memory;
	pair_open(&pair);
	EQ(net_plugin_keep(pair_plugin, pages, BYTES), OK);
	for (int i = 0; i < 3; i++) {
		int before = counted("net_test_registered");

		if (i == 2)
			region_withdraw(pages + BYTES, ALL - BYTES);
		EQ(net->send(pair.to, pages, BYTES, &sent), OK);
		EQ(net->recv(pair.from, kept_in, BYTES, &taken), OK);
		run_both(&sent, &taken);
		if (i) /* what is received is not kept */
			EQ(counted("net_test_registered") - before, i);
	}
	net_plugin_forget(pair_plugin, pages, BYTES);
	pair_end(&pair);
	EQ(region_free(memory), OK);
}

static void *part_moves_once(void *pair)
{
	part_moves(pair, 0);
	return NULL;
}

/* A plugin that does not return from regMr: other memory is given back at once, that one
 * after a while. What it has known in the end is deregistered. */
static void test_kept_stuck(void)
{
	atomic_int *stuck;
	struct pair pair;
	pthread_t thread;
	int known;

	pair_open(&pair);
	stuck = counter("net_test_stuck");
	EQ(part_moves(&pair, 0), 2);
	known = counted("net_test_known");
	keep_both();
	set(PARAM_PLUGIN_SEC, "1");
	*stuck = 2;
	EQ(pthread_create(&thread, NULL, part_moves_once, &pair), 0);
	while (*stuck != 1)
		usleep(100);
	net_plugins_pages_replaced(kept_out + KEPT_BYTES + 1, 1);
	EQ(*stuck, 1);
	net_plugins_pages_replaced(kept_out, 1);
	EQ(log_count(log_path, "regMr has not returned for 1 s"), 1);
	net_plugins_pages_replaced(kept_out, 1); /* it is waited for no more */
	EQ(log_count(log_path, "regMr has not returned for 1 s"), 1);
	*stuck = 0;
	EQ(pthread_join(thread, NULL), 0);
	EQ(counted("net_test_known"), known + 1); /* what is received, alone */
	set(PARAM_PLUGIN_SEC, NULL);
	EQ(part_moves(&pair, 0), 1);
	forget_both();
	pair_end(&pair);
}

static void test_versions(void)
{
	for (int version = PLUGIN_VERSION_MIN; version <= PLUGIN_VERSION_MAX; version++) {
		struct net_plugin *second;

		set_version(version);
		pair_plugin = open_for(NULL, 1);
		TRUE(pair_plugin);
		EQ_STR(net_plugin_name(pair_plugin), "Test");
		EQ(net_plugin_version(pair_plugin), version);
		test_device(pair_plugin);
		test_use(pair_plugin);
		/* another communicator of this process */
		second = open_for("tEsT", 0);
		TRUE(second);
		both_sizes();
		net_plugin_close(second);
		net_plugin_close(pair_plugin);
	}
	TRUE(log_count(log_path, "NET/Plugin: Loaded net plugin Test (v9)"));
	TRUE(log_count(log_path, "Initialized NET plugin Test"));
	TRUE(log_count(log_path, "NET/Test: started, version 12"));
}

static int version_of(const char *list, const char *network)
{
	struct net_plugin *plugin;
	int version;

	set(PARAM_NET_PLUGIN, list);
	plugin = open_for(network, 0);
	version = plugin ? net_plugin_version(plugin) : 0;
	net_plugin_close(plugin);
	return version;
}

static void body_names(const struct child *parent)
{
	struct net_plugin_args args = {.network = "IB"};
	struct net_plugin *plugin = NULL;

	(void)parent;
	EQ(version_of("test9", NULL), 9); /* libnccl-net-test9.so */
	EQ(version_of("libnccl-net-test7.so", NULL), 7);
	EQ(version_of("not-there,test8", NULL), 8);
	TRUE(log_count(
		log_path, "no network plugin not-there: libnccl-net-not-there.so"));
	EQ(version_of("libnot-there.so,libnot-there.so.2,test8", NULL), 8);
	TRUE(log_count(log_path, "Could not find: libnot-there.so. libnot-there.so: "));
	TRUE(log_count(
		log_path, "no network plugin libnot-there.so.2: libnot-there.so.2"));
	EQ(log_count(log_path, "libnccl-net-libnot-there"), 0);
	EQ(version_of("libc.so.6,test8", NULL), 8);
	TRUE(log_count(log_path, "libc.so.6 exports no ncclNetPlugin_v6 to _v12"));
	EQ(version_of("none", NULL), 0);
	EQ(version_of("none,test8", NULL), 0);
	EQ(version_of("test8", "socket"), 0);
	EQ(version_of("test8", "Socket"), 0);
	EQ(version_of(",, test10 ,", NULL), 10);
	EQ(version_of(WEFT_PLUGIN_FOLDER, NULL), 0); /* a folder */
	EQ(version_of(NULL, NULL), 0);		     /* no libnccl-net.so here */
	TRUE(log_count(log_path, "NET/Plugin: Could not find: libnccl-net.so"));
	EQ(net_plugin_open(&args, &plugin), ERR_USAGE);
	TRUE(strstr(err_last(), "there is no network IB"));
}

/* ---- faults ---- */

static const char *fault_now;
static int fault_version;
static const char *fault_words;

/* In a process of its own: plugins are started once. */
static void fault_run(void (*body)(const struct child *), const char *fault, int version,
	const char *words)
{
	struct child child;

	fault_now = fault;
	fault_version = version;
	fault_words = words;
	setenv("NET_TEST_FAULT", fault, 1);
	set_version(version);
	EQ(truncate(log_path, 0), 0);
	child = child_start(body);
	child_join(&child);
	unsetenv("NET_TEST_FAULT");
}

static void body_refused(const struct child *parent)
{
	(void)parent;
	TRUE(!open_for(NULL, 0));
	TRUE(!open_for(NULL, 0)); /* .. and asked no more */
	TRUE(log_count(log_path, "the network plugin Test"));
	if (!log_count(log_path, fault_words))
		EQ_STR(fault_words, fault_now);
	EQ(open_for("Socket", 0), NULL);
}

static void test_refused(void)
{
	fault_run(body_refused, "init", 6, "init gave: unhandled system error");
	fault_run(body_refused, "init", 11, "init gave: unhandled system error");
	fault_run(body_refused, "empty", 8, "it has no device");
	fault_run(body_refused, "gpu", 9, "takes no host memory");
	fault_run(body_refused, "tiny", 12, "no message of 1024 bytes");
	set(PARAM_PLUGIN_SEC, "1");
	fault_run(body_refused, "hang", 8, "init has not returned for 1 s");
	set(PARAM_PLUGIN_SEC, NULL);
}

static void body_unheard(const struct child *parent)
{
	struct net_listen_args args = {.key = "right"};
	struct net_end *listener = NULL;
	struct net_handle handle;

	(void)parent;
	pair_plugin = open_for(NULL, 0);
	TRUE(pair_plugin);
	args.plugin = pair_plugin;
	EQ(net_by_plugin.listen(&args, &listener, &handle), ERR_SYSTEM);
	TRUE(strstr(err_last(), fault_words));
	net_plugin_close(pair_plugin);
}

/* A connection on which something is sent, until either end is lost. */
static void body_lost(const struct child *parent)
{
	static char out[8][9000], in[8][9000];
	size_t bytes = pair_is_packed ? 3000 : sizeof(out[0]);
	struct net_request sent, taken;
	enum err e = OK, f = OK;
	struct net_claim claim;
	struct pair pair;

	(void)parent;
	pair_plugin = open_for(NULL, 0);
	TRUE(pair_plugin);
	pair_listen(&pair);
	pair.to = connect_as(&pair, "right", 7);
	for (int i = 0; i < 8; i++)
		EQ(net->send(pair.to, out[i], bytes, &sent), OK);
	while (!pair.from && (!e || e == ERR_AGAIN) && (!f || f == ERR_AGAIN)) {
		e = net->accept(pair.listener, &claim, &pair.from);
		f = net->test(&sent, 0);
	}
	for (int i = 0; pair.from && i < 8; i++)
		EQ(net->recv(pair.from, in[i], bytes, &taken), OK);
	while (pair.from && (e == ERR_AGAIN || !e) && (f == ERR_AGAIN || !f)) {
		e = net->test(&taken, 0);
		f = net->test(&sent, 0);
		if (!e && !f)
			break;
	}
	TRUE((e && e != ERR_AGAIN) || (f && f != ERR_AGAIN));
	if (!strstr(err_last(), fault_words))
		EQ_STR(err_last(), fault_words);
	TRUE(strstr(err_last(), "the network plugin Test (v"));
	pair_close(&pair);
	net_plugin_close(pair_plugin);
}

static void test_lost(void)
{
	fault_run(body_unheard, "listen", 9, "cannot listen on test0");
	fault_run(body_lost, "connect", 10, "connect gave");
	fault_run(body_lost, "accept", 7, "takes no connections any more: accept gave");
	fault_run(body_lost, "send", 6, "isend gave");
	fault_run(body_lost, "receive", 12, "irecv gave");
	fault_run(body_lost, "test", 8, "test gave");
	fault_run(body_lost, "lies", 9, "says that 9001 bytes came");
	pair_is_packed = true;
	fault_run(body_lost, "lies", 12, "bytes came from rank 7 where");
	fault_run(body_lost, "send", 10, "isend gave");
	fault_run(body_lost, "receive", 12, "irecv gave");
	pair_is_packed = false;
	fault_run(body_lost, "register", 11, "regMr gave");
}

/* The plugin is told of every message: how often for one that goes out and comes in? */
static void kept_in_vain(int times)
{
	struct pair pair;

	pair_open(&pair);
	keep_both();
	for (int i = 0; i < 4; i++)
		EQ(part_moves(&pair, i % 2), times);
	forget_both();
	pair_end(&pair);
	EQ(log_count(log_path, "Test does not take 400000 bytes"), *fault_words ? 2 : 0);
}

/* It would not have all of the memory .. */
static void body_kept_refused(const struct child *parent)
{
	(void)parent;
	kept_in_vain(2);
}

/* .. or takes messages of 10,000 bytes at most. */
static void body_kept_cut(const struct child *parent)
{
	(void)parent;
	kept_in_vain(2 * PART_BYTES / 10000);
}

static void body_odd(const struct child *parent)
{
	(void)parent;
	pair_plugin = open_for(NULL, 0);
	TRUE(pair_plugin);
	both_sizes();
	net_plugin_close(pair_plugin);
}

/* Who does not know the key sends a claim, too, and is closed; the next gets in. */
static void body_strangers(const struct child *parent)
{
	struct net_request lie, sent, taken;
	struct net_end *liar;
	struct pair pair;
	char text[3] = "";
	enum err e = ERR_AGAIN;

	(void)parent;
	pair_plugin = open_for(NULL, 0);
	TRUE(pair_plugin);
	pair_listen(&pair);
	liar = connect_as(&pair, "wrong", 3);
	EQ(net->send(liar, "no", 3, &lie), OK);
	while (e == ERR_AGAIN) {
		struct net_claim claim;

		EQ(net->accept(pair.listener, &claim, &pair.from), ERR_AGAIN);
		e = net->test(&lie, 0);
	}
	TRUE(e); /* it was hung up on */
	TRUE(log_count(log_path, "without a good claim is closed"));
	pair_join(&pair);
	EQ(net->send(pair.to, "ok", 3, &sent), OK);
	EQ(net->recv(pair.from, text, 3, &taken), OK);
	run_both(&sent, &taken);
	EQ_STR(text, "ok");
	net->close(liar);
	pair_close(&pair);
	net_plugin_close(pair_plugin);
}

int main(void)
{
	struct child child;

	EQ(auth_init(), OK);
	close(mkstemp(log_path));
	setenv("NCCL_DEBUG", "INFO", 1);
	setenv("NCCL_DEBUG_SUBSYS", "ALL", 1);
	setenv("NCCL_DEBUG_FILE", log_path, 1);
	net = &net_by_plugin;
	/* before this process has loaded any */
	test_refused();
	test_lost();
	fault_run(body_odd, "late", 8, "");
	fault_run(body_odd, "busy", 11, "");
	fault_run(body_odd, "small:busy", 12, "");
	fault_run(body_strangers, "", 9, "");
	fault_run(body_kept_refused, "few_pages", 12, "does not take");
	fault_run(body_kept_cut, "small", 12, "");
	child = child_start(body_names);
	child_join(&child);
	test_versions();
	test_packed();
	test_packed_apart();
	test_packed_ahead();
	test_packed_more();
	test_kept();
	test_kept_parts();
	test_kept_under_way();
	test_kept_beside();
	test_kept_stuck();
	unlink(log_path);
	return 0;
}
