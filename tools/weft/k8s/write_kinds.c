/* The kinds of jobs around the pods. */
#include <stdio.h>
#include <string.h>

#include "weft/k8s/write_sheet.h"

static void head(const struct sheet *sheet, const char *api, const char *kind)
{
	sheet_line(sheet, 0, NULL, "apiVersion: %s", api);
	sheet_line(sheet, 0, NULL, "kind: %s", kind);
	sheet_line(sheet, 0, NULL, "metadata:");
	sheet_line(sheet, 2, NULL, "name: %s", sheet->name);
	sheet_line(sheet, 0, NULL, "spec:");
}

void sheet_master(const struct sheet *sheet, char *text, size_t bytes)
{
	if (sheet->args->kind == WORK_JOBSET)
		snprintf(text, bytes, "%s-ranks-0-0.%s", sheet->name, sheet->name);
	else
		snprintf(text, bytes, "%s-0.%s", sheet->name, sheet->name);
}

void kind_mpijob(const struct sheet *sheet)
{
	static const struct sheet_role launcher = {.container = "launcher",
		.restart = "OnFailure",
		.command = command_mpirun};
	static const struct sheet_role worker = {
		.container = "worker", .is_ranks = true, .has_resources = true};
	struct write_args args = *sheet->args;
	struct sheet mpi = *sheet;

	args.kind = WORK_MPIJOB;
	mpi.args = &args;
	head(sheet, "kubeflow.org/v2beta1", "MPIJob");
	sheet_line(sheet, 2, "ranks in each worker: one per GPU", "slotsPerWorker: %d",
		sheet->gpus);
	sheet_line(sheet, 2, "mpirun starts when all workers can be reached",
		"launcherCreationPolicy: WaitForWorkersReady");
	sheet_line(sheet, 2, NULL, "runPolicy:");
	sheet_line(sheet, 4, "workers go when the launcher has ended",
		"cleanPodPolicy: Running");
	sheet_line(sheet, 4, NULL, "backoffLimit: 3");
	sheet_line(sheet, 2, NULL, "mpiReplicaSpecs:");
	sheet_line(sheet, 4, "runs mpirun and no rank: it needs no GPU", "Launcher:");
	sheet_line(sheet, 6, NULL, "replicas: 1");
	sheet_line(sheet, 6, NULL, "template:");
	sheet_line(sheet, 8, NULL, "metadata:");
	sheet_line(sheet, 10, NULL, "annotations:");
	sheet_line(sheet, 12, "a sidecar breaks connections between ranks",
		"sidecar.istio.io/inject: \"false\"");
	sheet_line(sheet, 8, NULL, "spec:");
	sheet_pod(&mpi, 10, &launcher);
	sheet_line(sheet, 4, NULL, "Worker:");
	sheet_line(sheet, 6, NULL, "replicas: %d", sheet->pods);
	sheet_line(sheet, 6, NULL, "template:");
	sheet_pod_meta(sheet, 8);
	sheet_line(sheet, 8, NULL, "spec:");
	sheet_pod(&mpi, 10, &worker);
}

void kind_pytorchjob(const struct sheet *sheet)
{
	static const struct sheet_role role = {.container = "pytorch",
		.is_ranks = true,
		.has_resources = true,
		.command = command_operator};

	head(sheet, "kubeflow.org/v1", "PyTorchJob");
	sheet_line(sheet, 2, "processes in each pod: one per GPU", "nprocPerNode: \"%d\"",
		sheet->gpus);
	sheet_line(sheet, 2, NULL, "pytorchReplicaSpecs:");
	sheet_line(sheet, 4, "rank 0 is here; there must be exactly one", "Master:");
	sheet_line(sheet, 6, NULL, "replicas: 1");
	sheet_line(sheet, 6, NULL, "restartPolicy: OnFailure");
	sheet_line(sheet, 6, NULL, "template: &pod");
	sheet_pod_meta(sheet, 8);
	sheet_line(sheet, 8, NULL, "spec:");
	/* The operator looks for a container of this name. */
	sheet_pod(sheet, 10, &role);
	if (!sheet->is_wide)
		return;
	sheet_line(sheet, 4, NULL, "Worker:");
	sheet_line(sheet, 6, "and the Master: together one pod for each part",
		"replicas: %d", sheet->pods - 1);
	sheet_line(sheet, 6, NULL, "restartPolicy: OnFailure");
	sheet_line(sheet, 6, "the same pod", "template: *pod");
}

/* What a TrainJob cannot say of its pods stands in a runtime of its own. */
static void training_runtime(const struct sheet *sheet)
{
	static const struct sheet_role role = {.container = "node", .is_ranks = true};

	sheet_line(sheet, 0, NULL,
		"# What a TrainJob cannot say of its pods: shared memory, capabilities, "
		"place.");
	sheet_line(sheet, 0, NULL, "apiVersion: trainer.kubeflow.org/v1alpha1");
	sheet_line(sheet, 0, NULL, "kind: TrainingRuntime");
	sheet_line(sheet, 0, NULL, "metadata:");
	sheet_line(sheet, 2, NULL, "name: %s", sheet->name);
	sheet_line(sheet, 2, NULL, "labels:");
	sheet_line(sheet, 4, NULL, "trainer.kubeflow.org/framework: torch");
	sheet_line(sheet, 0, NULL, "spec:");
	sheet_line(sheet, 2, NULL, "mlPolicy:");
	sheet_line(sheet, 4, NULL, "numNodes: %d", sheet->pods);
	sheet_line(sheet, 4, "PET_* for torchrun are set", "torch: {}");
	sheet_line(sheet, 2, NULL, "template:");
	sheet_line(sheet, 4, "of a JobSet: pods are described further in", "spec:");
	sheet_line(sheet, 6, NULL, "replicatedJobs:");
	sheet_line(sheet, 6, "the trainer finds it by this name", "- name: node");
	sheet_line(sheet, 8, NULL, "template:");
	sheet_line(sheet, 10, NULL, "metadata:");
	sheet_line(sheet, 12, NULL, "labels:");
	sheet_line(
		sheet, 14, NULL, "trainer.kubeflow.org/trainjob-ancestor-step: trainer");
	sheet_line(sheet, 10, NULL, "spec:");
	sheet_line(sheet, 12, NULL, "template:");
	sheet_pod_meta(sheet, 14);
	sheet_line(sheet, 14, NULL, "spec:");
	sheet_pod(sheet, 16, &role);
}

