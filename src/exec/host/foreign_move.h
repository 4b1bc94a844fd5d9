/*
 * foreign_move.h - a move some of whose inputs lie in memory of other processes that is
 * not mapped here. They are fetched; nothing is ever written there.
 */
#ifndef EXEC_HOST_FOREIGN_MOVE_H
#define EXEC_HOST_FOREIGN_MOVE_H

#include "exec/fold.h"

/* Whose memory each input is: the process, or 0 where its address is good here. */
struct foreign {
	uint32_t in_pid[FOLD_INPUTS_MAX];
};

/* As fold_run(), fetching what is foreign. `bounce` has room for foreign_bounce_bytes()
 * and belongs to the caller. */
enum err foreign_fold(const struct fold *fold, const struct foreign *foreign,
	size_t bytes, char *bounce);

/* For a fold of that many inputs. */
size_t foreign_bounce_bytes(uint32_t in_count);

#endif
