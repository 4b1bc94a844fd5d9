#include "weft/doctor/jobs.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* How a kept line lies in the buffer: this, then its text. */
struct held_head {
	uint64_t number;
	size_t bytes;
};

enum err jobs_init(struct jobs *jobs)
{
	enum err e;

	*jobs = (struct jobs){.test_rank = -1};
	jobs->held = malloc(JOBS_HELD_BYTES);
	if (!jobs->held)
		return err_set(ERR_SYSTEM, "no memory to read logs");
	e = log_facts_create(&jobs->facts[0]);
	if (e)
		jobs_fini(jobs);
	else
		jobs->count = 1;
	return e;
}

void jobs_fini(struct jobs *jobs)
{
	for (uint32_t i = 0; i < jobs->count; i++)
		log_facts_destroy(jobs->facts[i]);
	free(jobs->held);
	*jobs = (struct jobs){0};
}

enum err jobs_file(struct jobs *jobs, const char *name)
{
	enum err e = OK;

	for (uint32_t i = 0; i < jobs->count && !e; i++)
		e = log_facts_file(jobs->facts[i], name);
	return e;
}

static bool add_job(struct jobs *jobs)
{
	const struct log_facts *last = jobs->facts[jobs->count - 1];
	struct log_facts *made;

	if (jobs->count == JOBS_MAX || log_facts_create(&made))
		return false;
	made->file_count = last->file_count;
	memcpy(made->files, last->files, last->file_count * sizeof(*last->files));
	jobs->facts[jobs->count++] = made;
	return true;
}

static bool hold(struct jobs *jobs, const struct line *line)
{
	struct held_head head = {line->number, line->bytes};

	if (JOBS_HELD_BYTES - jobs->held_bytes < sizeof(head) + line->bytes)
		return false;
	memcpy(jobs->held + jobs->held_bytes, &head, sizeof(head));
	memcpy(jobs->held + jobs->held_bytes + sizeof(head), line->text, line->bytes);
	jobs->held_bytes += sizeof(head) + line->bytes;
	return true;
}

bool jobs_release(struct jobs *jobs, size_t *from, struct line *line)
{
	struct held_head head;

	jobs->is_holding = false;
	if (*from >= jobs->held_bytes) {
		jobs->held_bytes = 0;
		return false;
	}
	memcpy(&head, jobs->held + *from, sizeof(head));
	line->number = head.number;
	line->bytes = head.bytes;
	line->text = jobs->held + *from + sizeof(head);
	*from += sizeof(head) + head.bytes;
	return true;
}

/* What a process says first of all. */
static bool is_first_word(const struct record *record)
{
	static const char *const words[] = {"Bootstrap", "cudaDriverVersion",
		"NCCL version", "NCCL_", "NET/", "ENV/", "Using network"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (text_begins(record->text, record->bytes, words[i]))
			return true;
	return false;
}

static bool has_run(const struct log_facts *facts)
{
	return facts->init_completes || facts->chain.count || facts->average_count;
}

/* Does a process that was not there before come after a job has run? */
static bool is_newcomer(const struct jobs *jobs, const struct record *record)
{
	const struct log_facts *newest = jobs->facts[jobs->count - 1];

	if (record->level == RECORD_OTHER || !record->host || !has_run(newest) ||
		!is_first_word(record))
		return false;
	for (uint32_t i = 0; i < jobs->count; i++)
		if (log_facts_has_pid(jobs->facts[i], record))
			return false;
	return true;
}

/* A further table of a test, after one ended. */
static bool is_next_test(
	struct jobs *jobs, const struct line *line, const struct record *record)
{
	const struct log_facts *newest = jobs->facts[jobs->count - 1];
	int before = jobs->test_rank;

	if (record->level != RECORD_OTHER ||
		!memchr(record->text, '#', record->bytes < 64 ? record->bytes : 64) ||
		!(text_has(record->text, record->bytes, "# nThread ") ||
			text_has(record->text, record->bytes,
				"# Collective test starting") ||
			text_has(record->text, record->bytes, "# nccl-tests version")))
		return false;
	jobs->test_rank = record_launcher_rank(line->text, line->bytes);
	return newest->average_count && (before < 0 || before >= jobs->test_rank);
}

/* Which rank of which communicator a newcomer is says whose it is. */
static enum jobs_verdict judge(struct jobs *jobs, const struct record *record)
{
	struct log_facts *newest = jobs->facts[jobs->count - 1];
	struct fact_member member;
	bool is_new;

	/* a process of an earlier job is nobody's newcomer */
	if (record->level != RECORD_INFO || !log_facts_member(record, &member) ||
		log_facts_has_pid(newest, record))
		return JOBS_HELD;
	if (member.rank_count == 1 || !newest->member_count ||
		(member.comm && log_facts_has_comm(newest, member.comm)))
		return JOBS_DECIDED;
	is_new = log_facts_has_member(newest, &member) ||
		 !log_facts_has_size(newest, member.rank_count);
	if (is_new)
		add_job(jobs);
	return JOBS_DECIDED;
}

enum jobs_verdict jobs_look(struct jobs *jobs, const struct line *line,
	const struct record *first, size_t from)
{
	struct record record;
	enum jobs_verdict verdict;

	if (!jobs->is_holding) {
		if (is_next_test(jobs, line, first))
			add_job(jobs);
		if (!is_newcomer(jobs, first))
			return JOBS_TAKE;
		jobs->is_holding = true;
	}
	if (!hold(jobs, line))
		return JOBS_FULL;
	record = *first;
	do
		verdict = judge(jobs, &record);
	while (verdict == JOBS_HELD &&
		record_next(line->text, line->bytes, &from, &record));
	return verdict;
}

struct log_facts *jobs_of(struct jobs *jobs, const struct record *record)
{
	uint32_t newest = jobs->count - 1;

	if (newest && record->level != RECORD_OTHER && record->host &&
		!log_facts_has_pid(jobs->facts[newest], record))
		for (uint32_t i = newest; i-- > 0;)
			if (log_facts_has_pid(jobs->facts[i], record))
				return jobs->facts[i];
	return jobs->facts[newest];
}
