/* The client of PMI against launchers that say something else: cut off, endless, random,
 * or of another version. Every answer ends it with a sentence, and none with a crash or a
 * hang. */
#include "launch/pmi.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/addr.h"
#include "test.h"

/* Both may wait for each other when the texts are random. */
static uint64_t timeout_ms = 20000;

/* ---- texts ---- */

static void test_value(void)
{
	char value[8];

	TRUE(pmi_value("cmd=get_result rc=0 value=abc\n", ' ', "value", value, 8));
	EQ_STR(value, "abc");
	TRUE(pmi_value("cmd=x;value=a b;", ';', "value", value, 8));
	EQ_STR(value, "a b");
	TRUE(pmi_value("value=", ' ', "value", value, 8));
	EQ_STR(value, "");
	TRUE(!pmi_value("xvalue=1 value2=3 valu=4 value", ' ', "value", value, 8));
	TRUE(!pmi_value("value=12345678", ' ', "value", value, 8)); /* does not fit */
	TRUE(!pmi_value("", ' ', "value", value, 8));
	TRUE(pmi_value("  a=b   c=d\n", ' ', "c", value, 8));
	EQ_STR(value, "d");
	TRUE(pmi_is_good("cmd=put_result rc=0", ' ', "put_result"));
	TRUE(pmi_is_good("cmd=barrier_out", ' ', "barrier_out"));
	TRUE(!pmi_is_good("cmd=put_result rc=-1", ' ', "put_result"));
	TRUE(!pmi_is_good("cmd=put_result2 rc=0", ' ', "put_result"));
	TRUE(!pmi_is_good("rc=0", ' ', "put_result"));
}

static void test_length(void)
{
	static const char *const bad[] = {
		"      ", "12a   ", "-1    ", "1 2   ", "0x10  "};
	size_t bytes = 0;

	TRUE(pmi_length("   114", &bytes) && bytes == 114);
	TRUE(pmi_length("114   ", &bytes) && bytes == 114);
	TRUE(pmi_length("000007", &bytes) && bytes == 7);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		TRUE(!pmi_length(bad[i], &bytes));
}

/* ---- scripts ---- */

/* What a launcher says, whatever it is asked: one piece after the other. */
struct script {
	int fd;			   /* or, where it is 0, of the first who comes to .. */
	int listener;		   /* .. this one */
	const char *const *pieces; /* NULL at the end: then it hangs up */
};

static void *script_play(void *arg)
{
	struct script *script = arg;
	char asked[PMI_TEXT_BYTES];

	if (!script->fd)
		while (addr_accept(script->listener, &script->fd))
			usleep(1000);
	fcntl(script->fd, F_SETFL, 0); /* to block */
	for (const char *const *piece = script->pieces; *piece; piece++) {
		if (read(script->fd, asked, sizeof(asked)) <= 0 ||
			write(script->fd, *piece, strlen(*piece)) < 0)
			break;
	}
	close(script->fd);
	return NULL;
}

static enum err conversation(const char *const *pieces, bool is_2_first, char value[64])
{
	struct pmi_args args = {.rank = 1,
		.is_2_first = is_2_first,
		.deadline_ns = clock_ns() + timeout_ms * CLOCK_MS};
	struct script script = {.pieces = pieces};
	struct pmi pmi;
	pthread_t thread;
	int ends[2];
	enum err e;

	EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	script.fd = ends[1];
	args.fd = ends[0];
	EQ(pthread_create(&thread, NULL, script_play, &script), 0);
	e = pmi_open(&pmi, &args);
	if (!e)
		e = pmi_put(&pmi, "key", "value");
	if (!e)
		e = pmi_fence(&pmi);
	if (!e)
		e = pmi_get(&pmi, "key", value, 64);
	if (!e)
		pmi_close(&pmi);
	close(ends[0]);
	pthread_join(thread, NULL);
	return e;
}

