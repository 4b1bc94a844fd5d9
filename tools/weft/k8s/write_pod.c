/* A pod with every right value: the part that all kinds have in common. */
#include <string.h>

#include "weft/k8s/write_sheet.h"

enum { MASTER_BYTES = 160 };

/* EFA's own numbers; NCCL and torch need the rest. */
static const char hugepages[] = "5120Mi";

static const char *shm_size(const struct sheet *sheet)
{
	return sheet->args->load == LOAD_NCCL_TEST || sheet->args->load == LOAD_WEFT
		       ? "16Gi"
		       : "64Gi";
}

static const char *memory(const struct sheet *sheet)
{
	return sheet->args->load == LOAD_NCCL_TEST || sheet->args->load == LOAD_WEFT
		       ? "32Gi"
		       : "128Gi";
}

static void devices(const struct sheet *sheet, int indent)
{
	sheet_line(sheet, indent,
		sheet->gpus == sheet->machine->gpus
			? "all of the machine: in one pod they talk by NVLink or PCIe"
			: "a part of the machine, as asked for",
		"nvidia.com/gpu: %d", sheet->gpus);
	if (sheet->efa) {
		sheet_line(sheet, indent,
			"without it NCCL silently takes TCP: 4 instead of 77 GB/s on p4d",
			"vpc.amazonaws.com/efa: %d", sheet->efa);
		sheet_line(sheet, indent, "buffers of libfabric and the plugin",
			"hugepages-2Mi: %s", hugepages);
	} else if (sheet->is_wide && sheet->is_aws && sheet->machine->efa < 0) {
		sheet_line(sheet, indent, NULL,
			"# vpc.amazonaws.com/efa: as many as aws ec2 "
			"describe-instance-types "
			"tells for %s",
			sheet->machine->name);
	} else if (sheet->is_wide && !sheet->is_aws) {
		sheet_line(sheet, indent, "as your RDMA device plugin calls it",
			"rdma/rdma_shared_device_a: 1");
	}
	sheet_line(sheet, indent,
		sheet->efa
			? "hugepages need a memory request beside them; /dev/shm counts "
			  "here too"
			: "/dev/shm counts here too",
		"memory: %s", memory(sheet));
}

void sheet_resources(const struct sheet *sheet, int indent)
{
	sheet_line(sheet, indent, "devices cannot be overcommitted: the same as limits",
		"requests: &devices");
	devices(sheet, indent + 2);
	sheet_line(sheet, indent, NULL, "limits: *devices");
}

void sheet_env(const struct sheet *sheet, int indent)
{
	sheet_line(sheet, indent, NULL, "- name: NCCL_DEBUG");
	sheet_line(sheet, indent + 2,
		"what NCCL chose and why; WARN once the job runs well", "value: INFO");
	if (sheet->efa) {
		sheet_line(sheet, indent, NULL, "- name: FI_PROVIDER");
		sheet_line(sheet, indent + 2,
			"fail loudly where there is no EFA, instead of taking TCP",
			"value: efa");
	}
	if (sheet->args->load == LOAD_WEFT) {
		char master[MASTER_BYTES];

		sheet_master(sheet, master, sizeof(master));
		sheet_line(sheet, indent, "processes: the rank is JOB_COMPLETION_INDEX",
			"- name: WORLD_SIZE");
		sheet_line(sheet, indent + 2, NULL, "value: \"%d\"", sheet->pods);
		sheet_line(sheet, indent, "where rank 0 is", "- name: MASTER_ADDR");
		sheet_line(sheet, indent + 2, NULL, "value: %s", master);
	}
	sheet_line(sheet, indent, NULL,
		"# Leave NCCL_ALGO, NCCL_PROTO and channel counts alone: NCCL chooses by "
		"size.");
}

void sheet_pod_meta(const struct sheet *sheet, int indent)
{
	sheet_line(sheet, indent, NULL, "metadata:");
	sheet_line(sheet, indent + 2, NULL, "labels:");
	sheet_line(sheet, indent + 4, NULL, "app: %s", sheet->name);
	sheet_line(sheet, indent + 2, NULL, "annotations:");
	sheet_line(sheet, indent + 4, "a sidecar breaks connections between ranks",
		"sidecar.istio.io/inject: \"false\"");
}

