/* Every rule of `weft k8s check`, once: id, severity, and why it matters. */
#include "weft/k8s/finding.h"

const struct rule rules[RULE_COUNT] = {
	[RULE_YAML_SYNTAX] = {"yaml-syntax", SEVERITY_FATAL, "not YAML",
		"The API server reads nothing of a file that is not YAML. The line is "
		"taken "
		"for empty here, so that the rest can be looked at."},
	[RULE_DUPLICATE_KEY] = {"duplicate-key", SEVERITY_FATAL, "a key twice in one map",
		"Only one of the two values can count, and which one depends on the "
		"reader. "
		"kubectl refuses it."},
	[RULE_WRONG_TYPE] = {"wrong-type", SEVERITY_FATAL, "a value of the wrong shape",
		"The API server refuses a list where a map belongs, and the other way "
		"round."},
	[RULE_FIELD_UNKNOWN] = {"field-unknown", SEVERITY_FATAL,
		"a field that the kind does not have",
		"The API server drops a field it does not know, or refuses it; what it "
		"was "
		"meant to say is lost either way."},
	[RULE_CRD_VERSION] = {"crd-version", SEVERITY_FATAL,
		"an apiVersion or field of another release",
		"Each operator serves its own versions of a kind. An object of a version "
		"that is not installed is refused, or handled by another controller."},
	[RULE_KIND_UNKNOWN] = {"kind-unknown", SEVERITY_NOTE,
		"a kind whose pods are not known here",
		"No rule knows where this kind keeps its pods, so nothing of them was "
		"looked at. What is said of other documents does not speak for this "
		"one."},
	[RULE_MASTER_REPLICAS] = {"master-replicas", SEVERITY_FATAL,
		"a PyTorchJob with other than one Master",
		"The training operator accepts exactly one Master replica: it is rank 0 "
		"and "
		"gives MASTER_ADDR its name."},
	[RULE_CONTAINER_NAME] = {"container-name", SEVERITY_FATAL,
		"the container that the operator looks for is missing",
		"The operator finds the training container by its name and puts ports "
		"and "
		"environment there. Under another name it is refused or gets none."},
	[RULE_OVERRIDE_FIELD] = {"override-forbidden-field", SEVERITY_FATAL,
		"a pod field that a TrainJob cannot change",
		"A TrainJob may change few fields of a pod. hostIPC, hostNetwork and the "
		"like belong into the (Cluster)TrainingRuntime it refers to."},
	[RULE_OVERRIDE_ENV] = {"override-env", SEVERITY_FATAL,
		"env of a reserved container in an override",
		"The webhook refuses env for the containers node, dataset-initializer "
		"and "
		"model-initializer in overrides. The trainer has an env of its own."},
	[RULE_TARGET_JOBS] = {"target-jobs", SEVERITY_FATAL,
		"targetJobs with names instead of objects",
		"targetJobs is a list of objects with a name. A list of texts is "
		"refused."},
	[RULE_RUNTIME_NESTING] = {"runtime-nesting", SEVERITY_FATAL,
		"pod fields at the level of the JobSet",
		"spec.template.spec of a training runtime is a JobSet. Pods are "
		"described "
		"four levels below, at replicatedJobs[].template.spec.template.spec."},
	[RULE_JOB_INDEXED] = {"job-not-indexed", SEVERITY_FATAL,
		"ranks in a Job whose pods have no number",
		"Only pods of an Indexed Job have a completion index and a stable name. "
		"Without them no rank knows its number or where rank 0 is."},
	[RULE_JOB_PARALLELISM] = {"job-parallelism", SEVERITY_FATAL,
		"ranks that wait for pods that do not start",
		"All ranks must run at once. With a parallelism below completions the "
		"first "
		"wait for the others, which start only when the first have ended."},
	[RULE_STATEFULSET_ORDER] = {"statefulset-order", SEVERITY_PERFORMANCE,
		"ranks that start one after the other",
		"OrderedReady starts a pod when the one before it is ready. If readiness "
		"needs all ranks they never meet; otherwise they start slowly."},
	[RULE_ISTIO] = {"istio", SEVERITY_FATAL, "a sidecar between the ranks",
		"The Istio sidecar takes over TCP connections between pods, and MPI's "
		"and "
		"NCCL's own do not survive it."},
	[RULE_SLOTS_GPU] = {"slots-gpu", SEVERITY_FATAL,
		"slotsPerWorker is not the number of GPUs",
		"MPI starts as many ranks in a worker as it has slots. More than GPUs "
		"leaves "
		"ranks without one, fewer leaves GPUs idle."},
	[RULE_NP_TOTAL] = {"np-total", SEVERITY_FATAL,
		"mpirun's ranks are not the workers' slots",
		"mpirun -np must be workers times slots, and -N the slots. With too many "
		"it "
		"refuses to start, with too few GPUs stay idle."},
	[RULE_NPROC] = {"nproc", SEVERITY_FATAL,
		"processes per pod are not the number of GPUs",
		"torchrun starts one process per GPU; its own --nproc_per_node goes "
		"before "
		"what the job says. More than GPUs fail, fewer leave GPUs idle."},
	[RULE_NPROC_UNSET] = {"nproc-unset", SEVERITY_NOTE,
		"nobody says how many processes a pod runs",
		"Without nprocPerNode the operator says auto, which torchrun counts at "
		"run "
		"time. Saying it makes a pod with a GPU too few fail at once."},
	[RULE_LAUNCHER_GPU] = {"launcher-gpu", SEVERITY_PERFORMANCE,
		"GPUs for a launcher that does not use them",
		"The launcher of an MPIJob only runs mpirun. GPUs it asks for stay idle, "
		"and "
		"the job waits for them."},
	[RULE_PODS_SPLIT] = {"pods-split-node", SEVERITY_PERFORMANCE,
		"a machine's GPUs in several pods",
		"NCCL takes each pod for a host of its own: GPUs of one machine then "
		"reach "
		"each other by the network instead of NVLink or PCIe. hostIPC alone does "
		"not "
		"change that; it takes the same NCCL_HOSTID, a shared /dev/shm and all "
		"GPUs "
		"visible in each pod."},
	[RULE_RES_NAME] = {"res-name", SEVERITY_FATAL, "no such resource",
		"No device plugin offers a resource of this name: the API server refuses "
		"it, "
		"or the pod stays pending, or it starts without the device."},
	[RULE_RES_INTEGER] = {"res-integer", SEVERITY_FATAL,
		"a device count that is no whole number",
		"Devices are given whole. The API server refuses fractions of them."},
	[RULE_REQUESTS_LIMITS] = {"requests-limits", SEVERITY_FATAL,
		"requests and limits of a device differ",
		"Devices and hugepages cannot be overcommitted: the limit must be there, "
		"and "
		"a request must be equal to it."},
	[RULE_GPU_TOO_MANY] = {"gpu-too-many", SEVERITY_FATAL,
		"more GPUs than the machine has",
		"No node of this type can ever offer so many GPUs; the pod stays "
		"pending."},
	[RULE_EFA_TOO_MANY] = {"efa-too-many", SEVERITY_FATAL,
		"more EFA devices than the machine has",
		"No node of this type can ever offer so many EFA devices; the pod stays "
		"pending."},
	[RULE_EFA_MISSING] = {"efa-missing", SEVERITY_PERFORMANCE,
		"several nodes and no EFA device",
		"Without vpc.amazonaws.com/efa no device is mounted into the pod and "
		"NCCL "
		"silently falls back to TCP. Measured on p4d: 4.1 instead of 77.3 GB/s."},
	[RULE_GPU_EFA_RATIO] = {"gpu-efa-ratio", SEVERITY_PERFORMANCE,
		"all GPUs of the machine and not all EFA devices",
		"A pod that has every GPU of the machine leaves the other EFA devices to "
		"nobody, and bandwidth between nodes is that of the devices it has."},
	[RULE_RDMA_MISSING] = {"rdma-missing", SEVERITY_NOTE,
		"several nodes and no RDMA device",
		"No resource asks for an RDMA device and the machine is not named, so "
		"NCCL "
		"will find TCP sockets only. That is slow between nodes if they have EFA "
		"or "
		"InfiniBand."},
	[RULE_INSTANCE_TYPE] = {"instance-type", SEVERITY_FATAL,
		"an instance type that does not exist",
		"No node carries this label, so the pod stays pending."},
	[RULE_HUGEPAGES_MEMORY] = {"hugepages-without-memory", SEVERITY_FATAL,
		"hugepages without memory or cpu",
		"The API server refuses hugepages unless memory or cpu is asked for "
		"too."},
	[RULE_SHM_MISSING] = {"shm-missing", SEVERITY_FATAL, "/dev/shm of 64 MiB",
		"A container gets 64 MiB of /dev/shm unless a volume is mounted there. "
		"NCCL "
		"needs about 10 MB per pair and channel, and data loaders need more: 'No "
		"space left on device' or a bus error."},
	[RULE_SHM_SMALL] = {"shm-small", SEVERITY_FATAL, "a small /dev/shm",
		"NCCL's segments and the data loaders' share /dev/shm; below about 1 GiB "
		"they fail with 'No space left on device' or a bus error."},
	[RULE_SHM_MEDIUM] = {"shm-medium", SEVERITY_PERFORMANCE, "a /dev/shm on disk",
		"An emptyDir without medium: Memory is a folder of the node's disk. "
		"Shared "
		"memory there is written back to it."},
	[RULE_SHM_OVER_MEMORY] = {"shm-over-memory", SEVERITY_NOTE,
		"a /dev/shm larger than the memory limit",
		"What is in /dev/shm counts against the memory limit of the container: "
		"it "
		"is killed before /dev/shm is full."},
	[RULE_MEMLOCK] = {"memlock", SEVERITY_NOTE, "RDMA without IPC_LOCK",
		"RDMA pins memory. Where the runtime's memlock limit is not unlimited, "
		"registering it fails without the capability IPC_LOCK (ulimit -l in the "
		"pod "
		"tells)."},
	[RULE_PRIVILEGED] = {"privileged-unneeded", SEVERITY_NOTE,
		"a privileged container",
		"The device plugins mount what NCCL needs, and RDMA needs IPC_LOCK at "
		"most. "
		"A privileged container may do anything to its node."},
	[RULE_CAPABILITY] = {"capability-unneeded", SEVERITY_NOTE,
		"a capability that NCCL does not use",
		"NCCL changes no interfaces and mounts nothing: of capabilities only "
		"IPC_LOCK helps it, and SYS_NICE some NUMA calls."},
	[RULE_HOST_NETWORK_DNS] = {"host-network-dns", SEVERITY_FATAL,
		"hostNetwork without cluster DNS",
		"A pod in the host's network uses the node's DNS unless dnsPolicy is "
		"ClusterFirstWithHostNet, and the names of its peers do not resolve "
		"there."},
	[RULE_HOST_NETWORK_PORTS] = {"host-network-ports", SEVERITY_FATAL,
		"several pods of a job in one host's network",
		"Pods of one node share its ports when they are in its network, and the "
		"second one cannot listen on MASTER_PORT or sshd's."},
	[RULE_ZONE_PIN] = {"zone-pin-missing", SEVERITY_PERFORMANCE, "EFA between zones",
		"EFA traffic cannot leave its availability zone. If the scheduler "
		"spreads "
		"the pods over two, ranks find each other and never connect."},
	[RULE_TOLERATION] = {"toleration-missing", SEVERITY_NOTE,
		"GPU nodes are usually tainted",
		"Nodes with GPUs usually carry the taint nvidia.com/gpu. Unless an "
		"admission "
		"plugin adds the toleration, the pod stays pending."},
	[RULE_FABRIC_MANAGER] = {"fabric-manager-pod", SEVERITY_PERFORMANCE,
		"the fabric manager in a pod",
		"The fabric manager is a service of the host and comes with the driver "
		"of "
		"the node image; a second one in a pod fights with it. nvidia-smi -q | "
		"grep "
		"-A4 Fabric shows its state."},
	[RULE_ENV_UNKNOWN] = {"env-unknown", SEVERITY_NOTE, "no such variable",
		"Neither NCCL nor its network plugin reads a variable of this name; it "
		"is "
		"silently ignored."},
	[RULE_ENV_EMPTY] = {"env-empty", SEVERITY_PERFORMANCE, "an empty variable",
		"Set and empty is not unset: NCCL tries to open a file without a name, "
		"and "
		"the plugin leaves its own topology file out because the variable is "
		"set."},
	[RULE_ENV_HARMFUL] = {"env-harmful", SEVERITY_PERFORMANCE, "a value that harms",
		"The variable switches off what makes NCCL fast here."},
	[RULE_ENV_OBSOLETE] = {"env-obsolete", SEVERITY_NOTE,
		"a variable of old releases",
		"Newer releases ignore it, or do by themselves what it asks for."},
	[RULE_ENV_NO_EFFECT] = {"env-no-effect", SEVERITY_NOTE,
		"a variable without effect",
		"What the variable steers is not used here, whatever its value."},
	[RULE_ENV_FORCED] = {"env-forced", SEVERITY_NOTE, "tuning by hand",
		"NCCL chooses this by a model of the machine for every size. A value "
		"that "
		"helped one size on one machine costs on others."},
};
