/*
 * work.h - what a document starts: which kind it is, its sets of like pods, how many of
 * each, what each asks for, on which machine.
 *
 * A fragment without kind is taken for what it looks like: people show a job's trainer or
 * a pod's spec alone.
 */
#ifndef TOOLS_WEFT_K8S_WORK_H
#define TOOLS_WEFT_K8S_WORK_H

#include "topo/instance.h"
#include "weft/k8s/doc.h"

enum work_kind {
	WORK_NONE, /* nothing that runs pods, or a kind that is not known here */
	WORK_POD,
	WORK_JOB,
	WORK_STATEFULSET,
	WORK_DAEMONSET,
	WORK_DEPLOYMENT,
	WORK_JOBSET,
	WORK_MPIJOB,
	WORK_PYTORCHJOB,
	WORK_TRAINJOB,
	WORK_RUNTIME
};

/* A machine as Kubernetes offers it. */
struct machine_kind {
	const char *name;
	int gpus, efa; /* efa: -1 where nobody has counted */
};

/* By the name of the instance type; NULL when it is not known. */
const struct machine_kind *machine_kind_find(const char *name);
/* The nearest name to one that is not there; NULL when none is near. */
const char *machine_kind_near(const char *name);
/* Does this instance type look like one of AWS's with GPUs, known or not? */
bool machine_kind_is_aws(const char *name);

enum { WORK_SETS_MAX = 16 };

/* Pods that are alike. */
struct pod_set {
	const char *role;      /* "Worker", "Launcher", "Master", "node" */
	struct node *at;       /* for findings about the set as a whole */
	struct node *template; /* with metadata and spec; NULL: a TrainJob's */
	struct node *spec;     /* of the pod; NULL: a TrainJob's, which its runtime has */
	struct node *containers; /* list; NULL */
	struct node *container; /* the one that has the GPUs, else the first; a TrainJob's
				 * trainer */
	struct node *resources; /* of it */
	int64_t replicas;
	bool is_launcher;		    /* runs mpirun and no rank */
	int64_t gpus, efa;		    /* of one pod; 0 none */
	bool has_rdma;			    /* some other network device is asked for */
	const char *machine_name;	    /* as the manifest or --machine says; NULL */
	const struct node *machine_at;	    /* where it says so */
	const struct machine_kind *machine; /* NULL: not known */
};

struct work {
	const struct doc_file *file;
	struct node *root; /* of the document */
	struct node *spec;
	enum work_kind kind;
	bool is_fragment;		    /* without kind and apiVersion */
	const char *kind_name, *api, *name; /* as written; "" where absent */
	struct pod_set sets[WORK_SETS_MAX];
	uint32_t set_count;
	int64_t slots; /* MPI: per worker. torch: processes per pod; 0 not said */
	const struct node *slots_at;
};

/* The objects of a file in order: its documents, and of a List each of its items. From a
 * zeroed walk; NULL: no further one. */
struct object_walk {
	uint32_t doc, item;
};
struct node *work_next(const struct doc_file *file, struct object_walk *walk);

/* "Pod, Job, .. and TrainJob": the kinds that are known here. */
void work_kinds(char *text, size_t room);
/* The known kind that another one is a misspelling of; NULL. */
const char *work_kind_near(const char *kind);

/* Look at a document; `machine` is the one the user named, or NULL. */
void work_read(const struct doc_file *file, struct node *root, const char *machine,
	struct work *work);

/* Pods that run ranks, all sets together. */
int64_t work_rank_pods(const struct work *work);
int64_t work_gpus(const struct work *work);
/* Of the set with ranks and GPUs, the first; NULL. */
const struct pod_set *work_main_set(const struct work *work);

/* "5120Mi", "64Gi", "1e9", "2": bytes; false for what is no quantity. */
bool quantity_bytes(const char *text, double *bytes);

#endif
