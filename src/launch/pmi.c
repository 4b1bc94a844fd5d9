#include "launch/pmi.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/addr.h"

enum { GOODBYE_MS = 500, SHOWN_BYTES = 100 };

static char separator(const struct pmi *pmi)
{
	return pmi->version == 2 ? ';' : ' ';
}

static enum err gone(const struct pmi *pmi)
{
	return err_set(ERR_REMOTE,
		"the launcher has closed %s, by which ranks find each other: it "
		"is ending, or this program closed it",
		pmi->name);
}

static enum err wait_for(const struct pmi *pmi, short events)
{
	struct pollfd wait = {.fd = pmi->fd, .events = events};
	int n;

	do {
		n = poll(&wait, 1, clock_left_ms(pmi->deadline_ns, 1000));
		if (!n && clock_ns() >= pmi->deadline_ns)
			return err_set(ERR_TIMEOUT,
				"the launcher did not answer on %s in time: a "
				"rank "
				"has not come, or is not a Weft program",
				pmi->name);
	} while (n == 0 || (n < 0 && errno == EINTR));
	if (n < 0 || (wait.revents & POLLNVAL))
		return err_set(ERR_SYSTEM,
			"%s is no open descriptor: it was closed since the launcher "
			"started this process",
			pmi->name);
	return OK;
}

static enum err text_send(struct pmi *pmi, const char *text, size_t bytes)
{
	while (bytes > 0) {
		enum err e = wait_for(pmi, POLLOUT);
		ssize_t n = e ? 0 : write(pmi->fd, text, bytes);

		if (e)
			return e;
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return gone(pmi);
		if (n > 0) {
			text += n;
			bytes -= (size_t)n;
		}
	}
	return OK;
}

/* Read more behind what is there. */
static enum err some_read(struct pmi *pmi)
{
	enum err e = wait_for(pmi, POLLIN);
	ssize_t n;

	if (e)
		return e;
	n = read(pmi->fd, pmi->in + pmi->in_bytes, sizeof(pmi->in) - 1 - pmi->in_bytes);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return OK;
	if (n <= 0)
		return gone(pmi);
	pmi->in_bytes += (size_t)n;
	return OK;
}

static enum err strange(const struct pmi *pmi, const char *text)
{
	char shown[SHOWN_BYTES + 1];
	size_t i;

	for (i = 0; i < SHOWN_BYTES && text[i]; i++)
		shown[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
	shown[i] = '\0';
	return err_set(ERR_REMOTE,
		"the launcher answered '%s' on %s, which is no answer of PMI-%d", shown,
		pmi->name, pmi->version);
}

/* How many bytes the first message has, with what is around it; 0: not all there yet. */
static enum err message_bytes(const struct pmi *pmi, bool is_framed, size_t *bytes)
{
	const char *end = memchr(pmi->in, '\n', pmi->in_bytes);
	size_t length = 0;

	*bytes = 0;
	if (!is_framed) {
		*bytes = end ? (size_t)(end - pmi->in) + 1 : 0;
		return OK;
	}
	if (pmi->in_bytes < PMI_LENGTH_DIGITS)
		return OK;
	if (!pmi_length(pmi->in, &length) ||
		length + PMI_LENGTH_DIGITS >= sizeof(pmi->in))
		return strange(pmi, pmi->in);
	if (pmi->in_bytes >= length + PMI_LENGTH_DIGITS)
		*bytes = length + PMI_LENGTH_DIGITS;
	return OK;
}

static enum err text_recv(struct pmi *pmi, bool is_framed, char text[PMI_TEXT_BYTES])
{
	size_t head = is_framed ? PMI_LENGTH_DIGITS : 0, bytes;

	for (;;) {
		enum err e;

		pmi->in[pmi->in_bytes] = '\0';
		e = message_bytes(pmi, is_framed, &bytes);
		if (!e && bytes)
			break;
		if (!e && pmi->in_bytes + 1 >= sizeof(pmi->in))
			e = strange(pmi, pmi->in);
		if (!e)
			e = some_read(pmi);
		if (e)
			return e;
	}
	memcpy(text, pmi->in + head, bytes - head);
	text[bytes - head] = '\0';
	pmi->in_bytes -= bytes;
	memmove(pmi->in, pmi->in + bytes, pmi->in_bytes);
	return OK;
}

/* One question, in one piece, and its answer. */
static enum err ask(struct pmi *pmi, char answer[PMI_TEXT_BYTES], const char *format, ...)
{
	char text[PMI_LENGTH_DIGITS + PMI_TEXT_BYTES], *body = text + PMI_LENGTH_DIGITS;
	bool is_framed = pmi->version == 2;
	char head[PMI_LENGTH_DIGITS + 1];
	va_list args;
	enum err e;
	int bytes;

