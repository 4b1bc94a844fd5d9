/* weft topo: its arguments, its names, its sentences, and pictures of all machines we
 * know: well-formed, no text over another, none outside. */
#include "weft/topo.h"

#include <dirent.h>
#include <expat.h>

#include "base/param.h"
#include "test.h"
#include "topo/instance.h"
#include "weft/topo_explain.h"
#include "weft/topo_svg.h"

static bool parse(struct topo_args *args, const char *line)
{
	static char copy[256]; /* args borrow from it */
	char *words[32] = {"topo"}, *rest = copy, *word;
	int count = 1;

	snprintf(copy, sizeof(copy), "%s", line);
	while (count < 31 && (word = strsep(&rest, " ")))
		if (*word)
			words[count++] = word;
	return topo_args_parse(args, count, words);
}

static void test_args(void)
{
	struct topo_args args;

	TRUE(parse(&args, ""));
	TRUE(!args.machine && !args.paths);
	TRUE(parse(&args, "box.xml --explain GPU0 NIC1 --paths --svg a.svg"));
	EQ_STR(args.machine, "box.xml");
	EQ_STR(args.explain[0], "GPU0");
	EQ_STR(args.explain[1], "NIC1");
	EQ_STR(args.svg, "a.svg");
	TRUE(args.paths && !args.json);
	TRUE(parse(&args, "box.xml --no-nvml-p2p --plain --json --xml o"));
	EQ_STR(args.machine, "box.xml");
	TRUE(args.no_nvml_p2p && args.plain && args.json && args.xml);
	TRUE(parse(&args, "--plain -- box.xml"));
	EQ_STR(args.machine, "box.xml");
	TRUE(!parse(&args, "a b"));
	TRUE(!parse(&args, "a -- b"));
	TRUE(!parse(&args, "a --list"));
	TRUE(parse(&args, "--list --json"));
	TRUE(args.list && args.json);
	TRUE(parse(&args, "a --nodes 2 --svg x --wide"));
	TRUE(args.nodes == 2 && args.wide);
	TRUE(!parse(&args, "a --nodes 2"));
	TRUE(!parse(&args, "a --nodes 0 --svg x"));
	TRUE(!parse(&args, "a --paths --json"));
	TRUE(!parse(&args, "a --svg - --xml -"));
	TRUE(!parse(&args, "-x"));
	TRUE(!parse(&args, "a --explain GPU0"));
	TRUE(!parse(&args, "a --svg"));
	TRUE(!parse(&args, "--wrong"));
}

static char *explain(const char *machine, const char *a, const char *b, bool no_p2p)
{
	struct topo_view view;
	char *text = NULL;
	size_t bytes = 0;
	FILE *file = open_memstream(&text, &bytes);

	TRUE(file);
	EQ(topo_view_open(&view, machine, no_p2p, NET_CHOICE_AUTO), OK);
	EQ(topo_explain(file, &view, a, b), OK);
	fclose(file);
	topo_view_close(&view);
	return text;
}

static void expect(char *text, const char *const *sentences)
{
	for (; *sentences; sentences++)
		if (!strstr(text, *sentences)) {
			fprintf(stderr, "no \"%s\" in:\n%s", *sentences, text);
			exit(1);
		}
	free(text);
}

