/* Whatever the reader takes, it takes again after we have written it, and it is the same.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "topo/xml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void round_trip(struct xml_node *tree)
{
	struct xml_node *again = NULL, *copy = xml_copy(NULL, tree);
	char *text = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);

	assert(file && copy);
	assert(!xml_print(file, tree));
	fclose(file);
	/* Escapes make text longer. */
	if (size <= XML_FILE_MAX) {
		assert(!xml_parse(text, size, "again", "system", &again));
		assert(xml_equal(tree, again));
	}
	assert(xml_equal(tree, copy));
	free(text);
	xml_free(copy);
	xml_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct xml_node *tree;

	if (xml_parse((const char *)data, bytes, "fuzz", "system", &tree))
		return 0;
	round_trip(tree);
	xml_free(tree);
	return 0;
}
