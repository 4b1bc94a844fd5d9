/* Every captured host of tests/doctor/hosts.txt is judged as it says; a capture of this
 * host holds no secret and is read back as it was. */
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"
#include "weft/doctor/live.h"
#include "weft/doctor/siblings.h"

#ifndef WEFT_TEST_DOCTOR
#define WEFT_TEST_DOCTOR "."
#endif

enum { TEXT_BYTES = 4096 };

static char folder[256];
static bool shown[FIND_COUNT];

static void empty_folder(void)
{
	char command[512];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	EQ(system(command), 0);
}

/* Lines of a file's content are separated by ';'. */
static void put_file(char *row)
{
	char *content = strchr(row, ' '), path[TEXT_BYTES + 512];
	FILE *file;

	if (content)
		*content++ = 0;
	snprintf(path, sizeof(path), "%s/%s", folder, row);
	for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = 0;
		mkdir(path, 0777);
		*slash = '/';
	}
	file = fopen(path, "w");
	TRUE(file);
	for (char *at = content; at && *at; at++)
		fputc(*at == ';' ? '\n' : *at, file);
	fputc('\n', file);
	fclose(file);
}

static int check_case(const char *name, const char *wanted)
{
	static struct host_facts facts;
	static struct diagnosis diagnosis;
	char found[TEXT_BYTES] = "";
	size_t used = 0;

	mkdir(folder, 0777);
	EQ(host_facts_read(&facts, folder), OK);
	live_diagnose(&facts, &diagnosis);
	for (uint32_t i = 0; i < diagnosis.count; i++) {
		shown[diagnosis.findings[i].id] = true;
		used += (size_t)snprintf(found + used, sizeof(found) - used, "%s%s %s",
			i ? ", " : "", severity_name(diagnosis.findings[i].severity),
			catalogue_info(diagnosis.findings[i].id)->name);
	}
	empty_folder();
	if (!strcmp(diagnosis.count ? found : "nothing", wanted))
		return 0;
	fprintf(stderr, "%s:\n  found  %s\n  wanted %s\n", name, found, wanted);
	return 1;
}

static int check_cases(void)
{
	FILE *file = fopen(WEFT_TEST_DOCTOR "/hosts.txt", "r");
	char row[TEXT_BYTES], name[TEXT_BYTES] = "", wanted[TEXT_BYTES] = "";
	int bad = 0, count = 0;

	TRUE(file);
	while (fgets(row, sizeof(row), file)) {
		row[strcspn(row, "\n")] = 0;
		if (!strncmp(row, "@@ ", 3)) {
			if (count++)
				bad += check_case(name, wanted);
			snprintf(wanted, sizeof(wanted), "%s", strstr(row, " | ") + 3);
			*strstr(row, " | ") = 0;
			snprintf(name, sizeof(name), "%s", row + 3);
		} else if (count && row[0]) {
			put_file(row);
		}
	}
	fclose(file);
	bad += check_case(name, wanted);
	TRUE(count > 15);
	return bad;
}

/* What nvidia-smi and fi_info print. */
static void check_tools(void)
{
	static struct host_facts facts;

	host_take_output(&facts, HOST_TOOL_NVLINK,
		"GPU 0: NVIDIA H100 (UUID: GPU-1)\n\t Link 0: 26.562 GB/s\n"
		"\t Link 1: <inactive>\nGPU 1: NVIDIA H100 (UUID: GPU-2)\n"
		"\t Link 0: 26.562 GB/s\n\t Link 1: 26.562 GB/s\n");
	EQ(facts.links_up, 3);
	EQ(facts.links_down, 1);
	/* cards without a bridge */
	host_take_output(&facts, HOST_TOOL_NVLINK,
		"GPU 0: NVIDIA A100\n\t Link 0: <inactive>\n\t Link 1: <inactive>\n");
	EQ(facts.links_up, 0);
	EQ(facts.links_down, 0);
	host_take_output(&facts, HOST_TOOL_ERRORS,
		"GPU 0: NVIDIA H100\n\t Link 0: Replay Errors: 7\n"
		"\t Link 0: Recovery Errors: 1\n\t Link 0: CRC Errors: 2\n");
	EQ(facts.link_errors, 3);
	host_take_output(&facts, HOST_TOOL_P2P,
		" \tGPU0\tGPU1\t\n GPU0\tX\tCNS\t\n GPU1\tOK\tX\t\n\nLegend:\n\n"
		"  X    = Self\n  OK   = Status Ok\n  CNS  = Chipset not supported\n");
	EQ(facts.p2p_refused, 1);
	EQ_STR(facts.p2p_why, "CNS");
	host_take_output(&facts, HOST_TOOL_FABRIC,
		"    Product Name : X\n    Persistence State : On\n    Fabric\n"
		"        State                             : In Progress\n"
		"        Status                            : N/A\n");
	EQ_STR(facts.fabric_state, "In Progress");
	host_take_output(&facts, HOST_TOOL_PROVIDERS,
		"efa:\n    version: 118.0\ntcp:\n    version: 118.0\n");
	EQ_STR(facts.providers, "efa tcp");
}

