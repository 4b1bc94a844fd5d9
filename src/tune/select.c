#include "tune/select.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "sched/catalog.h"

enum { WORD_BYTES = 64 };

/* What a name is here. */
enum counterpart { HAS_ALGO, HAS_DIRECT, HAS_NONE };

#define AR (1u << COLL_ALL_REDUCE)
#define AG (1u << COLL_ALL_GATHER)
#define RS (1u << COLL_REDUCE_SCATTER)
#define BC (1u << COLL_BROADCAST)
#define RD (1u << COLL_REDUCE)

struct name {
	const char *text;
	unsigned colls; /* bit per enum coll */
	enum counterpart is;
	enum algo algo; /* HAS_ALGO */
	enum proto proto;
};

static const struct name names[] = {
	{"TREE_LL", AR, HAS_ALGO, ALGO_TREE, PROTO_LL},
	{"TREE_LL128", AR, HAS_ALGO, ALGO_TREE, PROTO_LL128},
	{"TREE_SIMPLE", AR, HAS_ALGO, ALGO_TREE, PROTO_SIMPLE},
	{"RING_LL", AR | AG | RS | BC | RD, HAS_ALGO, ALGO_RING, PROTO_LL},
	{"RING_LL128", AR | AG | RS | BC | RD, HAS_ALGO, ALGO_RING, PROTO_LL128},
	{"RING_SIMPLE", AR | AG | RS | BC | RD, HAS_ALGO, ALGO_RING, PROTO_SIMPLE},
	{"COLLNET_DIRECT_SIMPLE", AR | AG | RS, .is = HAS_NONE},
	{"COLLNET_CHAIN_SIMPLE", AR, .is = HAS_NONE},
	{"NVLS_SIMPLE", AR | AG | RS, .is = HAS_NONE},
	{"NVLSTREE_SIMPLE", AR, .is = HAS_NONE},
	{"PAT_SIMPLE", AG | RS, HAS_ALGO, ALGO_PAT, PROTO_SIMPLE},
	{"SYMK_AGxLL_R", AR, .is = HAS_NONE},
	{"SYMK_AGxLLMC_R", AR, .is = HAS_NONE},
	{"SYMK_RSxTmaLD_AGxTmaST", AR, .is = HAS_NONE},
	{"SYMK_RSxLD_AGxST", AR, .is = HAS_DIRECT},
	{"SYMK_RSxLDMC_AGxSTMC", AR, .is = HAS_NONE},
	{"SYMK_LL", AG | RS, .is = HAS_NONE},
	{"SYMK_LLMC", AG, .is = HAS_NONE},
	{"SYMK_TmaST", AG, .is = HAS_NONE},
	{"SYMK_ST", AG, .is = HAS_DIRECT},
	{"SYMK_TmaSTMC", AG, .is = HAS_NONE},
	{"SYMK_STMC", AG, .is = HAS_NONE},
	{"SYMK_RailRing_LsaSTMC", AG, .is = HAS_NONE},
	{"SYMK_TmaLD", RS, .is = HAS_NONE},
	{"SYMK_LD", RS, .is = HAS_DIRECT},
	{"SYMK_LDMC", RS, .is = HAS_NONE},
	{"SYMK_RailA2A_LsaLD", RS, .is = HAS_NONE},
	{"SYMK_RailA2A_LsaLDMC", RS, .is = HAS_NONE},
};

enum { NAMES = sizeof(names) / sizeof(names[0]) };
static const select_set every_name = (1ull << NAMES) - 1;

select_set select_all(enum coll coll)
{
	select_set set = 0;

	for (int i = 0; i < NAMES; i++)
		if (names[i].colls & 1u << coll)
			set |= 1ull << i;
	return set;
}

/* The names a word begins; empty when it is none. */
static select_set word_find(const char *word)
{
	size_t bytes = strlen(word);
	select_set set = 0;

	for (int i = 0; bytes && i < NAMES; i++)
		if (!strncasecmp(names[i].text, word, bytes))
			set |= 1ull << i;
	return set;
}

