/*
 * write_sheet.h - what all kinds of manifests that `weft k8s new` writes are made of.
 */
#ifndef TOOLS_WEFT_K8S_WRITE_SHEET_H
#define TOOLS_WEFT_K8S_WRITE_SHEET_H

#include "weft/k8s/write.h"

/* The manifest while it is written. */
struct sheet {
	FILE *out;
	const struct write_args *args;
	const struct machine_kind *machine;
	const char *name, *image;
	int pods, gpus, efa;  /* pods in all; devices of one */
	bool is_aws, is_wide; /* more than one pod */
};

/* One line: blanks, the text, and a comment behind it where there is one. */
void sheet_line(const struct sheet *sheet, int indent, const char *comment,
	const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Who runs in a pod, for sheet_pod(). */
struct sheet_role {
	const char *container;
	const char *restart; /* NULL: not said */
	bool is_ranks;	     /* has GPUs; else it only starts others */
	bool has_resources;  /* false where the job says them elsewhere */
	void (*command)(const struct sheet *sheet, int indent); /* NULL: the image's */
};

/* The fields of a pod's spec, at this indentation. */
void sheet_pod(const struct sheet *sheet, int indent, const struct sheet_role *role);

/* "limits:" and "requests:" */
void sheet_resources(const struct sheet *sheet, int indent);
/* The items of "env:". */
void sheet_env(const struct sheet *sheet, int indent);
/* "metadata:" of a pod: labels that hold the pods together, no sidecar. */
void sheet_pod_meta(const struct sheet *sheet, int indent);

/* Commands (write_command.c). */
void command_mpirun(const struct sheet *sheet, int indent);
void command_operator(const struct sheet *sheet, int indent); /* PET_* are set */
void command_indexed(const struct sheet *sheet, int indent);  /* Job, JobSet */
void command_ordinal(const struct sheet *sheet, int indent);  /* StatefulSet */

/* Where rank 0 is (write_kinds.c). */
void sheet_master(const struct sheet *sheet, char *text, size_t bytes);

/* Each kind, whole (write_kinds.c). */
void kind_mpijob(const struct sheet *sheet);
void kind_pytorchjob(const struct sheet *sheet);
void kind_trainjob(const struct sheet *sheet);
void kind_job(const struct sheet *sheet);
void kind_jobset(const struct sheet *sheet);
void kind_statefulset(const struct sheet *sheet);

#endif
