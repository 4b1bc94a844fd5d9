/* The tree behind NCCL's files: what is changed in it is as it should be, what is written
 * comes back, and no file can do harm. */
#include "topo/xml.h"

#include <locale.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

static enum err parse(const char *text, struct xml_node **tree)
{
	return xml_parse(text, strlen(text), "t.xml", "system", tree);
}

static struct xml_node *parsed(const char *text)
{
	struct xml_node *tree = NULL;

	EQ(parse(text, &tree), OK);
	return tree;
}

static char *printed(const struct xml_node *tree)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *file = open_memstream(&text, &bytes);

	EQ(xml_print(file, tree), OK);
	fclose(file);
	return text;
}

/* Refused with a sentence that begins like this, and no tree. */
static void refused(const char *text, const char *sentence)
{
	struct xml_node *tree = NULL;

	EQ(parse(text, &tree), ERR_USAGE);
	TRUE(!tree);
	if (strncmp(err_last(), sentence, strlen(sentence)) != 0)
		EQ_STR(err_last(), sentence);
}

static void test_tree(void)
{
	struct xml_node *root = xml_add(NULL, "system"), *cpu, *pci, *copy;

	EQ(xml_attr_set(root, "version", "1"), OK);
	cpu = xml_add(root, "cpu");
	EQ(xml_attr_setf(cpu, "numaid", "%d", -1), OK);
	for (int i = 0; i < 6; i++)
		EQ(xml_attr_setf(xml_add(cpu, "pci"), "busid", "%d", i), OK);
	pci = xml_sub_with(cpu, "pci", "busid", "5");
	xml_place_last(cpu, 0);
	TRUE(cpu->subs[0] == pci);
	TRUE(xml_sub(cpu, "pci") == pci);
	EQ_STR(xml_attr(cpu->subs[5], "busid"), "4");
	xml_free(xml_sub_with(cpu, "pci", "busid", "2"));
	EQ(cpu->sub_count, 5);
	TRUE(!xml_sub_with(cpu, "pci", "busid", "2"));
	xml_place_last(cpu, 4); /* to where it is */
	EQ_STR(xml_attr(cpu->subs[4], "busid"), "4");
	TRUE(!xml_sub(cpu, "gpu"));

	copy = xml_copy(NULL, root);
	TRUE(xml_equal(copy, root));
	TRUE(xml_same(copy, root));
	xml_free(copy->subs[0]->subs[4]);
	TRUE(!xml_equal(copy, root));
	TRUE(xml_copy(copy->subs[0], cpu->subs[4]));
	TRUE(xml_equal(copy, root));
	EQ(xml_attr_set(copy->subs[0]->subs[4], "busid", "x"), OK);
	TRUE(!xml_equal(copy, root));
	xml_free(copy);
	xml_free(root);
	xml_free(NULL);
}

static void test_attrs(void)
{
	struct xml_node *node = xml_add(NULL, "gpu"), *other = xml_add(NULL, "gpu");
	char big[XML_VALUE_MAX + 2];

	memset(big, 'x', sizeof(big));
	big[XML_VALUE_MAX + 1] = 0;
	EQ(xml_attr_set(node, "a", big), ERR_USAGE);
	EQ(xml_attr_setf(node, "a", "%sy", big), ERR_USAGE);
	EQ(node->attr_count, 0);
	for (int i = 0; i < XML_ATTRS_MAX; i++) {
		char name[8];

		snprintf(name, sizeof(name), "a%d", i);
		EQ(xml_attr_set(node, name, "1"), OK);
		snprintf(name, sizeof(name), "a%d", XML_ATTRS_MAX - 1 - i);
		EQ(xml_attr_set(other, name, "1"), OK);
	}
	EQ(xml_attr_set(node, "more", "1"), ERR_USAGE);
	EQ(xml_attr_set(node, "a3", "2"), OK);
	TRUE(!xml_same(node, other));
	EQ(xml_attr_default(node, "a3", "7"), OK);
	EQ_STR(xml_attr(node, "a3"), "2");
	xml_attr_remove(node, "a3");
	xml_attr_remove(node, "a3");
	TRUE(!xml_attr(node, "a3"));
	EQ(xml_attr_default(node, "a3", "1"), OK);
	TRUE(xml_same(node, other)); /* in whatever order */
	xml_free(node);
	xml_free(other);
}

