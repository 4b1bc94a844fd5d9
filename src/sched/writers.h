/*
 * writers.h - the schedule writers, for catalog.c's table and nobody else.
 *
 * Each fills the schedule of one rank of two or more; catalog_write() has set coll,
 * rank_count, rank, root and hosts, and writes the schedule of a single rank itself.
 */
#ifndef SCHED_WRITERS_H
#define SCHED_WRITERS_H

#include "sched/crew.h"

enum err ring_all_reduce(struct sched *sched);
enum err ring_reduce_scatter(struct sched *sched);
enum err ring_all_gather(struct sched *sched);
enum err ring_broadcast(struct sched *sched);
enum err ring_reduce(struct sched *sched);

enum err tree_all_reduce(struct sched *sched);
enum err tree_broadcast(struct sched *sched);
enum err tree_reduce(struct sched *sched);

enum err direct_all_reduce(struct sched *sched);
enum err direct_reduce_scatter(struct sched *sched);
enum err direct_all_gather(struct sched *sched);
enum err direct_all_to_all(struct sched *sched);
enum err direct_gather(struct sched *sched);
enum err direct_scatter(struct sched *sched);
enum err direct_broadcast(struct sched *sched);
enum err direct_reduce(struct sched *sched);

enum err oneshot_all_reduce(struct sched *sched);

enum err halving_all_reduce(struct sched *sched);
enum err doubling_all_reduce(struct sched *sched);
enum err halving_reduce_scatter(struct sched *sched);
enum err bruck_all_gather(struct sched *sched);

enum err scatter_gather_broadcast(struct sched *sched);
enum err scatter_gather_reduce(struct sched *sched);

/* What is done inside the hosts, around crew->compose: crew_begin() went well. */
void hosts_all_reduce(struct crew *crew);
void hosts_broadcast(struct crew *crew);
void hosts_reduce(struct crew *crew);
void hosts_all_gather(struct crew *crew);
void hosts_reduce_scatter(struct crew *crew);
void hosts_all_to_all(struct crew *crew);
/* with one driver a host */
void hosts_gather(struct crew *crew);
void hosts_scatter(struct crew *crew);

/* Position of `rank` in tree 0 or 1 of the double binary tree over `rank_count` ranks:
 * its parent, or `rank` itself at the root. */
uint32_t tree_parent(uint32_t tree, uint32_t rank_count, uint32_t rank);

#endif