static void test_explain(void)
{
	expect(explain("dgx-1v", "GPU0", "GPU3", false),
		(const char *[]){"calls it NV2", "the way: NVL, 40.0 GB/s",
			"transport: P2P", "NVL is within PXB", "NCCL_P2P_DISABLE=1 gives",
			NULL});
	expect(explain("dgx-1v", "0", "5", false),
		(const char *[]){"the way: NVB, 20.0 GB/s", "GPU1 lies between",
			"calls it SYS", NULL});
	expect(explain("pcie-l40s-8gpu-2nic", "GPU0", "GPU1", false),
		(const char *[]){"calls it PIX", "PCIe switch 0000:10:00.0",
			"transport: P2P", NULL});
	expect(explain("pcie-l40s-8gpu-2nic", "GPU0", "0000:24:00.0", false),
		(const char *[]){"calls it NODE", "transport: SHM", "PHB is beyond PXB",
			"NCCL_P2P_LEVEL=PHB gives P2P, PHB at 24.0 GB/s", NULL});
	expect(explain("pcie-l40s-8gpu-2nic", "GPU0", "GPU1", true),
		(const char *[]){"the direct way would be PIX", "NVML says",
			"nothing in NCCL", NULL});
	expect(explain("dgx-h100", "mlx5_3", "GPU0", false),
		(const char *[]){"sending: PXN", "NVSwitch", "sending: on",
			"on channel 0 GPU0 uses mlx5_0",
			"NCCL_PXN_DISABLE=1 gives PHB at 48.0 GB/s for sending instead "
			"of PXN at 48.0 GB/s; GPUDirect RDMA off instead of on",
			NULL});
	expect(explain("pcie-l40s-8gpu-2nic", "GPU7", "NIC0", false),
		(const char *[]){"sending: off, staged in host memory",
			"NCCL_NET_GDR_LEVEL=SYS gives GPUDirect RDMA on instead of off",
			NULL});
}

/* What is proposed changes something; both directions are one story; P2C has a meaning.
 */
static void test_explain_gdr(void)
{
	char *text = explain("g6e.48xlarge", "GPU0", "NIC0", false);

	TRUE(!strstr(text, "GDR_LEVEL"));
	expect(text, (const char *[]){"the NIC or its driver does not do",
			     "to change it: no variable does", NULL});
	expect(explain("p5.48xlarge", "gpu0", "RDMAP99S0", false),
		(const char *[]){"receiving: PHB, 12.0 GB/s",
			"from GPU1, which sends for GPU0, it is PIX",
			"what is received does not pass GPU1 and takes the way above, "
			"PHB",
			"up to P2C, the chip-to-chip link to the CPU and one host "
			"bridge; without such a link, as here, that is up to PXB",
			NULL});
	text = explain("p6e-gb200.36xlarge", "GPU0", "NIC0", false);
	TRUE(!strstr(text, "as here"));
	expect(text, (const char *[]){"from GPU0 it is P2C",
			     "up to P2C, the chip-to-chip link", NULL});
	setenv("NCCL_NET_GDR_READ", "0", 1);
	param_forget(PARAM_NET_GDR_READ);
	expect(explain("dgx-h100", "GPU0", "mlx5_0", false),
		(const char *[]){"NCCL_NET_GDR_READ=1 gives GPUDirect RDMA for sending "
				 "on instead of off",
			NULL});
	unsetenv("NCCL_NET_GDR_READ");
}

static void test_names(void)
{
	struct topo_view view;

	EQ(topo_view_open(&view, "dgx-1v", false, NET_CHOICE_AUTO), OK);
	EQ(topo_view_find(&view, "gpu3")->gpu.dev, 3);
	EQ_STR(topo_view_find(&view, "MLX5_1")->net.name, "mlx5_1");
	EQ(topo_view_find(&view, "06:00.0") == topo_view_find(&view, "GPU0"), 1);
	EQ_STR(topo_view_find(&view, "NIC1")->net.name, "mlx5_1");
	EQ_STR(topo_view_find(&view, "NET2")->net.name, "mlx5_2");
	EQ_STR(topo_view_find(&view, "0000:0c:00.0")->net.name, "mlx5_1");
	TRUE(!topo_view_find(&view, "GPU8"));
	TRUE(!topo_view_find(&view, "NIC4"));
	TRUE(!topo_view_find(&view, "mlx5"));
	TRUE(!topo_view_find(&view, "ff:00.0"));
	EQ(topo_explain(stdout, &view, "mlx5_0", "mlx5_1"), ERR_USAGE);
	EQ(topo_explain(stdout, &view, "GPU0", "GPU99"), ERR_USAGE);
	topo_view_close(&view);
	EQ(topo_view_open(&view, "no-such-machine", false, NET_CHOICE_AUTO), ERR_USAGE);
	EQ(topo_view_open(&view, "DGX-1V", false, NET_CHOICE_AUTO), OK);
	EQ_STR(view.name, "dgx-1v");
	topo_view_close(&view);
}