	va_start(args, format);
	bytes = vsnprintf(body, PMI_TEXT_BYTES, format, args);
	va_end(args);
	if (bytes < 0 || bytes >= PMI_TEXT_BYTES)
		return err_set(ERR_INTERNAL, "a PMI message of %d bytes", bytes);
	snprintf(head, sizeof(head), "%6u", (unsigned)bytes % 1000000u);
	memcpy(text, head, PMI_LENGTH_DIGITS);
	if (is_framed)
		e = text_send(pmi, text, PMI_LENGTH_DIGITS + (size_t)bytes);
	else
		e = text_send(pmi, body, (size_t)bytes);
	return e ? e : text_recv(pmi, is_framed, answer);
}

static enum err ask_well(
	const struct pmi *pmi, enum err e, const char *answer, const char *command)
{
	if (e)
		return e;
	return pmi_is_good(answer, separator(pmi), command) ? OK : strange(pmi, answer);
}

/* The first line is a PMI-1 one in both; ERR_AGAIN: the launcher wants another version.
 */
static enum err greet(struct pmi *pmi, int version)
{
	char answer[PMI_TEXT_BYTES], number[16];
	enum err e;

	pmi->version = 1;
	e = ask(pmi, answer, "cmd=init pmi_version=%d pmi_subversion=%d\n", version,
		version == 1);
	if (e)
		return e;
	if (!pmi_value(answer, ' ', "cmd", number, sizeof(number)) &&
		!strstr(answer, "response_to_init"))
		return strange(pmi, answer);
	if (!pmi_is_good(answer, ' ', "response_to_init"))
		return ERR_AGAIN;
	if (pmi_value(answer, ' ', "pmi_version", number, sizeof(number)) &&
		(number[0] != '0' + version || number[1]))
		return ERR_AGAIN;
	pmi->version = version;
	return OK;
}

/* What each version wants to hear before anything else. */
static enum err introduce(struct pmi *pmi, const struct pmi_args *args)
{
	char answer[PMI_TEXT_BYTES];
	enum err e;

	if (pmi->version == 2) {
		e = ask(pmi, answer,
			"cmd=fullinit;pmijobid=%s;pmirank=%d;threaded=FALSE;",
			args->job ? args->job : "", args->rank);
		return ask_well(pmi, e, answer, "fullinit-response");
	}
	e = ask(pmi, answer, "cmd=get_my_kvsname\n");
	e = ask_well(pmi, e, answer, "my_kvsname");
	if (!e && !pmi_value(answer, ' ', "kvsname", pmi->kvs, sizeof(pmi->kvs)))
		e = strange(pmi, answer);
	return e;
}

/* ---- to PMI_PORT ---- */

/* The own name of a container need not have an address; who listens under it is here. */
static enum err port_parse(const char *port, struct addr *addr)
{
	const char *colon = strrchr(port, ':');
	char name[HOST_NAME_MAX + 1] = "", here[32];
	enum err e = addr_parse(port, addr);

	if (!e || !colon || gethostname(name, sizeof(name) - 1) ||
		strlen(name) != (size_t)(colon - port) ||
		strncmp(name, port, strlen(name)))
		return e;
	snprintf(here, sizeof(here), "127.0.0.1%s", colon);
	return addr_parse(here, addr);
}

static enum err dial(struct pmi *pmi, const char *port)
{
	struct addr addr;
	int status;
	enum err e = port_parse(port, &addr);

	if (e)
		return err_set(ERR_USAGE,
			"PMI_PORT is '%.80s' and should be the host:port at which the "
			"launcher listens: %s",
			port, err_last());
	pmi->is_owned = true;
	status = addr_connect(&addr, &pmi->fd);
	if (status == EINPROGRESS) {
		e = wait_for(pmi, POLLOUT);
		if (e)
			return e;
		status = addr_connected(pmi->fd);
	}
	if (status)
		return err_set(ERR_REMOTE,
			"nobody answers at PMI_PORT %.80s, by which ranks find each "
			"other: %s; is the launcher there, and can this host reach it?",
			port, strerror(status));
	return OK;
}

/* One of the numbers that follow the first answer, each in a line of its own. */
static enum err told_number(struct pmi *pmi, const char *name, int *number)
{
	char text[PMI_TEXT_BYTES], digits[8];
	enum err e = text_recv(pmi, false, text);

