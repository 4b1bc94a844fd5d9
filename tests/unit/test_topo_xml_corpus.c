/* Every captured file loads, and writing and reading it again changes nothing. */
#include "topo/xml.h"

#include "data.h"

static char *printed(const struct xml_node *tree, size_t *bytes)
{
	char *text = NULL;
	FILE *file = open_memstream(&text, bytes);

	EQ(xml_print(file, tree), OK);
	fclose(file);
	return text;
}

/* One file is RCCL's, of another version: NCCL does not take it either. */
static void check_file(const char *folder, const char *file)
{
	const char *root = strstr(file, ".graph") ? "graphs" : "system";
	char path[2 * DATA_PATH_MAX];
	struct xml_node *tree, *again;
	size_t bytes;
	char *text;

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	if (strstr(path, "/rccl-")) {
		EQ(xml_read(path, root, &tree), ERR_USAGE);
		return;
	}
	EQ(xml_read(path, root, &tree), OK);
	text = printed(tree, &bytes);
	EQ(xml_parse(text, bytes, path, root, &again), OK);
	TRUE(xml_equal(tree, again));
	xml_free(again);
	again = xml_copy(NULL, tree);
	TRUE(xml_equal(tree, again));
	xml_free(again);
	xml_free(tree);
	free(text);
}

int main(void)
{
	return data_each("topologies", ".xml", check_file);
}
