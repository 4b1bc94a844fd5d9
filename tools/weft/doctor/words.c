#include "weft/doctor/words.h"

#include <assert.h>
#include <ctype.h>
#include <endian.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The filter has a bit for each value of the hash: mostly it says no, and is small enough
 * to stay near. What it lets through is looked for in the chains. */
enum { LETTERS = 3, HASH_BITS = 16, CHAINS = 1 << 11, ANCHORS_MAX = 2 * WORDS_MAX };

/* Three letters of a word, and how far they are from its beginning. */
struct anchor {
	uint16_t word, offset;
	uint16_t next; /* of its chain, + 1; 0: none */
};

struct words {
	uint8_t filter[(1 << HASH_BITS) / 8];
	uint16_t chains[CHAINS]; /* the first anchor, + 1; 0: none */
	struct anchor anchors[ANCHORS_MAX];
	uint32_t anchor_count, step;
	char *text; /* owned; all words in small letters, one after the other */
	uint32_t begin[WORDS_MAX + 1];
	uint16_t twin[WORDS_MAX]; /* a later word of the same text; 0: none */
};

/* Letters of both cases are the same, and some other characters, too. */
static inline uint32_t letters_hash(const char *at)
{
	uint32_t letters;

	memcpy(&letters, at, sizeof(letters));
	letters = (le32toh(letters) | 0x202020) & 0xffffff;
	return letters * 0x9e3779b1u >> (32 - HASH_BITS);
}

static inline bool has_bit(const uint8_t *bits, uint32_t hash)
{
	return bits[hash / 8] >> hash % 8 & 1;
}

static inline void set_bit(uint8_t *bits, uint32_t hash)
{
	bits[hash / 8] |= (uint8_t)(1 << hash % 8);
}

/* How much letters are worth: those that logs are full of tell nothing. */
struct worths {
	uint8_t letter[256];
	uint8_t everywhere[(1 << HASH_BITS) / 8]; /* three of them */
};

static void worths_init(struct worths *worths)
{
	static const char common[] = "jqxzkvwybgpmfduhlcsrnioate/[]():_=.-0123456789 ";
	static const char everywhere[] =
		"mem plu ncc ccl cl_ ofi dev cud gpu pro con nne nec ann ank nks all typ "
		"ype bus usi lib bfa top max vic ice pci sys pid buf uff net ter ing ion "
		"ext gdr rdm omm num tim los ugh ted med oxy cha ort por res err ror fai "
		"ail led inf ini ime val ork col oll ect tor ive cal cke gbp bps ";

	*worths = (struct worths){0};
	memset(worths->letter, sizeof(common), sizeof(worths->letter));
	for (size_t i = 0; i + 1 < sizeof(common); i++)
		worths->letter[(unsigned char)common[i]] = (uint8_t)(sizeof(common) - i);
	for (size_t i = 0; i + 1 < sizeof(everywhere); i += LETTERS + 1)
		set_bit(worths->everywhere, letters_hash(everywhere + i));
}

static uint32_t worth_of(const struct worths *worths, const char *at)
{
	uint32_t worth = 0;

	if (has_bit(worths->everywhere, letters_hash(at)))
		return 0;
	for (int i = 0; i < LETTERS; i++)
		worth += worths->letter[(unsigned char)at[i]];
	return worth;
}

static void add_anchor(
	struct words *words, uint16_t word, uint32_t first, const struct worths *worths)
{
	const char *text = words->text + words->begin[word];
	uint32_t bytes = words->begin[word + 1] - words->begin[word], best = first, hash;
	uint32_t most = worth_of(worths, text + first);
	struct anchor *made = &words->anchors[words->anchor_count++];

	for (uint32_t i = first + words->step; i + LETTERS <= bytes; i += words->step) {
		uint32_t worth = worth_of(worths, text + i);

		if (worth > most) {
			most = worth;
			best = i;
		}
	}
	hash = letters_hash(text + best);
	set_bit(words->filter, hash);
	*made = (struct anchor){word, (uint16_t)best, words->chains[hash % CHAINS]};
	words->chains[hash % CHAINS] = (uint16_t)words->anchor_count;
}