static void test_good(void)
{
	static const char *const one[] = {
		"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n",
		"cmd=my_kvsname kvsname=kvs_1_0\n", "cmd=put_result rc=0 msg=success\n",
		"cmd=barrier_out rc=0\n", "cmd=get_result rc=0 msg=success value=beef\n",
		"cmd=finalize_ack\n", NULL};
	/* pieces that come together are taken apart */
	static const char *const joined[] = {
		"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"
		"cmd=my_kvsname kvsname=k\ncmd=put_result rc=0\ncmd=barrier_out rc=0\n"
		"cmd=get_result rc=0 value=beef\n",
		"", "", "", "", NULL};
	char value[64];

	EQ(conversation(one, false, value), OK);
	EQ_STR(value, "beef");
	EQ(conversation(joined, false, value), OK);
	EQ_STR(value, "beef");
}

static void bad(const char *const *pieces, bool is_2_first, const char *part)
{
	char value[64];
	enum err e = conversation(pieces, is_2_first, value);

	if (!e || !strstr(err_last(), part))
		EQ_STR(err_last(), part);
}

static void test_bad(void)
{
	static const char *const silent[] = {NULL};
	static const char *const other[] = {"HTTP/1.1 400 Bad Request\r\n", NULL};
	static const char *const neither[] = {
		"cmd=response_to_init pmi_version=3 pmi_subversion=0 rc=-1\n",
		"cmd=response_to_init pmi_version=3 pmi_subversion=0 rc=-1\n", NULL};
	static const char *const no_name[] = {
		"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n",
		"cmd=my_kvsname\n", NULL};
	static const char *const no_value[] = {
		"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"
		"cmd=my_kvsname kvsname=k\ncmd=put_result rc=0\ncmd=barrier_out rc=0\n"
		"cmd=get_result rc=-1 msg=key_not_found\n",
		"", "", "", "", NULL};
	static const char *const odd_length[] = {
		"cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n",
		"99999xcmd=fullinit-response;rc=0;", NULL};
	static const char *const long_length[] = {
		"cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n",
		"999999cmd=fullinit-response;rc=0;", NULL};
	static char endless[3 * PMI_TEXT_BYTES];
	const char *const no_end[] = {endless, NULL};

	memset(endless, 'x', sizeof(endless) - 1);
	bad(silent, false, "has closed PMI_FD");
	bad(other, false, "which is no answer of PMI-1");
	bad(neither, false, "takes neither PMI-1 nor PMI-2");
	bad(no_name, false, "no answer of PMI-1");
	bad(no_value, false, "no answer of PMI-1");
	bad(odd_length, true, "no answer of PMI-2");
	bad(long_length, true, "no answer of PMI-2");
	bad(no_end, false, "no answer of PMI-1");
}

static void test_closed(void)
{
	struct pmi_args args = {.fd = 987654, .deadline_ns = clock_ns() + CLOCK_SEC};
	struct pmi pmi;

	EQ(pmi_open(&pmi, &args), ERR_SYSTEM);
	TRUE(strstr(err_last(), "PMI_FD 987654 is no open descriptor"));
}

/* ---- by a port ---- */

/* A launcher with `pieces` listens at a port of the loopback. */
static enum err port_conversation(const char *const *pieces, struct pmi *pmi)
{
	struct addr any, at;
	char port[ADDR_TEXT_BYTES];
	struct pmi_args args = {.fd = -1,
		.port = port,
		.rank = 2,
		.deadline_ns = clock_ns() + timeout_ms * CLOCK_MS};
	struct script script = {.pieces = pieces};
	pthread_t thread;
	int listener;
	enum err e;

	EQ(addr_parse("127.0.0.1:1", &any), OK);
	any.port = 0;
	EQ(addr_listen(&any, &listener, &at), OK);
	addr_print(&at, port);
	script.listener = listener;
	EQ(pthread_create(&thread, NULL, script_play, &script), 0);
	e = pmi_open(pmi, &args);
	if (!e)
		pmi_close(pmi);
	pthread_join(thread, NULL);
	close(listener);
	return e;
}

