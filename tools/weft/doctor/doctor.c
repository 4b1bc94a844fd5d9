/* weft doctor - what is wrong with a job, from its logs or from the host it runs on. */
#include <stdio.h>
#include <string.h>

#include "weft/command.h"
#include "weft/doctor/doctor_args.h"
#include "weft/doctor/expect.h"
#include "weft/doctor/gain.h"
#include "weft/doctor/harvest.h"
#include "weft/doctor/live.h"
#include "weft/doctor/report.h"
#include "weft/doctor/siblings.h"
#include "weft/json_print.h"

/* The exit status says how bad it is; 2 stays a usage error. */
enum { EXIT_PERFORMANCE = 3, EXIT_FATAL = 4 };

static void usage(void)
{
	printf("usage: weft doctor [LOG...] [OPTIONS]\n\n"
	       "With logs of NCCL, aws-ofi-nccl, torchrun or nccl-tests (of several "
	       "ranks,\n"
	       "files or - for standard input): what they show, then what is wrong, "
	       "causes\n"
	       "before consequences, with what to do. Without: this host or pod, from\n"
	       "inside.\n\n"
	       "  --json            for programs\n"
	       "  --expect MACHINE  compare a log with what NCCL's rules give for a "
	       "machine\n"
	       "                    (weft topo --list, or an XML file)\n"
	       "  --nodes N         so many of them; else as many as the log has\n"
	       "  --root PATH       look at a captured host instead of this one; several "
	       "are\n"
	       "                    also compared: which of them are one machine?\n"
	       "  --capture PATH    write what a look at this host needs into a new "
	       "folder, or\n"
	       "                    into one file where PATH ends in .tar; without "
	       "secrets\n\n"
	       "Exit status: 0 nothing or notes, 3 something costs performance, 4 "
	       "something\n"
	       "is fatal, 1 a log cannot be read or tells nothing of a job, 2 "
	       "usage.\n\n"
	       "example: weft doctor job.log\n");
}

static int status_of(const struct diagnosis *diagnosis)
{
	switch (diagnosis_severity(diagnosis)) {
	case SEVERITY_FATAL:
		return EXIT_FATAL;
	case SEVERITY_PERFORMANCE:
		return EXIT_PERFORMANCE;
	case SEVERITY_NOTE:
		break;
	}
	return EXIT_GOOD;
}

/* What one job of the log has. False: the machine it is to be compared with is unknown.
 */
static bool examine(const struct log_facts *facts, const struct doctor_args *args,
	struct diagnosis *diagnosis)
{
	diagnose(facts, diagnosis);
	gain_add(facts, args->expect, diagnosis);
	if (!args->expect || !expect_add(facts, args->expect, args->nodes, diagnosis))
		return true;
	fprintf(stderr, "weft doctor: %s\n", err_last());
	return false;
}

static int print_jobs(const struct jobs *jobs, const struct doctor_args *args)
{
	static struct diagnosis diagnosis;
	int status = EXIT_GOOD;

	for (uint32_t i = 0; i < jobs->count; i++) {
		if (!examine(jobs->facts[i], args, &diagnosis))
			return EXIT_USAGE;
		if (jobs->count > 1)
			report_job(stdout, jobs->facts[i], i + 1, jobs->count);
		report_facts(stdout, jobs->facts[i]);
		report_findings(stdout, jobs->facts[i], &diagnosis);
		if (status_of(&diagnosis) > status)
			status = status_of(&diagnosis);
	}
	return status;
}

/* Those of one job that are this grave. */
static void findings_add(json_t *all, json_t *job, enum severity severity)
{
	json_t *findings = json_object_get(job, "findings");

	for (size_t i = 0; i < json_array_size(findings); i++) {
		json_t *finding = json_array_get(findings, i);
		const char *name = json_string_value(
			json_object_get(finding, "severity"));

		if (name && !strcmp(name, severity_name(severity)))
			json_array_append(all, finding);
	}
}

/* The findings of all jobs, the gravest first. */
static json_t *all_findings(const json_t *list)
{
	json_t *all = json_array();

	for (int severity = SEVERITY_FATAL; severity >= SEVERITY_NOTE; severity--)
		for (size_t i = 0; i < json_array_size(list); i++)
			findings_add(
				all, json_array_get(list, i), (enum severity)severity);
	return all;
}

/* One job is the object itself; of several each is one of a list, and the object has the
 * findings of all. */