/* Copy a word in small letters behind the others; its length. */
static uint32_t add_text(struct words *words, uint32_t word, const char *from)
{
	uint32_t at = words->begin[word];

	for (; *from; from++)
		words->text[at++] = (char)tolower((unsigned char)*from);
	words->begin[word + 1] = at;
	return at - words->begin[word];
}

/* Several words of one text are found as the first of them; is this a later one? */
static bool join_twin(struct words *words, uint16_t word)
{
	uint32_t bytes = words->begin[word + 1] - words->begin[word];

	for (uint16_t i = 0; i < word; i++)
		if (!words->twin[i] && words->begin[i + 1] - words->begin[i] == bytes &&
			!memcmp(words->text + words->begin[i],
				words->text + words->begin[word], bytes)) {
			words->twin[i] = word;
			return true;
		}
	return false;
}

enum err words_create(struct words **result, const char *const *list, uint32_t count)
{
	struct words *words = calloc(1, sizeof(*words));
	struct worths worths;
	size_t bytes = 0;

	assert(count <= WORDS_MAX);
	for (uint32_t i = 0; i < count; i++)
		bytes += strlen(list[i]);
	/* a letter more, as four are loaded for three */
	if (!words || !(words->text = calloc(bytes + 1, 1))) {
		words_destroy(words);
		return err_set(ERR_SYSTEM, "no memory for the words to look for");
	}
	worths_init(&worths);
	words->step = 2;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t letters = add_text(words, i, list[i]);

		assert(letters >= LETTERS);
		if (letters == LETTERS)
			words->step = 1;
	}
	for (uint32_t i = 0; i < count; i++)
		if (!join_twin(words, (uint16_t)i))
			for (uint32_t first = 0; first < words->step; first++)
				add_anchor(words, (uint16_t)i, first, &worths);
	*result = words;
	return OK;
}

void words_destroy(struct words *words)
{
	if (!words)
		return;
	free(words->text);
	free(words);
}

/* Is this word here? Its letters are small ones. */
static bool is_here(const char *text, const char *word, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c >= 'A' && c <= 'Z')
			c |= 0x20;
		if (c != (unsigned char)word[i])
			return false;
	}
	return true;
}

struct search {
	const struct words *words;
	const char *text;
	size_t bytes;
	uint16_t *found;
	uint32_t count, room;
};

/* A word and its twins, once. */
static void report(struct search *search, uint16_t word)
{
	for (uint32_t i = 0; i < search->count; i++)
		if (search->found[i] == word)
			return;
	do {
		if (search->count < search->room)
			search->found[search->count++] = word;
		word = search->words->twin[word];
	} while (word);
}

/* The filter says that letters at this place may be some word's. */
static __attribute__((noinline)) void look_closer(
	struct search *search, size_t at, uint32_t hash)
{
	const struct words *words = search->words;

	for (uint16_t i = words->chains[hash % CHAINS]; i;) {
		const struct anchor *anchor = &words->anchors[i - 1];
		size_t begin = words->begin[anchor->word];
		size_t bytes = words->begin[anchor->word + 1] - begin;

		i = anchor->next;
		if (at >= anchor->offset &&
			at - anchor->offset + bytes <= search->bytes &&
			is_here(search->text + at - anchor->offset, words->text + begin,
				bytes))
			report(search, anchor->word);
	}
}

uint32_t words_find(const struct words *words, const char *text, size_t bytes,
	uint16_t *found, uint32_t room)
{
	struct search search = {words, text, bytes, found, 0, room};
	size_t at = 0, step = words->step;
	char last[LETTERS + 1] = "";

	for (; at + sizeof(last) <= bytes; at += step) {
		uint32_t hash = letters_hash(text + at);

		if (has_bit(words->filter, hash))
			look_closer(&search, at, hash);
	}
	if (at + LETTERS == bytes) {
		memcpy(last, text + at, LETTERS);
		look_closer(&search, at, letters_hash(last));
	}
	return search.count;
}