/* The next word, without blanks, up to one of the operators; false: it is too long to be
 * one. */
static bool word_take(const char **text, char word[WORD_BYTES])
{
	size_t used = 0;

	for (; **text && **text != ',' && **text != '+'; ++*text) {
		if (isspace((unsigned char)**text))
			continue;
		if (used == WORD_BYTES - 1)
			break;
		word[used++] = **text;
	}
	word[used] = '\0';
	return used < WORD_BYTES - 1;
}

/* One word with its `^`. */
static bool factor_read(const char **text, select_set *set, char word[WORD_BYTES])
{
	bool is_not;

	if (!word_take(text, word))
		return false;
	is_not = word[0] == '^';
	*set = word_find(word + is_not);
	if (!*set)
		return false;
	*set = is_not ? every_name & ~*set : *set;
	return true;
}

static bool is_blank(const char *text)
{
	return text[strspn(text, " \t\n\r\f\v")] == '\0';
}

enum err select_parse(
	const char *text, enum coll coll, select_set *set, char *why, size_t room)
{
	select_set all = select_all(coll), sum = 0, product = every_name;
	const char *at = text;
	char word[WORD_BYTES];

	*set = 0;
	if (is_blank(text))
		return OK;
	for (;; at++) {
		select_set factor;

		if (!factor_read(&at, &factor, word)) {
			snprintf(why, room,
				"'%.40s' is the beginning of no algorithm's name", word);
			return ERR_ARGUMENT;
		}
		product &= factor;
		if (*at == '+')
			continue;
		sum |= product;
		product = every_name;
		if (!*at)
			break;
	}
	*set = sum & all;
	if (*set)
		return OK;
	if (!sum)
		snprintf(why, room, "it contradicts itself");
	else
		snprintf(why, room, "%s has none of these", coll_name(coll));
	return ERR_ARGUMENT;
}

/* Protocols in which an algorithm is in the set; 0: it is not. */
static unsigned protos_of(select_set set, enum algo algo)
{
	unsigned protos = 0;

	for (int i = 0; i < NAMES; i++)
		if (set & 1ull << i && names[i].is == HAS_ALGO && names[i].algo == algo)
			protos |= 1u << names[i].proto;
	return protos;
}

static bool has_direct(select_set set)
{
	for (int i = 0; i < NAMES; i++)
		if (set & 1ull << i && names[i].is == HAS_DIRECT)
			return true;
	return false;
}

/* Is there a schedule of this name for so many ranks? */
static bool is_there(const struct limits_call *call, const char *name)
{
	const struct sched_kind *kind = name ? catalog_find(call->coll, name) : NULL;

	return kind && call->rank_count <= kind->rank_max;
}

static bool choose_algo(
	select_set set, const struct limits_call *call, struct select_choice *choice)
{
	const enum algo *order = limits_order(call->bytes);

	for (int i = 0; i < LIMITS_ALGOS; i++) {
		const char *name = limits_counterpart(call->coll, order[i]);
		unsigned protos = protos_of(set, order[i]);

		if (!protos || !is_there(call, name))
			continue;
		choice->schedule = name;
		choice->protos = protos;
		return true;
	}
	return false;
}

bool select_choose(select_set set, const struct limits_call *call, bool can_reach,
	struct select_choice *choice)
{
	bool is_direct = can_reach && has_direct(set) && is_there(call, "direct");

	*choice = (struct select_choice){0};
	if (!set || call->rank_count == 1)
		return true;
	/* where direct is one of several, what the table says is as good: all of it works
	 * in each other's memory */
	choice->is_direct = is_direct;
	if (is_direct && (choose_algo(set, call, &(struct select_choice){0})))
		return true;
	if (is_direct) {
		choice->schedule = "direct";
		return true;
	}
	return choose_algo(set, call, choice);
}
