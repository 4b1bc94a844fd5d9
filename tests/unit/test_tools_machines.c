/* Machines come by file name, all of them or none, with a sentence that helps. */
#include <unistd.h>

#include "test.h"
#include "weft/machines.h"

static const char text[] =
	"<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\"/></system>\n";

int main(void)
{
	char folder[] = "/tmp/weft-machines-XXXXXX", path[64], other[64];
	struct machines machines = {0};
	char *names[3] = {path, path, other};
	FILE *file;

	TRUE(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/box-1.xml", folder);
	snprintf(other, sizeof(other), "%s/missing.xml", folder);
	file = fopen(path, "w");
	TRUE(file);
	TRUE(fputs(text, file) >= 0 && !fclose(file));

	EQ(machines_load(2, names, &machines), OK);
	EQ(machines.count, 2);
	EQ_STR(machines.names[0], "box-1");
	EQ_STR(machines.trees[1]->name, "system");
	machines_free(&machines);
	EQ(machines.count, 0);

	EQ(machines_load(3, names, &machines), ERR_USAGE);
	TRUE(strstr(err_last(), "missing.xml"));
	EQ(machines.count, 0); /* unchanged on failure */
	EQ(machines_load(-1, names, &machines), ERR_USAGE);
	machines_free(&machines);

	/* Instance types: the name itself, one that is nearly it, one like nothing. */
	names[0] = "dgx-h100";
	EQ(machines_load(1, names, &machines), OK);
	EQ_STR(machines.names[0], "dgx-h100");
	machines_free(&machines);
	names[0] = "dgx-h10";
	EQ(machines_load(1, names, &machines), ERR_USAGE);
	TRUE(strstr(err_last(), "dgx-h100"));
	names[0] = "a-house";
	EQ(machines_load(1, names, &machines), ERR_USAGE);
	TRUE(strstr(err_last(), "neither"));

	EQ(unlink(path), 0);
	EQ(rmdir(folder), 0);
	return 0;
}