/* A chain of extended capabilities with ACS second; one that is cut; one that loops. */
static void check_acs(void)
{
	static unsigned char config[4096];

	EQ(host_acs_control(config, 64), HOST_UNKNOWN);
	EQ(host_acs_control(config, sizeof(config)), 0);
	config[0x100] = 0x01;
	config[0x102] = 0x01;
	config[0x103] = 0x20; /* the next is at 0x200 */
	config[0x200] = 0x0d;
	config[0x202] = 0x01;
	config[0x206] = 0x1d;
	EQ(host_acs_control(config, sizeof(config)), 0x1d);
	EQ(host_acs_control(config, 0x204), 0);
	config[0x200] = 0x02;
	config[0x203] = 0x10; /* back to 0x100 */
	EQ(host_acs_control(config, sizeof(config)), 0);
}

static void check_capture(void)
{
	static struct host_facts here, again;

	setenv("NCCL_TEST_TOKEN", "secret", 1);
	setenv("HF_HUB_TOKEN", "secret", 1);
	setenv("NCCL_ALGO", "Ring", 1);
	EQ(host_facts_read(&here, NULL), OK);
	TRUE(!host_env(&here, "NCCL_TEST_TOKEN"));
	TRUE(!host_env(&here, "HF_HUB_TOKEN"));
	EQ_STR(host_env(&here, "NCCL_ALGO"), "Ring");
	EQ(host_facts_capture(&here, folder), OK);
	EQ(host_facts_read(&again, folder), OK);
	EQ_STR(again.name, here.name);
	EQ_STR(again.boot_id, here.boot_id);
	EQ(again.shm_bytes, here.shm_bytes);
	EQ(again.memlock_bytes, here.memlock_bytes);
	EQ(again.iface_count, here.iface_count);
	EQ(again.env_count, here.env_count);
	/* a folder that is there is nobody's to write into */
	TRUE(host_facts_capture(&here, folder) != OK);
	empty_folder();
	TRUE(host_facts_read(&again, folder) != OK);
	/* one file instead, to send */
	strcat(folder, ".tar");
	EQ(host_facts_capture(&here, folder), OK);
	EQ(host_facts_read(&again, folder), OK);
	EQ_STR(again.boot_id, here.boot_id);
	EQ(again.env_count, here.env_count);
	TRUE(host_facts_capture(&here, folder) != OK);
	empty_folder();
}

/* Hosts beside each other: one machine in two pods, two machines of one name. */
static void check_siblings(void)
{
	static const struct {
		const char *name, *boot_id, *driver;
	} hosts[] = {{"pod-a", "1", "570"}, {"pod-b", "1", "570"}, {"pod-a", "2", "575"}};
	static struct host_facts facts;
	static struct siblings siblings;
	static struct diagnosis diagnosis;

	for (int i = 0; i < 3; i++) {
		strcpy(facts.name, hosts[i].name);
		strcpy(facts.boot_id, hosts[i].boot_id);
		strcpy(facts.driver, hosts[i].driver);
		siblings_add(&siblings, &facts);
		siblings_diagnose(&siblings, &diagnosis);
		EQ(diagnosis.count, i == 2 ? 3 : i);
	}
	EQ(diagnosis.findings[0].id, FIND_PODS_SPLIT_NODE);
	TRUE(strstr(diagnosis.findings[0].detail, "2 of these"));
	for (uint32_t i = 0; i < diagnosis.count; i++)
		shown[diagnosis.findings[i].id] = true;
}

int main(void)
{
	int bad;

	snprintf(folder, sizeof(folder), "/tmp/weft-doctor-live.%d", (int)getpid());
	bad = check_cases();
	check_tools();
	check_acs();
	check_capture();
	check_siblings();
	for (int i = FIND_LIVE_GPU; i < FIND_COUNT; i++)
		if (!shown[i]) {
			fprintf(stderr, "no host shows %s\n",
				catalogue_info((enum finding_id)i)->name);
			bad++;
		}
	return bad > 0;
}