/* One zone for all, as the user says or wherever the first pod lands. */
static void placement(const struct sheet *sheet, int indent)
{
	if (sheet->is_aws || sheet->args->zone)
		sheet_line(sheet, indent, NULL, "nodeSelector:");
	else
		sheet_line(sheet, indent, NULL,
			"# nodeSelector: a label that your %s nodes have",
			sheet->machine->name);
	if (sheet->is_aws)
		sheet_line(sheet, indent + 2, NULL,
			"node.kubernetes.io/instance-type: %s", sheet->machine->name);
	if (sheet->args->zone)
		sheet_line(sheet, indent + 2, "EFA does not cross availability zones",
			"topology.kubernetes.io/zone: %s", sheet->args->zone);
	if (sheet->is_wide && sheet->is_aws && !sheet->args->zone) {
		sheet_line(sheet, indent,
			"EFA does not cross availability zones: all pods in one",
			"affinity:");
		sheet_line(sheet, indent + 2, NULL, "podAffinity:");
		sheet_line(sheet, indent + 4, NULL,
			"requiredDuringSchedulingIgnoredDuringExecution:");
		sheet_line(sheet, indent + 4, NULL, "- labelSelector:");
		sheet_line(sheet, indent + 8, NULL, "matchLabels:");
		sheet_line(sheet, indent + 10, NULL, "app: %s", sheet->name);
		sheet_line(sheet, indent + 6, NULL,
			"topologyKey: topology.kubernetes.io/zone");
	}
	sheet_line(sheet, indent, "GPU nodes are usually tainted", "tolerations:");
	sheet_line(sheet, indent, NULL, "- key: nvidia.com/gpu");
	sheet_line(sheet, indent + 2, NULL, "operator: Exists");
	sheet_line(sheet, indent + 2, NULL, "effect: NoSchedule");
	if (!sheet->efa)
		return;
	sheet_line(sheet, indent, NULL, "- key: vpc.amazonaws.com/efa");
	sheet_line(sheet, indent + 2, NULL, "operator: Exists");
	sheet_line(sheet, indent + 2, NULL, "effect: NoSchedule");
}

static void container(
	const struct sheet *sheet, int indent, const struct sheet_role *role)
{
	sheet_line(sheet, indent, NULL, "- name: %s", role->container);
	indent += 2;
	sheet_line(sheet, indent, NULL, "image: %s", sheet->image);
	if (role->command)
		role->command(sheet, indent);
	if (!role->is_ranks)
		return;
	if (role->has_resources && sheet->args->kind != WORK_MPIJOB) {
		sheet_line(sheet, indent, NULL, "env:");
		sheet_env(sheet, indent);
	}
	sheet_line(sheet, indent, NULL, "securityContext:");
	sheet_line(sheet, indent + 2, NULL, "capabilities:");
	sheet_line(sheet, indent + 4, NULL, "add:");
	sheet_line(sheet, indent + 4,
		"RDMA pins memory; nothing else is needed, privileged least of all",
		"- IPC_LOCK");
	if (role->has_resources) {
		sheet_line(sheet, indent, NULL, "resources:");
		sheet_resources(sheet, indent + 2);
	}
	sheet_line(sheet, indent, NULL, "volumeMounts:");
	sheet_line(sheet, indent, NULL, "- name: shm");
	sheet_line(sheet, indent + 2, "64 MiB unless a volume is here: too little",
		"mountPath: /dev/shm");
}

void sheet_pod(const struct sheet *sheet, int indent, const struct sheet_role *role)
{
	if (role->restart)
		sheet_line(sheet, indent, NULL, "restartPolicy: %s", role->restart);
	if (role->is_ranks)
		placement(sheet, indent);
	sheet_line(sheet, indent, NULL, "containers:");
	container(sheet, indent, role);
	if (!role->is_ranks)
		return;
	sheet_line(sheet, indent, NULL, "volumes:");
	sheet_line(sheet, indent, NULL, "- name: shm");
	sheet_line(sheet, indent + 2, NULL, "emptyDir:");
	sheet_line(sheet, indent + 4, "not a folder on disk", "medium: Memory");
	sheet_line(sheet, indent + 4, NULL, "sizeLimit: %s", shm_size(sheet));
}