void kind_trainjob(const struct sheet *sheet)
{
	training_runtime(sheet);
	sheet_line(sheet, 0, NULL, "---");
	head(sheet, "trainer.kubeflow.org/v1alpha1", "TrainJob");
	sheet_line(sheet, 2, NULL, "runtimeRef:");
	sheet_line(sheet, 4, NULL, "apiGroup: trainer.kubeflow.org");
	sheet_line(sheet, 4, NULL, "kind: TrainingRuntime");
	sheet_line(sheet, 4, NULL, "name: %s", sheet->name);
	sheet_line(sheet, 2, NULL, "trainer:");
	sheet_line(sheet, 4, "pods; a machine with all its GPUs is one", "numNodes: %d",
		sheet->pods);
	sheet_line(sheet, 4, "one per GPU", "numProcPerNode: %d", sheet->gpus);
	sheet_line(sheet, 4, NULL, "image: %s", sheet->image);
	command_operator(sheet, 4);
	sheet_line(sheet, 4, "here and not in overrides, where it is refused", "env:");
	sheet_env(sheet, 4);
	sheet_line(sheet, 4, NULL, "resourcesPerNode:");
	sheet_resources(sheet, 6);
}

/* Names for the pods, which ranks find each other by. */
static void service(const struct sheet *sheet, const char *label)
{
	sheet_line(sheet, 0, NULL, "# Names for the pods: %s-0.%s is rank 0's.",
		sheet->name, sheet->name);
	head(sheet, "v1", "Service");
	sheet_line(sheet, 2, NULL, "clusterIP: None");
	sheet_line(sheet, 2, "ranks meet before anybody is ready",
		"publishNotReadyAddresses: true");
	sheet_line(sheet, 2, NULL, "selector:");
	sheet_line(sheet, 4, NULL, "%s: %s", label, sheet->name);
	sheet_line(sheet, 0, NULL, "---");
}

static const struct sheet_role indexed_role = {.container = "ranks",
	.restart = "Never",
	.is_ranks = true,
	.has_resources = true,
	.command = command_indexed};

/* The fields of an indexed Job's spec. */
static void indexed(const struct sheet *sheet, int indent)
{
	sheet_line(sheet, indent, "pods have numbers, and names that stay",
		"completionMode: Indexed");
	sheet_line(sheet, indent, NULL, "completions: %d", sheet->pods);
	sheet_line(sheet, indent, "all at once: ranks wait for each other",
		"parallelism: %d", sheet->pods);
	sheet_line(
		sheet, indent, "a rank alone cannot be started again", "backoffLimit: 0");
	sheet_line(sheet, indent, NULL, "template:");
	sheet_pod_meta(sheet, indent + 2);
	sheet_line(sheet, indent + 2, NULL, "spec:");
}

void kind_job(const struct sheet *sheet)
{
	service(sheet, "job-name");
	head(sheet, "batch/v1", "Job");
	indexed(sheet, 2);
	sheet_line(sheet, 6, "the Service above", "subdomain: %s", sheet->name);
	sheet_pod(sheet, 6, &indexed_role);
}

void kind_jobset(const struct sheet *sheet)
{
	struct write_args args = *sheet->args;
	struct sheet set = *sheet;

	args.kind = WORK_JOBSET;
	set.args = &args;
	head(sheet, "jobset.x-k8s.io/v1alpha2", "JobSet");
	sheet_line(sheet, 2, NULL, "replicatedJobs:");
	sheet_line(sheet, 2, NULL, "- name: ranks");
	sheet_line(sheet, 4, NULL, "replicas: 1");
	sheet_line(sheet, 4, NULL, "template:");
	sheet_line(sheet, 6, NULL, "spec:");
	indexed(&set, 8);
	sheet_pod(&set, 12, &indexed_role);
}

void kind_statefulset(const struct sheet *sheet)
{
	static const struct sheet_role role = {.container = "ranks",
		.is_ranks = true,
		.has_resources = true,
		.command = command_ordinal};

	service(sheet, "app");
	head(sheet, "apps/v1", "StatefulSet");
	sheet_line(sheet, 2, NULL, "serviceName: %s", sheet->name);
	sheet_line(sheet, 2, "all at once: ranks wait for each other",
		"podManagementPolicy: Parallel");
	sheet_line(sheet, 2, NULL, "replicas: %d", sheet->pods);
	sheet_line(sheet, 2, NULL, "selector:");
	sheet_line(sheet, 4, NULL, "matchLabels:");
	sheet_line(sheet, 6, NULL, "app: %s", sheet->name);
	sheet_line(sheet, 2, NULL, "template:");
	sheet_pod_meta(sheet, 4);
	sheet_line(sheet, 4, NULL, "spec:");
	sheet_pod(sheet, 6, &role);
}
