/* The picture of a ring and a tree: every hop of the machine is there, and inside. */
#include <unistd.h>

#include "test.h"
#include "weft/graph.h"

enum { PICTURE_BYTES = 1 << 18 };

static char picture[PICTURE_BYTES];

static void draw(const char *machine, uint32_t hosts, int channel)
{
	char path[] = "/tmp/weft-svg-XXXXXX", *name = (char *)(uintptr_t)machine;
	struct graph_args args = {.svg = path, .channel = channel};
	struct graph_job job;
	FILE *file;
	size_t bytes;

	close(mkstemp(path));
	graph_job_init(&job);
	job.args.host_count = hosts;
	EQ(graph_job_load(&job, 1, &name), OK);
	EQ(graph_job_run(&job), OK);
	EQ(graph_svg(&job, &args), OK);
	args.channel = job.decision->cluster->channel_count;
	EQ(graph_svg(&job, &args), ERR_USAGE);
	file = fopen(path, "r");
	TRUE(file);
	bytes = fread(picture, 1, sizeof(picture) - 1, file);
	picture[bytes] = 0;
	fclose(file);
	unlink(path);
	graph_job_fini(&job);
}

/* How many hops of a kind, all of them within the picture. */
static int hops(const char *class)
{
	char start[64];
	double width, height, x, y;
	int count = 0;

	snprintf(start, sizeof(start), "<path class=\"%s\" d=\"M", class);
	EQ(sscanf(strstr(picture, "viewBox"), "viewBox=\"0 0 %lf %lf", &width, &height),
		2);
	for (const char *at = picture; (at = strstr(at, start)); count++) {
		at += strlen(start);
		EQ(sscanf(at, "%lf %lf", &x, &y), 2);
		TRUE(x > 0 && x < width && y > 0 && y < height);
	}
	return count;
}

int main(void)
{
	draw("dgx-h100", 1, -1);
	EQ(hops("ring"), 8);
	EQ(hops("tree"), 7);
	TRUE(strstr(picture, "Ring of channel 0: rank 0"));
	TRUE(!strstr(picture, "between nodes"));
	TRUE(strstr(picture, ": rank 0 \u2192 1"));
	draw("dgx-h100", 2, 1);
	EQ(hops("ring"), 9); /* seven inside, one out, one in */
	TRUE(hops("tree") >= 8);
	TRUE(strstr(picture, "Ring of channel 1: rank "));
	TRUE(strstr(picture, "between nodes"));
	draw("pcie-l40s-8gpu-2nic", 2, 0);
	EQ(hops("ring"), 9);
	return 0;
}