static int print_jobs_json(const struct jobs *jobs, const struct doctor_args *args)
{
	static struct diagnosis diagnosis;
	json_t *object, *list = json_array();
	int status = EXIT_GOOD;

	for (uint32_t i = 0; i < jobs->count; i++) {
		json_t *job;

		if (!examine(jobs->facts[i], args, &diagnosis)) {
			status = EXIT_USAGE;
			break;
		}
		job = report_facts_json(jobs->facts[i]);
		json_object_set_new(job, "findings",
			report_findings_json(jobs->facts[i], &diagnosis));
		json_array_append_new(list, job);
		if (status_of(&diagnosis) > status)
			status = status_of(&diagnosis);
	}
	if (status != EXIT_USAGE) {
		object = jobs->count > 1 ? json_pack("{s:O, s:o}", "jobs", list,
						   "findings", all_findings(list))
					 : json_incref(json_array_get(list, 0));
		if (json_print("doctor", object))
			status = EXIT_WRONG;
	}
	json_decref(list);
	return status;
}

static int doctor_logs(const struct doctor_args *args)
{
	struct harvest harvest;
	int status = EXIT_WRONG, bad;

	if (harvest_init(&harvest)) {
		fprintf(stderr, "weft doctor: %s\n", err_last());
		return EXIT_WRONG;
	}
	if (harvest_logs(&harvest, "doctor", args->logs, args->log_count, &bad))
		status = args->json ? print_jobs_json(&harvest.jobs, args)
				    : print_jobs(&harvest.jobs, args);
	harvest_fini(&harvest);
	return bad ? EXIT_WRONG : status;
}

static int capture_host(const struct doctor_args *args, const struct host_facts *facts)
{
	if (host_facts_capture(facts, args->capture)) {
		fprintf(stderr, "weft doctor: %s\n", err_last());
		return EXIT_WRONG;
	}
	printf("%s holds what weft doctor --root needs of this host\n", args->capture);
	return EXIT_GOOD;
}

/* What one host has; into a list for programs, else printed. */
static int print_host(const struct host_facts *facts, json_t *list)
{
	static struct diagnosis diagnosis;
	json_t *object;

	live_diagnose(facts, &diagnosis);
	if (!list) {
		live_print(stdout, facts);
		report_findings(stdout, NULL, &diagnosis);
		return status_of(&diagnosis);
	}
	object = live_json(facts);
	if (object)
		json_object_set_new(
			object, "findings", report_findings_json(NULL, &diagnosis));
	json_array_append_new(list, object);
	return status_of(&diagnosis);
}

/* What captured hosts have to do with each other. */
static int print_siblings(const struct siblings *siblings, json_t *list)
{
	static struct diagnosis diagnosis;
	json_t *object;

	siblings_diagnose(siblings, &diagnosis);
	if (!list) {
		printf("\nall %u together\n", siblings->count);
		report_findings(stdout, NULL, &diagnosis);
		return status_of(&diagnosis);
	}
	object = json_pack("{s:O, s:o}", "hosts", list, "findings",
		report_findings_json(NULL, &diagnosis));
	return json_print("doctor", object) ? EXIT_WRONG : status_of(&diagnosis);
}

/* This host, or captured ones. */
static int doctor_host(const struct doctor_args *args)
{
	static struct host_facts facts;
	static struct siblings siblings;
	json_t *list = args->json ? json_array() : NULL;
	int status = EXIT_GOOD, worst = EXIT_GOOD;

	for (int i = 0; i < args->root_count || !i; i++) {
		if (host_facts_read(&facts, args->roots[i])) {
			fprintf(stderr, "weft doctor: %s\n", err_last());
			json_decref(list);
			return EXIT_WRONG;
		}
		if (args->capture)
			return capture_host(args, &facts);
		if (!list && args->root_count > 1)
			printf("%s%s\n", i ? "\n" : "", args->roots[i]);
		siblings_add(&siblings, &facts);
		status = print_host(&facts, list);
		worst = status > worst ? status : worst;
	}
	if (args->root_count > 1)
		status = print_siblings(&siblings, list);
	else if (list && json_print("doctor", json_incref(json_array_get(list, 0))))
		status = EXIT_WRONG;
	json_decref(list);
	return status == EXIT_WRONG || status > worst ? status : worst;
}

int command_doctor(int argc, char **argv)
{
	struct doctor_args args;

	if (command_wants_help(argc, argv)) {
		usage();
		return EXIT_GOOD;
	}
	if (!doctor_args_parse(&args, argc, argv))
		return EXIT_USAGE;
	return args.log_count ? doctor_logs(&args) : doctor_host(&args);
}
