#include "api/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/live.h"
#include "base/thread.h"
#include "comm/gpu.h"

struct job *job_create(enum job_kind kind, struct comm *parent)
{
	struct job *job = calloc(1, sizeof(*job));

	if (!job) {
		err_set(ERR_SYSTEM, "no memory for a call");
		return NULL;
	}
	job->kind = kind;
	job->parent = parent;
	/* of now: a group may change it before its end */
	job->gpu_context = gpu_context();
	return job;
}

void job_discard(struct job *job)
{
	free(job->args.ids);
	free(job->args.exclude);
	free(job);
}

/* Another thread may be waiting for the handle, to abort a call that blocks. */
static void store(ncclComm_t *out, struct comm *comm)
{
	__atomic_store_n(out, handle_of(comm), __ATOMIC_RELEASE);
}

enum err job_add_child(struct job *job, const struct comm_config *config, ncclComm_t *out)
{
	enum err e = comm_alloc(config, &job->child);

	if (e)
		return e;
	e = live_add(LIVE_COMM, job->child);
	if (e) {
		comm_abort(job->child);
		job->child = NULL;
		return e;
	}
	comm_async_set(job->child, ERR_PROGRESS);
	job->background = !config->blocking;
	job->out = out;
	store(out, job->child);
	return OK;
}

enum err job_add_ids(struct job *job, const ncclUniqueId *ids, int count)
{
	job->args.ids = malloc((size_t)count * sizeof(*job->args.ids));
	if (!job->args.ids)
		return err_set(ERR_SYSTEM, "no memory for %d unique ids", count);
	memcpy(job->args.ids, ids, (size_t)count * sizeof(*job->args.ids));
	job->args.init.ids = job->args.ids;
	job->args.init.id_count = (uint32_t)count;
	return OK;
}

/* The child came to nothing. An abort that was waiting for this job frees it instead. */
static void child_drop(struct job *job)
{
	if (!live_take(LIVE_COMM, job->child))
		comm_abort(job->child);
	job->child = NULL;
}

void job_cancel(struct job *job)
{
	if (job->child) {
		child_drop(job);
		store(job->out, NULL);
	}
	if (job->kind == JOB_DESTROY)
		live_left(job->parent, false);
	job_discard(job);
}

static enum err perform_split(struct job *job)
{
	bool no_color = false;
	enum err e = comm_split(
		job->parent, job->args.color, job->args.key, job->child, &no_color);

	if (e || !no_color)
		return e;
	/* No colour, no communicator: this rank only had to be there. */
	live_end(job->child);
	child_drop(job);
	if (!job->background)
		store(job->out, NULL);
	return OK;
}

static enum err perform_window(struct job *job)
{
	struct window *window;
	enum err e = comm_window_register(job->parent, job->args.pointer, job->args.bytes,
		job->args.flags, &window);

	if (!e)
		*job->args.window = (ncclWindow_t)window;
	return e;
}

static enum err perform(struct job *job)
{
	switch (job->kind) {
	case JOB_INIT:
		return comm_init(job->child, &job->args.init);
	case JOB_SPLIT:
		return perform_split(job);
	case JOB_SHRINK:
		return comm_shrink(job->parent, job->args.exclude,
			job->args.exclude_count, job->args.abort, job->child);
	case JOB_GROW:
		return comm_grow(job->parent, job->args.init.rank_count, job->args.ids,
			job->args.rank, job->child);
	case JOB_FINALIZE:
		return comm_finalize(job->parent);
	case JOB_DESTROY:
		live_left(job->parent, true);
		return comm_destroy(job->parent);
	case JOB_WINDOW:
		return perform_window(job);
	}
	return ERR_INTERNAL;
}

/* What a caller who waits sees is told through `out`; what a caller who polls sees,
 * through the stored result. */
static void job_settle(struct job *job, enum err result)
{
	bool doomed;

	job->result = result;
	if (!job->child)
		return;
	doomed = live_end_as(job->child, result);
	if (!result || job->background)
		return;
	if (!doomed)
		child_drop(job);
	store(job->out, NULL);
}

/* In the caller's thread, so that an abort right after the call finds a job running. A
 * parent that has failed already keeps its failure. */
static void chain_begin(struct job *head)
{
	head->entered_parent = head->parent && live_begin(head->parent);
	if (head->background && head->entered_parent && !comm_async_get(head->parent)) {
		comm_async_set(head->parent, ERR_PROGRESS);
		head->holds_parent = true;
	}
	for (struct job *job = head; job; job = job->chain)
		if (job->child)
			live_begin(job->child);
}

