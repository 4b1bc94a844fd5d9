/* What the RDMA protocol of the libfabric plugin counts and cuts, and which interfaces
 * are rails of one device. */
#include <stdint.h>

#include "group.h"
#include "rdma.h"
#include "test.h"

static void test_numbers(void)
{
	const struct rdma_part parts[] = {
		{0, 0, 0, 1}, {65535, 1023, 3, 4}, {1, 1024, 1, 2}, {40000, 77777, 2, 3}};

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		struct rdma_part got = rdma_part(rdma_number(parts[i]));

		EQ(got.receiver, parts[i].receiver);
		EQ(got.sequence, parts[i].sequence % 1024);
		EQ(got.part, parts[i].part);
		EQ(got.count, parts[i].count);
	}
}

/* All of a message, each part but the last as long as the others and whole lines. */
static void test_parts(void)
{
	for (int rails = 1; rails <= RAILS_MAX; rails++)
		for (size_t bytes = 0; bytes < 3000; bytes += bytes < 600 ? 1 : 37) {
			size_t part_bytes;
			uint32_t count = rdma_parts(bytes, rails, 256, &part_bytes);

			TRUE(count >= 1 && count <= (uint32_t)rails);
			EQ(part_bytes % 128, 0);
			TRUE(count * part_bytes >= bytes);
			TRUE(count == 1 || (count - 1) * part_bytes < bytes);
			if (bytes < 512)
				EQ(count, 1);
			if (bytes > 512u * (unsigned)rails)
				EQ(count, rails);
		}
}

enum { PATHS = 64, PATH_BYTES = 96 };
static char gpu_text[PATHS][PATH_BYTES], nic_text[PATHS][PATH_BYTES];
static const char *gpu_paths[PATHS], *nic_paths[PATHS];
static struct nic_groups groups;

/* `switches` of them, each with so many. */
static void machine(int switches, int gpus, int nics)
{
	for (int s = 0; s < switches; s++) {
		for (int i = 0; i < gpus; i++) {
			int g = s * gpus + i;

			snprintf(gpu_text[g], PATH_BYTES,
				"/sys/devices/pci0000:%02x/0000:%02x:00.0/"
				"0000:%02x:0%x.0",
				s, s, s + 64, i);
			gpu_paths[g] = gpu_text[g];
		}
		for (int i = 0; i < nics; i++) {
			int n = s * nics + i;

			snprintf(nic_text[n], PATH_BYTES,
				"/sys/devices/pci0000:%02x/0000:%02x:00.0/"
				"0000:%02x:1%x.0",
				s, s, s + 64, i);
			nic_paths[n] = nic_text[n];
		}
	}
	nics_group(nic_paths, switches * nics, gpu_paths, switches * gpus, &groups);
}

static void sizes_are(int count, int size)
{
	int seen = 0;

	EQ(groups.count, count);
	for (int i = 0; i < count; i++) {
		EQ(groups.sizes[i], size);
		seen += groups.sizes[i];
	}
	EQ(seen, count * size);
}

static void test_groups(void)
{
	machine(4, 2, 1); /* p4d: two GPUs share one, and one of the groups is empty */
	sizes_are(4, 1);
	machine(8, 1, 4); /* p5 */
	sizes_are(8, 4);
	EQ(groups.members[1][0], 4);
	EQ(groups.members[7][3], 31);
	machine(4, 2, 4); /* p5en */
	sizes_are(8, 2);
	machine(1, 2, 3); /* what is over goes to the first */
	EQ(groups.count, 2);
	EQ(groups.sizes[0], 2);
	EQ(groups.sizes[1], 1);
	machine(2, 0, 3); /* no GPU */
	sizes_are(6, 1);
	nics_lone_drop(&groups); /* there is nothing else */
	sizes_are(6, 1);
	machine(2, 2, 4);
	nic_paths[3] = "/sys/devices/pci0000:70/0000:71:00.0";
	nics_group(nic_paths, 8, gpu_paths, 4, &groups);
	EQ(groups.count, 5);
	nics_lone_drop(&groups);
	EQ(groups.count, 4);
	for (int g = 0; g < 4; g++)
		for (int i = 0; i < groups.sizes[g]; i++)
			TRUE(groups.members[g][i] != 3);
	nic_paths[0] = "";
	nics_group(nic_paths, 1, gpu_paths, 0, &groups); /* no path is known */
	sizes_are(1, 1);
	nics_group_evenly(5, 2, &groups);
	EQ(groups.count, 3);
	EQ(groups.sizes[2], 1);
	EQ(groups.members[2][0], 4);
}

int main(void)
{
	test_numbers();
	test_parts();
	test_groups();
	return 0;
}
