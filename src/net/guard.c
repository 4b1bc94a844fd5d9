#include "net/guard.h"

#include <assert.h>
#include <endian.h>
#include <sodium.h>
#include <string.h>

#include "net/sum.h"

static_assert(GUARD_PUBLIC_BYTES == crypto_kx_PUBLICKEYBYTES, "as libsodium has it");
static_assert(AUTH_KEY_BYTES == crypto_kx_SECRETKEYBYTES, "as libsodium has it");
static_assert(AUTH_KEY_BYTES == crypto_aead_chacha20poly1305_ietf_KEYBYTES, "as well");
static_assert(GUARD_TAG_BYTES == crypto_aead_chacha20poly1305_ietf_ABYTES, "as well");

enum part { PART_BODY, PART_HEAD };

enum { HEAD_TAGGED = offsetof(struct block_head, head_tag) };

void guard_init(struct guard *guard, enum net_guard kind)
{
	*guard = (struct guard){.kind = kind};
	if (kind == NET_SEALED)
		crypto_kx_keypair(guard->public, guard->secret);
}

/* What the keys of both directions are made of. */
struct bond {
	unsigned char secret[crypto_kx_SESSIONKEYBYTES];
	unsigned char nonce[16];
	unsigned char caller[GUARD_PUBLIC_BYTES], listener[GUARD_PUBLIC_BYTES];
};

bool guard_agree(struct guard *guard, bool is_listener, const struct guard_terms *terms)
{
	struct bond in, out;
	bool wrong;

	if (guard->kind != NET_SEALED)
		return true;
	memcpy(in.nonce, terms->nonce, sizeof(in.nonce));
	memcpy(in.caller, terms->caller, sizeof(in.caller));
	memcpy(in.listener, terms->listener, sizeof(in.listener));
	out = in;
	wrong = is_listener ? crypto_kx_server_session_keys(in.secret, out.secret,
				      guard->public, guard->secret, terms->caller)
			    : crypto_kx_client_session_keys(in.secret, out.secret,
				      guard->public, guard->secret, terms->listener);
	auth_wipe(guard->secret, sizeof(guard->secret));
	if (!wrong) {
		auth_tag(terms->key, is_listener ? "data to caller" : "data to listener",
			&out, sizeof(out), guard->out_key);
		auth_tag(terms->key, is_listener ? "data to listener" : "data to caller",
			&in, sizeof(in), guard->in_key);
	}
	auth_wipe(&in, sizeof(in));
	auth_wipe(&out, sizeof(out));
	return !wrong;
}

/* A key is used once with each. */
struct nonce {
	uint32_t part;
	uint32_t number[2];
};
static_assert(sizeof(struct nonce) == crypto_aead_chacha20poly1305_ietf_NPUBBYTES, "so");

static struct nonce nonce_of(enum part part, uint64_t number)
{
	return (struct nonce){htole32((uint32_t)part),
		{htole32((uint32_t)number), htole32((uint32_t)(number >> 32))}};
}

/* What a tag is of checksums: of the first GUARD_SPAN bytes and of the rest. */
struct sums {
	uint64_t of[2];
};
static_assert(sizeof(struct sums) == GUARD_TAG_BYTES, "they fill a tag");

static struct sums sums_of(
	const void *bytes, size_t count, enum part part, uint64_t number)
{
	uint64_t seed = 2 * number + (uint64_t)part;
	size_t first = count < GUARD_SPAN ? count : GUARD_SPAN;
	struct sums sums = {{htole64(sum_of(bytes, first, seed)), 0}};

	if (count > first)
		sums.of[1] = htole64(
			sum_of((const char *)bytes + first, count - first, seed));
	return sums;
}

static void sums_put(unsigned char *tag, const void *bytes, size_t count, enum part part,
	uint64_t number)
{
	struct sums sums = sums_of(bytes, count, part, number);

	memcpy(tag, &sums, sizeof(sums));
}

/* `wrong`: what lies in parts whose sum is another. */
static bool sums_check(const struct block_head *head, const char *data, uint64_t number,
	struct guard_span *wrong)
{
	uint32_t bytes = le32toh(head->bytes);
	uint32_t middle = bytes < GUARD_SPAN ? bytes : GUARD_SPAN;
	struct sums right = sums_of(data, bytes, PART_BODY, number), sent;
	bool is_first_right, is_rest_right;

	memcpy(&sent, head->body_tag, sizeof(sent));
	is_first_right = right.of[0] == sent.of[0];
	is_rest_right = right.of[1] == sent.of[1];
	*wrong = (struct guard_span){
		is_first_right ? middle : 0, is_rest_right ? middle : bytes};
	return is_first_right && is_rest_right;
}

static bool sum_check_head(const struct block_head *head, uint64_t number)
{
	struct sums right = sums_of(head, HEAD_TAGGED, PART_HEAD, number);

	return !memcmp(&right, head->head_tag, sizeof(right));
}

const char *guard_put(
	struct guard *guard, struct block_head *head, const char *data, char *room)
{
	uint64_t number = guard->out_count++;
	uint32_t bytes = le32toh(head->bytes);
	struct nonce body = nonce_of(PART_BODY, number);
	struct nonce front = nonce_of(PART_HEAD, number);
	unsigned char nothing;

	switch (guard->kind) {
	case NET_SUMMED:
		sums_put(head->body_tag, data, bytes, PART_BODY, number);
		sums_put(head->head_tag, head, HEAD_TAGGED, PART_HEAD, number);
		break;
	case NET_SEALED:
		crypto_aead_chacha20poly1305_ietf_encrypt_detached((unsigned char *)room,
			head->body_tag, NULL, (const unsigned char *)data, bytes, NULL, 0,
			NULL, (const unsigned char *)&body, guard->out_key);
		crypto_aead_chacha20poly1305_ietf_encrypt_detached(&nothing,
			head->head_tag, NULL, NULL, 0, (const unsigned char *)head,
			HEAD_TAGGED, NULL, (const unsigned char *)&front, guard->out_key);
		return room;
	default:
		memset(head->body_tag, 0, sizeof(head->body_tag));
		memset(head->head_tag, 0, sizeof(head->head_tag));
	}
	return data;
}

bool guard_check_head(const struct guard *guard, const struct block_head *head)
{
	struct nonce front = nonce_of(PART_HEAD, guard->in_count);
	unsigned char nothing = 0;

	switch (guard->kind) {
	case NET_SUMMED:
		return sum_check_head(head, guard->in_count);
	case NET_SEALED:
		return !crypto_aead_chacha20poly1305_ietf_decrypt_detached(&nothing, NULL,
			&nothing, 0, head->head_tag, (const unsigned char *)head,
			HEAD_TAGGED, (const unsigned char *)&front, guard->in_key);
	default:
		return true;
	}
}

bool guard_check_body(struct guard *guard, const struct block_head *head, char *data,
	struct guard_span *wrong)
{
	uint64_t number = guard->in_count++;
	uint32_t bytes = le32toh(head->bytes);
	struct nonce body = nonce_of(PART_BODY, number);

	*wrong = (struct guard_span){0, bytes};
	switch (guard->kind) {
	case NET_SUMMED:
		return sums_check(head, data, number, wrong);
	case NET_SEALED:
		return !crypto_aead_chacha20poly1305_ietf_decrypt_detached(
			(unsigned char *)data, NULL, (const unsigned char *)data, bytes,
			head->body_tag, NULL, 0, (const unsigned char *)&body,
			guard->in_key);
	default:
		return true;
	}
}
