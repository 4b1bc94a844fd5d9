#include "perf/coll.h"

#include <string.h>

static const struct coll_kind *const kinds[] = {&coll_all_reduce, &coll_reduce,
	&coll_reduce_scatter, &coll_all_gather, &coll_broadcast, &coll_gather,
	&coll_scatter, &coll_hypercube, &coll_alltoall, &coll_alltoallv, &coll_sendrecv};

const struct coll_kind *coll_find(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(name, kinds[i]->name))
			return kinds[i];
	return NULL;
}

size_t coll_count_whole(const struct coll_shape *shape)
{
	return shape->total;
}

size_t coll_count_share(const struct coll_shape *shape)
{
	size_t unit = 16 / shape->elem_bytes;

	return shape->total / shape->rank_count / unit * unit;
}

size_t coll_elems_one(const struct coll_shape *shape)
{
	return shape->count;
}

size_t coll_elems_all(const struct coll_shape *shape)
{
	return shape->count * shape->rank_count;
}

size_t coll_offset_none(const struct coll_shape *shape)
{
	(void)shape;
	return 0;
}

size_t coll_offset_rank(const struct coll_shape *shape)
{
	return shape->rank * shape->count;
}

double coll_factor_one(uint32_t rank_count)
{
	(void)rank_count;
	return 1;
}

double coll_factor_share(uint32_t rank_count)
{
	return (double)(rank_count - 1) / (double)rank_count;
}

bool coll_part_own(const struct coll_shape *shape, uint32_t i, struct data_part *part)
{
	*part = (struct data_part){PART_COPY, shape->rank, 0, shape->count, 0};
	return i == 0;
}