static void test_numbers(void)
{
	struct xml_node *node = parsed("<system version='1' dec='12' hex='0x1f' neg='-1' "
				       "half='0.5' word='x' tail='16x' bare='ff' "
				       "big='99999999999999999999' inf='inf' none=''/>");

	EQ(xml_int(node, "dec", 7), 12);
	EQ(xml_int(node, "hex", 7), 31);
	EQ(xml_int(node, "neg", 7), -1);
	EQ(xml_int(node, "tail", 7), 16);
	EQ(xml_int(node, "word", 7), 7);
	EQ(xml_int(node, "none", 7), 7);
	EQ(xml_int(node, "big", 7), 7);
	EQ(xml_int(node, "absent", 7), 7);
	EQ(xml_hex(node, "hex", 7), 31);
	EQ(xml_hex(node, "bare", 7), 255);
	EQ(xml_hex(node, "word", 7), 7);
	EQ(xml_hex(node, "big", 7), 7);
	TRUE(xml_float(node, "half", 7) == 0.5f);
	TRUE(xml_float(node, "inf", 7) == 7);
	TRUE(xml_float(node, "word", 7) == 7);
	xml_free(node);
}

/* A program that writes 1,5 reads and writes 1.5 here. Where no such locale is installed
 * this tests nothing more than the C one. */
static void test_locale(void)
{
	struct xml_node *node = xml_add(NULL, "net");

	setlocale(LC_ALL, "de_DE.UTF-8");
	EQ(xml_attr_setf(node, "latency", "%g", 1.5), OK);
	EQ_STR(xml_attr(node, "latency"), "1.5");
	TRUE(xml_float(node, "latency", 0) == 1.5f);
	setlocale(LC_ALL, "C");
	xml_free(node);
}

static void test_find(void)
{
	struct xml_node *tree = parsed("<system version='1'><cpu><pci n='1'><pci n='2'/>"
				       "</pci></cpu><cpu><nic><net/></nic><pci n='3'/>"
				       "</cpu></system>");
	struct xml_node *node = NULL;

	for (int n = 1; n <= 3; n++) {
		node = xml_find(tree, "pci", node);
		TRUE(node);
		EQ(xml_int(node, "n", 0), n);
	}
	TRUE(!xml_find(tree, "pci", node));
	TRUE(xml_find(tree, "system", NULL) == tree);
	TRUE(!xml_find(tree->subs[0], "net", NULL)); /* not outside */
	xml_free(tree);
}

static void test_text(void)
{
	struct xml_node *tree, *again;
	char *text;

	tree = parsed("<?xml version='1.0'?>\n<!-- ---- two -- dashes --- -->\n"
		      "<system\n\tversion=\"1\">\n<cpu numaid='0' vendor='a&amp;b&lt;&gt;"
		      "&quot;&apos;&#10;&#9;'>\n<odd/></cpu></system>\n<!-- end -->\n");
	EQ(tree->line, 3);
	EQ(tree->subs[0]->line, 5);
	EQ_STR(xml_attr(tree->subs[0], "vendor"), "a&b<>\"'\n\t");
	text = printed(tree);
	EQ_STR(text, "<system version=\"1\">\n"
		     "  <cpu numaid=\"0\" vendor=\"a&amp;b&lt;&gt;&quot;'&#10;&#9;\">\n"
		     "    <odd/>\n"
		     "  </cpu>\n"
		     "</system>\n");
	again = parsed(text);
	TRUE(xml_equal(tree, again));
	free(text);
	xml_free(again);
	EQ(xml_attr_set(tree->subs[0], "vendor", "bell\a"), OK);
	text = printed(tree->subs[0]);
	EQ_STR(text, "<cpu numaid=\"0\" vendor=\"bell?\">\n  <odd/>\n</cpu>\n");
	free(text);
	xml_free(tree);
}

/* Bytes that are no UTF-8 are ISO-8859-1, in comments and in values. */
static void test_latin1(void)
{
	struct xml_node *tree = parsed(
		"<system version='1' name='\xe9'><!-- \xfc --></system>");

	EQ_STR(xml_attr(tree, "name"), "\xc3\xa9");
	xml_free(tree);
	tree = parsed("\xef\xbb\xbf<system version='1' name='\xc3\xa9'/>");
	EQ_STR(xml_attr(tree, "name"), "\xc3\xa9");
	xml_free(tree);
}

static void test_refused(void)
{
	refused("", "t.xml:1: no element found");
	refused("\n\n", "t.xml:3: no element found");
	refused("<system version='1'>\n<cpu>\n", "t.xml:3: no element found");
	refused("<system version='1'>\n<cpu>\n</pci></system>",
		"t.xml:3: mismatched tag");
	refused("<system version='1'>\n<cpu a=3/></system>", "t.xml:2: not well-formed");
	refused("<system version='1' a='&b;'/>", "t.xml:1: undefined entity");
	refused("<system version='1' a='b & c'/>", "t.xml:1: not well-formed");
	refused("<system version='1' a='&#0;'/>", "t.xml:1: reference to invalid char");
	refused("<system version='1' a='1' a='2'/>", "t.xml:1: duplicate attribute");
	refused("<system version='1'/><system version='1'/>", "t.xml:1: junk after");
	refused("<system version='1'>\nhello</system>", "t.xml:2: text inside <system>");
	refused("<!-- never ends <system version='1'/>", "t.xml:1: ");
	refused("<system version='2'/>", "t.xml:1: <system> has version \"2\"");
	refused("<system version='1.0'/>", "t.xml:1: <system> has version \"1.0\"");
	refused("\n<system/>", "t.xml:2: <system> has no version");
	refused("<system version='1'>\n<\xaa/></system>", "t.xml:2: name \"\xc2\xaa\"");
	refused("<system version='1' \xc3\xa9='1'/>", "t.xml:1: name \"\xc3\xa9\"");
	refused("<graphs version='1'/>", "t.xml:1: the outermost element is <graphs>");
	refused("\x7f"
		"ELF",
		"t.xml:1: not well-formed");
	refused("<!DOCTYPE system [\n<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;'>]>"
		"<system version='1' x='&b;'/>",
		"t.xml:1: document type system");
	refused("<!DOCTYPE system SYSTEM 'file:///etc/passwd'><system version='1'/>",
		"t.xml:1: document type system");
}

