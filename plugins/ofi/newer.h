/*
 * newer.h - what libfabric has gained since 1.17, for a plugin that may be built with
 * that and run with any later one. The names are ours; the numbers and layouts are its
 * ABI.
 */
#ifndef PLUGINS_OFI_NEWER_H
#define PLUGINS_OFI_NEWER_H

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

/* An option of endpoints, from 1.18 on: may the provider call CUDA? A bool. */
enum { NEWER_OPT_CUDA_API = 10 };

/* Of the provider efa, from 1.19 on: lines of 128 bytes come whole, in messages and in
 * writes. Bools. */
enum {
	NEWER_OPT_EFA_LINES_SENT = -(0xefa << 16) + 5,
	NEWER_OPT_EFA_LINES_WRITTEN = -(0xefa << 16) + 6
};

/* Registering by dma-buf, from 1.20 on: a flag of fi_mr_regattr(), and what stands in
 * the place of `mr_iov` then. */
#define NEWER_MR_DMABUF (1ULL << 40)

struct newer_dmabuf {
	int fd;
	uint64_t offset;
	size_t bytes;
	void *base;
};

/* With room for all members that were added behind those of 1.17. */
union newer_mr_attr {
	struct fi_mr_attr attr;
	const struct newer_dmabuf *dmabuf;
	uint64_t room[32];
};

#endif
