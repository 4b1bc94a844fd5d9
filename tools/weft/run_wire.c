#include "weft/run_wire.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READ_BYTES = 64 << 10, LIST_MAX = 1 << 16 };

static bool all_write(int fd, const char *data, size_t bytes)
{
	while (bytes > 0) {
		struct pollfd wait = {.fd = fd, .events = POLLOUT};
		ssize_t n = write(fd, data, bytes);

		if (n < 0 && errno == EAGAIN)
			poll(&wait, 1, -1);
		else if (n < 0 && errno != EINTR)
			return false;
		if (n > 0) {
			data += n;
			bytes -= (size_t)n;
		}
	}
	return true;
}

bool run_frame_send(
	int fd, enum run_kind kind, uint32_t rank, const void *data, size_t bytes)
{
	struct run_frame frame = {(uint32_t)kind, rank, (uint32_t)bytes};

	return all_write(fd, (const char *)&frame, sizeof(frame)) &&
	       all_write(fd, data, bytes);
}

int run_some_read(int fd, struct run_bytes *in)
{
	static char data[READ_BYTES];
	ssize_t n = read(fd, data, sizeof(data));

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	run_bytes_add(in, data, (size_t)n);
	return n > 0 ? 1 : -1;
}

bool run_frame_first(const struct run_bytes *in, struct run_frame *frame, bool *is_bad)
{
	if (in->count < sizeof(*frame))
		return false;
	memcpy(frame, in->data, sizeof(*frame));
	*is_bad = !frame->kind || frame->kind >= RUN_KIND_END ||
		  frame->bytes > RUN_FRAME_MAX;
	return !*is_bad && in->count - sizeof(*frame) >= frame->bytes;
}

static void list_pack(char **list, struct run_bytes *bytes)
{
	uint32_t count = 0;

	while (list[count])
		count++;
	run_bytes_add_number(bytes, count);
	for (uint32_t i = 0; i < count; i++)
		run_bytes_add_text(bytes, list[i]);
}

static char **list_unpack(struct run_bytes *bytes)
{
	uint32_t count = run_bytes_number(bytes);
	char **list = count <= LIST_MAX ? calloc(count + 1, sizeof(*list)) : NULL;

	if (!list) {
		bytes->is_bad = true;
		return NULL;
	}
	for (uint32_t i = 0; i < count; i++)
		list[i] = (char *)(uintptr_t)run_bytes_text(bytes);
	return list;
}

void run_job_pack(const struct run_job *job, struct run_bytes *bytes)
{
	run_bytes_add_number(bytes, job->rank_count);
	run_bytes_add_number(bytes, job->first_rank);
	run_bytes_add_number(bytes, job->host_ranks);
	run_bytes_add_number(bytes, job->host);
	run_bytes_add_number(bytes, job->host_count);
	run_bytes_add_number(bytes, job->is_even);
	run_bytes_add_text(bytes, job->folder);
	list_pack(job->settings, bytes);
	list_pack(job->argv, bytes);
}

bool run_job_unpack(struct run_bytes *bytes, struct run_job *job)
{
	job->rank_count = run_bytes_number(bytes);
	job->first_rank = run_bytes_number(bytes);
	job->host_ranks = run_bytes_number(bytes);
	job->host = run_bytes_number(bytes);
	job->host_count = run_bytes_number(bytes);
	job->is_even = run_bytes_number(bytes);
	job->folder = run_bytes_text(bytes);
	job->settings = list_unpack(bytes);
	job->argv = list_unpack(bytes);
	return !bytes->is_bad && job->argv[0] && job->host_ranks &&
	       job->rank_count <= LIST_MAX && job->host_ranks <= job->rank_count &&
	       job->first_rank <= job->rank_count - job->host_ranks;
}
