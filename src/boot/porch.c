#include "boot/porch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- up ---- */

static bool out_append(struct porch *porch, const void *bytes, size_t count)
{
	size_t wanted = porch->out_bytes + count;

	if (wanted > porch->out_room) {
		size_t room = 2 * wanted;
		unsigned char *out = realloc(porch->out, room);

		if (!out)
			return false;
		porch->out = out;
		porch->out_room = room;
	}
	if (count)
		memcpy(porch->out + porch->out_bytes, bytes, count);
	porch->out_bytes += count;
	return true;
}

bool porch_has_output(const struct porch *porch)
{
	return !porch->is_mute && (porch->out_done < porch->out_bytes ||
					  (porch->seal && seal_has_output(porch->seal)));
}

void porch_flush(struct porch *porch)
{
	while (!porch->is_mute && porch->out_done < porch->out_bytes) {
		const unsigned char *at = porch->out + porch->out_done;
		size_t left = porch->out_bytes - porch->out_done;
		ssize_t n = porch->seal ? seal_send(porch->seal, at, left)
					: send(porch->fd, at, left, MSG_NOSIGNAL);

		if (n >= 0)
			porch->out_done += (size_t)n;
		else if (errno == EAGAIN)
			return;
		else if (errno != EINTR)
			porch->is_mute = true;
	}
	porch->out_done = porch->out_bytes = 0;
	if (!porch->is_mute && porch->seal && seal_flush(porch->seal))
		porch->is_mute = errno != EAGAIN;
}

void porch_say(struct porch *porch, const struct porch_word *word)
{
	struct wire_say say = {.round = htole32(porch->round),
		.code = htole32((uint32_t)word->code),
		.is_last = htole32(word->is_last),
		.record_bytes = htole32(word->record_bytes),
		.what = htole32(word->what),
		.rank = htole32(word->rank),
		.rank_count = htole32(word->rank_count)};
	size_t bytes = word->sentence ? strnlen(word->sentence, sizeof(say.sentence)) : 0;
	unsigned char tag[AUTH_TAG_BYTES];
	bool is_kept;

	say.bytes = htole32((uint32_t)bytes);
	if (bytes)
		memcpy(say.sentence, word->sentence, bytes);
	auth_tag(porch->key, "say", &say, offsetof(struct wire_say, tag), say.tag);
	is_kept = out_append(porch, &say, sizeof(say));
	if (word->record_bytes) {
		auth_tag(porch->key, "gather", word->record, word->record_bytes, tag);
		is_kept = is_kept &&
			  out_append(porch, word->record, word->record_bytes) &&
			  out_append(porch, tag, sizeof(tag));
	}
	if (!is_kept) /* the root of all sees that we went */
		porch->is_gone = porch->is_mute = true;
	porch_flush(porch);
}

/* ---- down ---- */

/* Have `want` bytes at `to`, of which `done` are there; false: not yet. */
static bool in_fill(struct porch *porch, void *to, size_t want, size_t *done)
{
	while (!porch->is_gone && *done < want) {
		unsigned char *at = (unsigned char *)to + *done;
		ssize_t n = porch->seal ? seal_recv(porch->seal, at, want - *done)
					: recv(porch->fd, at, want - *done, 0);

		if (n > 0)
			*done += (size_t)n;
		else if (n < 0 && errno == EAGAIN)
			return false;
		else if (n == 0 || errno != EINTR)
			porch->is_gone = true;
	}
	return !porch->is_gone;
}

static bool verdict_check(struct porch *porch)
{
	const struct wire_verdict *verdict = &porch->verdict;
	unsigned char **payload = &porch->payloads[porch->round % 2];
	size_t bytes = le32toh(verdict->bytes);

	if (!auth_check(porch->key, "verdict", verdict,
		    offsetof(struct wire_verdict, tag), verdict->tag) ||
		le32toh(verdict->round) != porch->round ||
		le32toh(verdict->code) > ERR_TIMEOUT)
		return false;
	free(*payload);
	*payload = malloc(bytes + 1);
	return *payload;
}

bool porch_hear(
	struct porch *porch, enum err *code, const unsigned char **payload, size_t *bytes)
{
	unsigned char digest[AUTH_TAG_BYTES];
	bool was_whole = porch->in_done == sizeof(porch->verdict);

	if (!in_fill(porch, &porch->verdict, sizeof(porch->verdict), &porch->in_done))
		return false;
	if (!was_whole && !verdict_check(porch)) {
		porch->is_gone = true;
		return false;
	}
	*bytes = le32toh(porch->verdict.bytes);
	*payload = porch->payloads[porch->round % 2];
	if (!in_fill(porch, porch->payloads[porch->round % 2], *bytes,
		    &porch->payload_done))
		return false;
	auth_digest(*payload, *bytes, digest);
	if (memcmp(digest, porch->verdict.digest, sizeof(digest))) {
		porch->is_gone = true;
		return false;
	}
	*code = (enum err)le32toh(porch->verdict.code);
	porch->in_done = porch->payload_done = 0;
	porch->round++;
	return true;
}

void porch_fini(struct porch *porch)
{
	seal_destroy(porch->seal);
	shutdown(porch->fd, SHUT_RDWR);
	close(porch->fd);
	free(porch->out);
	free(porch->payloads[0]);
	free(porch->payloads[1]);
	auth_wipe(porch->key, sizeof(porch->key));
}
