#include "weft/run_pmi.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launch/pmi_text.h"
#include "weft/run_wire.h"

enum { KEY_BYTES = 256, VALUE_BYTES = 4096 };

static const char space_name[] = "weft";

static char separator(const struct run_pmi_client *client)
{
	return client->version == 2 ? ';' : ' ';
}

void run_pmi_leave(struct run_pmi_client *client)
{
	if (client->fd >= 0)
		close(client->fd);
	client->fd = -1;
	client->is_in_fence = false;
	run_bytes_fini(&client->in);
}

static void answer(struct run_pmi_client *client, const char *format, ...)
{
	char text[PMI_TEXT_BYTES], head[PMI_LENGTH_DIGITS + 1] = "";
	va_list args;
	int bytes;

	va_start(args, format);
	bytes = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (client->version == 2)
		snprintf(head, sizeof(head), "%6u", (unsigned)bytes % 1000000u);
	/* An answer is far below what a socket holds, and a client asks one thing at a
	 * time: who does not take it does not speak PMI. */
	if (send(client->fd, head, strlen(head), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ||
		send(client->fd, text, (size_t)bytes, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		run_pmi_leave(client);
}

/* The value that was put under a key; NULL: none. The newest counts. */
static const char *value_find(struct run_pmi *pmi, const char *key)
{
	struct run_bytes all = pmi->values;
	const char *found = NULL;

	all.at = 0;
	while (all.at < all.count) {
		const char *name = run_bytes_text(&all), *value = run_bytes_text(&all);

		if (all.is_bad)
			break;
		if (!strcmp(name, key))
			found = value;
	}
	return found;
}

static void put(struct run_pmi *pmi, struct run_pmi_client *client, const char *text)
{
	char key[KEY_BYTES], value[VALUE_BYTES];
	bool is_good = pmi_value(text, separator(client), "key", key, sizeof(key)) &&
		       pmi_value(text, separator(client), "value", value, sizeof(value));

	if (is_good) {
		run_bytes_add_text(&pmi->news, key);
		run_bytes_add_text(&pmi->news, value);
	}
	if (client->version == 2)
		answer(client, "cmd=kvs-put-response;rc=%d;", is_good ? 0 : 1);
	else
		answer(client, "cmd=put_result rc=%d msg=%s\n", is_good ? 0 : -1,
			is_good ? "success" : "no_key_or_value");
}

static void get(struct run_pmi *pmi, struct run_pmi_client *client, const char *text)
{
	char key[KEY_BYTES];
	const char *value = pmi_value(text, separator(client), "key", key, sizeof(key))
				    ? value_find(pmi, key)
				    : NULL;

	if (client->version == 2)
		answer(client, "cmd=kvs-get-response;rc=0;found=%s;value=%s;",
			value ? "TRUE" : "FALSE", value ? value : "");
	else if (value)
		answer(client, "cmd=get_result rc=0 msg=success value=%s\n", value);
	else
		answer(client, "cmd=get_result rc=-1 msg=key_not_found value=unknown\n");
}

static void greet(struct run_pmi_client *client, const char *text)
{
	char version[8];
	bool is_known = pmi_value(text, ' ', "pmi_version", version, sizeof(version)) &&
			(!strcmp(version, "1") || !strcmp(version, "2"));

	if (!is_known) {
		answer(client, "cmd=response_to_init pmi_version=2 pmi_subversion=0 "
			       "rc=-1\n");
		return;
	}
	answer(client, "cmd=response_to_init pmi_version=%s pmi_subversion=%d rc=0\n",
		version, version[0] == '1');
	client->version = version[0] - '0';
}

/* What programs of MPICH ask besides. */
static bool asks_of_job(
	struct run_pmi *pmi, struct run_pmi_client *client, const char *command)
{
	if (!strcmp(command, "get_maxes"))
		answer(client, "cmd=maxes kvsname_max=64 keylen_max=%d vallen_max=%d\n",
			KEY_BYTES - 1, VALUE_BYTES - 1);
	else if (!strcmp(command, "get_my_kvsname"))
		answer(client, "cmd=my_kvsname kvsname=%s\n", space_name);
	else if (!strcmp(command, "get_appnum"))
		answer(client, "cmd=appnum appnum=0\n");
	else if (!strcmp(command, "get_universe_size"))
		answer(client, "cmd=universe_size size=%u\n", pmi->rank_count);
	else
		return false;
	return true;
}

static void line_take(
	struct run_pmi *pmi, struct run_pmi_client *client, const char *text)
{
	char command[32] = "";

	pmi_value(text, ' ', "cmd", command, sizeof(command));
	if (!strcmp(command, "init"))
		greet(client, text);
	else if (!strcmp(command, "put"))
		put(pmi, client, text);
	else if (!strcmp(command, "get"))
		get(pmi, client, text);
	else if (!strcmp(command, "barrier_in"))
		client->is_in_fence = true;
	else if (!strcmp(command, "finalize")) {
		answer(client, "cmd=finalize_ack\n");
		run_pmi_leave(client);
	} else if (!asks_of_job(pmi, client, command))
		run_pmi_leave(client);
}

static void frame_take(
	struct run_pmi *pmi, struct run_pmi_client *client, const char *text)
{
	char command[32] = "";

	pmi_value(text, ';', "cmd", command, sizeof(command));
	if (!strcmp(command, "fullinit"))
		answer(client,
			"cmd=fullinit-response;rc=0;pmi-version=2;pmi-subversion=0;"
			"rank=%u;size=%u;appnum=0;debugged=FALSE;pmiverbose=FALSE;",
			client->rank, pmi->rank_count);
	else if (!strcmp(command, "kvs-put"))
		put(pmi, client, text);
	else if (!strcmp(command, "kvs-get"))
		get(pmi, client, text);
	else if (!strcmp(command, "kvs-fence"))
		client->is_in_fence = true;
	else if (!strcmp(command, "job-getid"))
		answer(client, "cmd=job-getid-response;rc=0;jobid=%s;", space_name);
	else if (!strcmp(command, "finalize")) {
		answer(client, "cmd=finalize-response;rc=0;");
		run_pmi_leave(client);
	} else
		run_pmi_leave(client);
}

/* The first whole message, cut out; false: not there yet. -1 in `bytes`: none at all. */
static bool message_cut(struct run_pmi_client *client, char text[PMI_TEXT_BYTES])
{
	struct run_bytes *in = &client->in;
	size_t head = client->version == 2 ? PMI_LENGTH_DIGITS : 0, bytes = 0;
	const char *end = in->count ? memchr(in->data, '\n', in->count) : NULL;

	if (head && in->count >= head &&
		(!pmi_length(in->data, &bytes) || bytes >= PMI_TEXT_BYTES)) {
		run_pmi_leave(client);
		return false;
	}
	if (!head)
		bytes = end ? (size_t)(end - in->data) + 1 : 0;
	if (!bytes || in->count < head + bytes) {
		if (in->count >= PMI_TEXT_BYTES)
			run_pmi_leave(client);
		return false;
	}
	if (bytes >= PMI_TEXT_BYTES) {
		run_pmi_leave(client);
		return false;
	}
	memcpy(text, in->data + head, bytes);
	text[bytes] = '\0';
	run_bytes_drop(in, head + bytes);
	return true;
}

void run_pmi_hear(struct run_pmi *pmi, struct run_pmi_client *client)
{
	char text[PMI_TEXT_BYTES];
	int well = run_some_read(client->fd, &client->in);

	while (client->fd >= 0 && message_cut(client, text)) {
		if (client->version == 2)
			frame_take(pmi, client, text);
		else
			line_take(pmi, client, text);
	}
	if (well < 0)
		run_pmi_leave(client);
}

void run_pmi_learn(struct run_pmi *pmi, const void *data, size_t bytes)
{
	run_bytes_add(&pmi->values, data, bytes);
}

void run_pmi_release(struct run_pmi_client *client)
{
	if (client->fd < 0 || !client->is_in_fence)
		return;
	client->is_in_fence = false;
	if (client->version == 2)
		answer(client, "cmd=kvs-fence-response;rc=0;");
	else
		answer(client, "cmd=barrier_out rc=0\n");
}