	if (e)
		return e;
	if (!pmi_is_good(text, ' ', "set") ||
		!pmi_value(text, ' ', name, digits, sizeof(digits)) || !digits[0] ||
		digits[strspn(digits, "0123456789")])
		return strange(pmi, text);
	*number = atoi(digits);
	return OK;
}

/* Who comes by itself says which process it is, and is told its rank and how many there
 * are. */
static enum err port_open(struct pmi *pmi, const struct pmi_args *args)
{
	char answer[PMI_TEXT_BYTES];
	int debug;
	enum err e = dial(pmi, args->port);

	if (!e)
		e = ask(pmi, answer, "cmd=initack pmiid=%d\n", args->rank);
	if (!e)
		e = ask_well(pmi, e, answer, "initack");
	if (!e)
		e = told_number(pmi, "size", &pmi->rank_count);
	if (!e)
		e = told_number(pmi, "rank", &pmi->rank);
	if (!e)
		e = told_number(pmi, "debug", &debug);
	if (!e && (pmi->rank_count < 1 || pmi->rank >= pmi->rank_count))
		e = err_set(ERR_REMOTE, "the launcher at %s says rank %d of %d",
			pmi->name, pmi->rank, pmi->rank_count);
	return e;
}

/* ---- both ---- */

static void fd_drop(struct pmi *pmi)
{
	if (pmi->is_owned && pmi->fd >= 0)
		close(pmi->fd);
	pmi->fd = -1;
}

enum err pmi_open(struct pmi *pmi, const struct pmi_args *args)
{
	int first = args->is_2_first ? 2 : 1;
	enum err e = OK;

	*pmi = (struct pmi){.fd = args->port ? -1 : args->fd,
		.rank = args->rank,
		.version = 1,
		.deadline_ns = args->deadline_ns};
	if (args->port)
		snprintf(pmi->name, sizeof(pmi->name), "PMI_PORT %s", args->port);
	else
		snprintf(pmi->name, sizeof(pmi->name), "PMI_FD %d", args->fd);
	if (args->port)
		e = port_open(pmi, args);
	if (!e)
		e = greet(pmi, first);
	if (e == ERR_AGAIN)
		e = greet(pmi, 3 - first);
	if (e == ERR_AGAIN)
		e = err_set(ERR_REMOTE,
			"the launcher at %s takes neither PMI-1 nor PMI-2", pmi->name);
	if (!e)
		e = introduce(pmi, args);
	if (e)
		fd_drop(pmi);
	return e;
}

enum err pmi_put(struct pmi *pmi, const char *key, const char *value)
{
	char answer[PMI_TEXT_BYTES];
	enum err e;

	if (pmi->version == 2) {
		e = ask(pmi, answer, "cmd=kvs-put;key=%s;value=%s;", key, value);
		return ask_well(pmi, e, answer, "kvs-put-response");
	}
	e = ask(pmi, answer, "cmd=put kvsname=%s key=%s value=%s\n", pmi->kvs, key,
		value);
	return ask_well(pmi, e, answer, "put_result");
}

enum err pmi_fence(struct pmi *pmi)
{
	char answer[PMI_TEXT_BYTES];
	enum err e;

	if (pmi->version == 2) {
		e = ask(pmi, answer, "cmd=kvs-fence;");
		return ask_well(pmi, e, answer, "kvs-fence-response");
	}
	e = ask(pmi, answer, "cmd=barrier_in\n");
	return ask_well(pmi, e, answer, "barrier_out");
}

enum err pmi_get(struct pmi *pmi, const char *key, char *value, size_t room)
{
	char answer[PMI_TEXT_BYTES];
	const char *command = pmi->version == 2 ? "kvs-get-response" : "get_result";
	enum err e;

	if (pmi->version == 2)
		e = ask(pmi, answer, "cmd=kvs-get;jobid=;srcid=-1;key=%s;", key);
	else
		e = ask(pmi, answer, "cmd=get kvsname=%s key=%s\n", pmi->kvs, key);
	e = ask_well(pmi, e, answer, command);
	if (!e && !pmi_value(answer, separator(pmi), "value", value, room))
		e = strange(pmi, answer);
	return e;
}

void pmi_close(struct pmi *pmi)
{
	static const char framed[] = "    13cmd=finalize;", plain[] = "cmd=finalize\n";
	const char *text = pmi->version == 2 ? framed : plain;
	char answer[256];
	struct pollfd wait = {.fd = pmi->fd, .events = POLLIN};

	if (pmi->fd < 0)
		return;
	/* without sentences: at the end of a process nobody reads them */
	if (write(pmi->fd, text, strlen(text)) > 0 && poll(&wait, 1, GOODBYE_MS) > 0 &&
		read(pmi->fd, answer, sizeof(answer)) < 0)
		errno = 0;
	fd_drop(pmi);
}
