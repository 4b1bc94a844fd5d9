/*
 * check.h - `weft k8s check`: files in, findings out.
 */
#ifndef TOOLS_WEFT_K8S_CHECK_H
#define TOOLS_WEFT_K8S_CHECK_H

#include "weft/k8s/rule.h"

/* One file and what was found in it. */
struct check_result {
	struct doc_file file;	  /* owned */
	struct findings findings; /* owned; sorted */
	uint32_t object_count;	  /* documents with a kind, or that look like one */
	uint32_t work_count;	  /* those of them whose pods are known here */
};

/* All rules over all documents of a file that was read. */
void check_file(const struct check_options *options, struct check_result *result);

void check_result_free(struct check_result *result);

/* The file's text with everything corrected that can be, again and again until nothing
 * more is; the caller's. `fixed` counts findings. NULL when there is no memory, or the
 * text is not YAML. */
char *check_fix(const struct check_options *options, const struct check_result *result,
	uint32_t *fixed);

/* Replace the file's content at once: whoever reads sees the old or the new text. */
enum err check_write(const char *path, const char *text);

#endif