enum { TEXTS_MAX = 8192 };

struct rectangle {
	double left, top, right, bottom;
};

struct picture {
	double width, height;
	struct rectangle texts[TEXTS_MAX];
	int count;
	double x, y, size;
	char anchor;
	int glyphs;
	bool inside;
	char text[256];		    /* of the element being read */
	char all[1 << 18];	    /* every text, a line each */
	double smallest;	    /* font */
	struct rectangle bar;	    /* the widest of a GPU's colour: NVSwitch */
	double gpu_left, gpu_right; /* what all of that colour reach over */
};

static const char *attribute(const char **attributes, const char *name)
{
	for (; *attributes; attributes += 2)
		if (!strcmp(*attributes, name))
			return attributes[1];
	return "";
}

static void on_gpu(struct picture *picture, double x, double width)
{
	if (!(picture->gpu_right > 0) || x < picture->gpu_left)
		picture->gpu_left = x;
	if (x + width > picture->gpu_right)
		picture->gpu_right = x + width;
	if (width > picture->bar.right - picture->bar.left)
		picture->bar = (struct rectangle){.left = x, .right = x + width};
}

static void on_start(void *context, const char *name, const char **attributes)
{
	struct picture *picture = context;

	if (!strcmp(name, "svg")) {
		picture->width = atof(attribute(attributes, "width"));
		picture->height = atof(attribute(attributes, "height"));
	}
	if (!strcmp(attribute(attributes, "class"), "box gpu"))
		on_gpu(picture, atof(attribute(attributes, "x")),
			atof(attribute(attributes, "width")));
	picture->inside = !strcmp(name, "text");
	picture->text[0] = '\0';
	picture->x = atof(attribute(attributes, "x"));
	picture->y = atof(attribute(attributes, "y"));
	picture->size = atof(attribute(attributes, "font-size"));
	picture->anchor = attribute(attributes, "text-anchor")[0];
	picture->glyphs = 0;
}

static void on_text(void *context, const char *text, int bytes)
{
	struct picture *picture = context;

	for (int i = 0; i < bytes; i++)
		picture->glyphs += ((unsigned char)text[i] & 0xc0) != 0x80;
	if (picture->inside && strlen(picture->text) + (size_t)bytes < 256)
		strncat(picture->text, text, (size_t)bytes);
}

/* As wide as text usually is in the fonts that are asked for. */
static void on_end(void *context, const char *name)
{
	struct picture *picture = context;
	double width = picture->glyphs * picture->size * 0.58;
	double left = picture->anchor == 's'   ? picture->x
		      : picture->anchor == 'e' ? picture->x - width
					       : picture->x - width / 2;

	if (strcmp(name, "text") || picture->count == TEXTS_MAX)
		return;
	/* A number says of what. */
	TRUE(picture->text[strspn(picture->text, "0123456789. ")]);
	if (!(picture->smallest > 0) || picture->size < picture->smallest)
		picture->smallest = picture->size;
	if (strlen(picture->all) + 260 < sizeof(picture->all)) {
		strcat(picture->all, picture->text);
		strcat(picture->all, "\n");
	}
	picture->texts[picture->count++] = (struct rectangle){left,
		picture->y - 0.75 * picture->size, left + width,
		picture->y + 0.2 * picture->size};
}

/* The caller's; free() it. */
static struct picture *check_picture(const char *name, const char *text)
{
	struct picture *picture = calloc(1, sizeof(*picture));
	XML_Parser parser = XML_ParserCreate(NULL);

