/*
 * setting.h - the variables of the plugin, OFI_NCCL_*, in one table.
 *
 * They are the names that users of aws-ofi-nccl know. What is no number where one is
 * wanted, or out of range, fails the start; a name that nobody knows is told, with the
 * nearest that there is. Those of aws-ofi-nccl that have no effect here are told with
 * what to use instead.
 */
#ifndef PLUGINS_OFI_SETTING_H
#define PLUGINS_OFI_SETTING_H

#include <stdbool.h>
#include <stdint.h>

enum setting {
	SET_USE_IPV6_TCP,
	SET_EXCLUDE_TCP_IF,
	SET_CQ_READ_COUNT,
	SET_CQ_SIZE,
	SET_PROTOCOL,
	SET_EAGER_MAX_SIZE,
	SET_MIN_STRIPE_SIZE,
	SET_FORCE_NUM_RAILS,
	SET_NET_LATENCY,
	SET_MR_CACHE_DISABLE,
	SET_PLATFORM,
	SET_FORCE_PRODUCT_NAME,
	SET_TUNER_TYPE,
	SET_ABORT_ON_ERROR,
	SET_GDR_FLUSH_DISABLE,
	SET_CUDA_FLUSH_ENABLE,
	SET_DISABLE_DMABUF,
	SET_DISABLE_GDR_REQUIRED_CHECK,
	SET_PROGRESS_MODEL,
	SET_NIC_DUP_CONNS,
	SET_SKIP_LONE,
	SET_EARLY_COMPLETION,
	SET_COUNT
};

struct setting_info {
	const char *name; /* with OFI_NCCL_ */
	bool is_text;
	int64_t fallback, lowest, highest;
	const char *text_fallback;
	const char *meaning;
};

const struct setting_info *setting_info(enum setting id);

/* Read them all; OFI_ARGUMENT, with a sentence, when one makes no sense. Safe to call
 * again. */
int settings_read(void);

/* Their values since then. */
int64_t setting_int(enum setting id);
const char *setting_text(enum setting id);
bool setting_is_given(enum setting id);

/* Names that a variable, "NAME=VALUE" or its name alone, may be a slip of. */
struct setting_names {
	const char *const *names;
	int count;
	uint32_t most; /* letters that may be wrong */
	bool is_known; /* out: it is one of them */
};

/* The nearest; NULL: it is one of them, or like none. */
const char *setting_nearest(const char *entry, struct setting_names *names);

#endif