/* `count` times `piece` between a head and a tail. */
static char *repeated(const char *head, const char *piece, int count, const char *tail)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *file = open_memstream(&text, &bytes);

	fputs(head, file);
	for (int i = 0; i < count; i++)
		fprintf(file, piece, i);
	fputs(tail, file);
	fclose(file);
	return text;
}

static void test_limits(void)
{
	const char *head = "<system version='1'>\n", *tail = "</system>";
	struct xml_node *tree = NULL;
	char *text = repeated(head, "<a n='%d'/>", 100000, tail);

	refused(text, "t.xml:2: more than 65536 elements");
	free(text);
	text = repeated(head, "<a n='%d'/>", XML_NODES_MAX - 1, tail);
	tree = parsed(text);
	EQ(tree->sub_count, XML_NODES_MAX - 1);
	TRUE(!xml_find(tree, "b", NULL));
	xml_free(tree);
	free(text);
	text = repeated(head, "<a%d>", 100000, "");
	refused(text, "t.xml:2: elements nest deeper than 64");
	free(text);
	text = repeated("<system version='1' ", "a%d='' ", XML_ATTRS_MAX, "/>");
	refused(text, "t.xml:1: <system> has 33 attributes, more than 32");
	free(text);
	text = repeated("<system version='1' x='", "y", XML_VALUE_MAX + 1, "'/>");
	refused(text, "t.xml:1: attribute x of <system> is over 4096 bytes");
	free(text);
	text = repeated("<system version='1' x='", "y", 4000000, "'/>");
	refused(text, "t.xml:1: attribute x of <system> is over 4096 bytes");
	free(text);
	text = repeated("<system version='1'><", "y", XML_VALUE_MAX + 1, "/></system>");
	refused(text, "t.xml:1: a name is over 4096 bytes");
	free(text);
	text = repeated(head, " ", XML_FILE_MAX, tail);
	refused(text, "t.xml is larger than 16 MB");
	free(text);
}

/* Every beginning of a file is refused, and nothing is read beyond it. */
static void test_truncated(void)
{
	const char *text = "<system version='1'><!-- - --><cpu a='&lt;'/></system>";

	for (size_t bytes = 0; bytes < strlen(text); bytes++) {
		char *part = malloc(bytes + 1);
		struct xml_node *tree;

		memcpy(part, text, bytes);
		EQ(xml_parse(part, bytes, "t.xml", "system", &tree), ERR_USAGE);
		free(part);
	}
}

static void test_files(void)
{
	char path[] = "/tmp/test_topo_xml.XXXXXX";
	int fd = mkstemp(path);
	struct xml_node *tree = parsed("<system version='1'><cpu/></system>"), *again;

	TRUE(fd >= 0);
	close(fd);
	EQ(xml_read(path, "system", &again), ERR_USAGE); /* empty */
	EQ(xml_write(path, tree), OK);
	EQ(xml_read(path, "system", &again), OK);
	TRUE(xml_equal(tree, again));
	xml_free(again);
	EQ(unlink(path), 0);
	EQ(xml_read(path, "system", &again), ERR_SYSTEM);
	TRUE(strstr(err_last(), path) && strstr(err_last(), "No such file"));
	EQ(xml_read("/tmp", "system", &again), ERR_SYSTEM);
	TRUE(strstr(err_last(), "Is a directory"));
	EQ(xml_read("/dev/zero", "system", &again), ERR_USAGE); /* no end */
	EQ(mkfifo(path, 0600), 0);
	EQ(xml_read(path, "system", &again), ERR_USAGE); /* nobody writes */
	EQ(unlink(path), 0);
	EQ(xml_write("/tmp", tree), ERR_SYSTEM);
	EQ(xml_write("/dev/full", tree), ERR_SYSTEM);
	TRUE(strstr(err_last(), "No space left"));
	xml_free(tree);
}

int main(void)
{
	test_tree();
	test_attrs();
	test_numbers();
	test_locale();
	test_find();
	test_text();
	test_latin1();
	test_refused();
	test_limits();
	test_truncated();
	test_files();
	return 0;
}