	TRUE(picture && parser);
	XML_SetUserData(parser, picture);
	XML_SetElementHandler(parser, on_start, on_end);
	XML_SetCharacterDataHandler(parser, on_text);
	EQ(XML_Parse(parser, text, (int)strlen(text), 1), XML_STATUS_OK);
	XML_ParserFree(parser);
	TRUE(picture->count > 2);
	for (int i = 0; i < picture->count; i++) {
		const struct rectangle *a = &picture->texts[i];

		if (a->left < 0 || a->top < 0 || a->right > picture->width ||
			a->bottom > picture->height) {
			fprintf(stderr, "%s: text %d is outside\n", name, i);
			exit(1);
		}
		for (int j = 0; j < i; j++) {
			const struct rectangle *b = &picture->texts[j];

			if (a->left < b->right && b->left < a->right &&
				a->top < b->bottom && b->top < a->bottom) {
				fprintf(stderr, "%s: texts %d and %d overlap\n", name, j,
					i);
				exit(1);
			}
		}
	}
	TRUE(!strstr(picture->all, "capability"));
	if (strstr(picture->all, "NVSwitch")) {
		TRUE(picture->bar.left <= picture->gpu_left + 0.2);
		TRUE(picture->bar.right >= picture->gpu_right - 0.2);
	}
	return picture;
}

static struct picture *draw(const char *machine, uint32_t nodes)
{
	struct picture *seen;
	struct topo_picture picture = {.name = "<a & \"b\">", .nodes = nodes};
	struct topo_view view;
	struct topo *whole = NULL;
	char *text = NULL;
	size_t bytes = 0;
	FILE *file = open_memstream(&text, &bytes);

	TRUE(file);
	EQ(topo_view_open(&view, machine, false, NET_CHOICE_AUTO), OK);
	EQ(topo_view_whole(&view, &whole), OK);
	EQ(topo_svg(file, whole, &picture), OK);
	fclose(file);
	seen = check_picture(machine ? machine : "this", text);
	free(text);
	topo_free(whole);
	topo_view_close(&view);
	return seen;
}

/* The smallest text when the picture fills a slide of 1280 x 720. */
static double on_slide(const struct picture *picture)
{
	double across = 1280 / picture->width, down = 720 / picture->height;

	return picture->smallest * (across < down ? across : down);
}

static void test_pictures(void)
{
	static const char *const names[] = {"dgx-1v", "dgx-h100", "p4d.24xlarge",
		"p5.48xlarge-32efa", "p6e-gb200.36xlarge", "pcie-l40s-8gpu-2nic"};
	static const char *const models[] = {
		"V100", "H100", "A100-40GB", "H100", "GB200", "L40S"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct picture *one = draw(names[i], 1), *two = draw(names[i], 2);

		TRUE(strstr(one->all, models[i]));
		TRUE(!strstr(one->all, "rail"));
		TRUE(on_slide(one) >= 12);
		TRUE(strstr(two->all, "machine 0") && strstr(two->all, "machine 1"));
		TRUE(strstr(two->all, "rail 0") || strstr(two->all, "rails 0-"));
		TRUE(on_slide(two) >= 8.5);
		free(one);
		free(two);
	}
}

/* Every topology of the corpora, where they are. */
static int draw_corpora(void)
{
	const char *data = getenv("WEFT_DATA");
	char folder[512], path[1024];
	struct dirent *entry;
	DIR *directory;
	int count = 0;

	snprintf(folder, sizeof(folder), "%s/topologies", data ? data : WEFT_SHARED_DATA);
	directory = opendir(folder);
	while (directory && (entry = readdir(directory))) {
		struct xml_node *tree = NULL;

		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (!strstr(entry->d_name, ".xml") || xml_read(path, "system", &tree))
			continue;
		xml_free(tree);
		free(draw(path, 1));
		free(draw(path, 2));
		count++;
	}
	if (directory)
		closedir(directory);
	return count;
}

int main(void)
{
	uint32_t count;
	const struct instance_info *machines = instance_list(&count);

	test_args();
	test_names();
	test_explain();
	test_explain_gdr();
	for (uint32_t i = 0; i < count; i++) {
		free(draw(machines[i].name, 1));
		free(draw(machines[i].name, 3));
	}
	free(draw(NULL, 1));
	test_pictures();
	printf("%u pictures and %d of the corpora\n", count + 1, draw_corpora());
	return 0;
}