static void port_bad(const char *const *pieces, const char *part)
{
	struct pmi pmi;
	enum err e = port_conversation(pieces, &pmi);

	EQ(pmi.fd, -1);
	if (!e || !strstr(err_last(), part))
		EQ_STR(err_last(), part);
}

static void test_port(void)
{
	static const char *const good[] = {
		"cmd=initack\ncmd=set size=5\ncmd=set rank=3\ncmd=set debug=0\n",
		"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n",
		"cmd=my_kvsname kvsname=kvs_1_0\n", "cmd=finalize_ack\n", NULL};
	static const char *const silent[] = {NULL};
	static const char *const refused[] = {"cmd=initack rc=-1\n", NULL};
	static const char *const no_size[] = {
		"cmd=initack\ncmd=set rank=3\ncmd=set size=5\n", NULL};
	static const char *const odd_size[] = {
		"cmd=initack\ncmd=set size=-5\ncmd=set rank=3\n", NULL};
	static const char *const beyond[] = {
		"cmd=initack\ncmd=set size=3\ncmd=set rank=3\ncmd=set debug=0\n", NULL};
	struct pmi_args nobody = {
		.port = "127.0.0.1:1", .deadline_ns = clock_ns() + timeout_ms * CLOCK_MS};
	struct pmi_args odd = {.port = "there", .deadline_ns = nobody.deadline_ns};
	struct pmi pmi;

	EQ(port_conversation(good, &pmi), OK);
	EQ(pmi.rank, 3);
	EQ(pmi.rank_count, 5);
	port_bad(silent, "has closed PMI_PORT 127.0.0.1:");
	port_bad(refused, "no answer of PMI-1");
	port_bad(no_size, "no answer of PMI-1");
	port_bad(odd_size, "no answer of PMI-1");
	port_bad(beyond, "says rank 3 of 3");
	EQ(pmi_open(&pmi, &nobody), ERR_REMOTE);
	TRUE(strstr(err_last(), "nobody answers at PMI_PORT 127.0.0.1:1"));
	EQ(pmi_open(&pmi, &odd), ERR_USAGE);
	TRUE(strstr(err_last(), "PMI_PORT is 'there' and should be"));
}

static void test_late(void)
{
	struct pmi_args args = {.deadline_ns = clock_ns() + 50 * CLOCK_MS};
	struct pmi pmi;
	int ends[2];

	EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	args.fd = ends[0];
	EQ(pmi_open(&pmi, &args), ERR_TIMEOUT);
	close(ends[0]);
	close(ends[1]);
}

/* Good answers with bytes changed, left out and added; and answers of random bytes. */
static void test_random(void)
{
	static const char *const good[] = {
		"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n",
		"cmd=my_kvsname kvsname=kvs_1_0\n", "cmd=put_result rc=0 msg=success\n",
		"cmd=barrier_out rc=0\n", "cmd=get_result rc=0 msg=success value=beef\n",
		"cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n",
		"    28cmd=fullinit-response;rc=0;", "    27cmd=kvs-put-response;rc=0;",
		"    29cmd=kvs-fence-response;rc=0;",
		"    49cmd=kvs-get-response;rc=0;found=TRUE;value=beef;;"};
	enum { GOOD = sizeof(good) / sizeof(good[0]), ROUNDS = 400, PIECES = 7 };
	static char texts[PIECES][600];
	const char *pieces[PIECES + 1] = {0};
	char value[64];

	srand(2);
	timeout_ms = 5;
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < PIECES; i++) {
			size_t bytes;

			snprintf(texts[i], sizeof(texts[i]), "%s", good[rand() % GOOD]);
			bytes = strlen(texts[i]);
			for (int j = rand() % 4; j > 0; j--)
				texts[i][(size_t)rand() % bytes] =
					(char)(1 + rand() % 255);
			if (rand() % 4 == 0)
				texts[i][(size_t)rand() % bytes] = '\0';
			pieces[i] = texts[i];
		}
		conversation(pieces, rand() % 2, value);
	}
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	test_value();
	test_length();
	test_good();
	test_bad();
	test_closed();
	test_port();
	test_late();
	test_random();
	return 0;
}