/* The other ranks are waiting for what this one cannot do. */
static void give_up(const struct job *job, enum err code)
{
	if (job->kind == JOB_INIT)
		comm_refuse(&job->args.init, code);
	else if (job->child && job->parent)
		comm_refuse_child(job->parent, code);
}

/* Nothing is performed when `refused` says why not. */
static void chain_run(struct job *head, enum err refused)
{
	enum err parent_result = OK;

	for (struct job *job = head; job; job = job->chain) {
		bool made_child = job->child;

		if (refused)
			give_up(job, refused);
		if (refused && job->kind == JOB_DESTROY)
			live_left(job->parent, false);
		job_settle(job, refused ? refused : perform(job));
		if (job->result && !head->sentence[0])
			snprintf(
				head->sentence, sizeof(head->sentence), "%s", err_last());
		if (!made_child && !parent_result)
			parent_result = job->result;
	}
	if (head->holds_parent)
		live_end_as(head->parent, parent_result);
	else if (head->entered_parent)
		live_end(head->parent);
}

static enum err chain_free(struct job *head)
{
	enum err first = OK;

	while (head) {
		struct job *job = head;

		head = job->chain;
		first = first ? first : job->result;
		job_discard(job);
	}
	return first;
}

/* Its parent's, once that is known to be one; else the caller's. */
static void *chain_context(const struct job *head)
{
	bool has_parent = head->entered_parent || head->holds_parent;
	void *context = has_parent ? gpu_context_of(head->parent) : NULL;

	return context ? context : head->gpu_context;
}

static void *waited_main(void *arg)
{
	gpu_context_use(chain_context(arg));
	chain_run(arg, OK);
	return NULL;
}

static void *background_main(void *arg)
{
	gpu_context_use(chain_context(arg));
	chain_run(arg, OK);
	chain_free(arg);
	return NULL;
}

/* The caller finds its context as it was. */
static void chain_run_here(struct job *head)
{
	void *had = gpu_context(), *wanted = chain_context(head);

	gpu_context_use(wanted);
	chain_run(head, OK);
	if (wanted != had)
		gpu_context_back(had);
}

/* Jobs of one parent behind each other; what is left in the list are the heads. A chain
 * is waited for when one of its jobs must be. */
static struct job *chains_of(struct job *jobs)
{
	struct job *heads = NULL, **tail = &heads;

	while (jobs) {
		struct job *job = jobs, *head = job->parent ? heads : NULL;

		jobs = job->next;
		job->next = NULL;
		while (head && head->parent != job->parent)
			head = head->next;
		if (!head) {
			*tail = job;
			tail = &job->next;
			continue;
		}
		head->background = head->background && job->background;
		job->background = head->background;
		while (head->chain)
			head = head->chain;
		head->chain = job;
	}
	return heads;
}

/* True when the chain goes on in its own time and frees itself. */
static bool chain_start(struct job *head)
{
	bool background = head->background;
	pthread_t thread;
	int error;

	error = thread_start_roomy(
		&thread, "weft-job", background ? background_main : waited_main, head);
	if (error) {
		chain_run(head, err_set(ERR_SYSTEM, "no thread: %s", strerror(error)));
		head->background = false;
		return false;
	}
	if (background) {
		pthread_detach(thread);
		return true;
	}
	head->thread = thread;
	head->has_thread = true;
	return false;
}

enum err job_run_all(struct job *jobs)
{
	struct job *heads = chains_of(jobs), *waited = NULL, *next;
	enum err result = OK, progress = OK;

	for (struct job *head = heads; head; head = head->next)
		chain_begin(head);
	if (heads && !heads->next && !heads->background) {
		chain_run_here(heads);
		return chain_free(heads);
	}
	for (struct job *head = heads; head; head = next) {
		next = head->next;
		if (chain_start(head)) {
			progress = ERR_PROGRESS;
			continue;
		}
		head->next = waited;
		waited = head;
	}
	for (; waited; waited = next) {
		enum err e;

		next = waited->next;
		if (waited->has_thread)
			pthread_join(waited->thread, NULL);
		if (waited->sentence[0])
			err_adopt(waited->sentence);
		e = chain_free(waited);
		result = e ? e : result;
	}
	return result ? result : progress;
}
