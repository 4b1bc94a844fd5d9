#include "drive_lines.h"

#include <stdlib.h>
#include <string.h>

#include "gpu_memory.h"
#include "test.h"

time_t deadline(void)
{
	return time(NULL) + WAIT_S;
}

void line_listen(struct line *line, struct world *from, struct world *to)
{
	*line = (struct line){.world = from};
	EQ(net_listen(to, line->handle, &line->listener), ncclSuccess);
	TRUE(line->listener);
}

/* One round of asking; is it there? */
static bool line_ask(struct line *line)
{
	if (!line->send.comm)
		went(net_connect(line->world, line->handle, &line->send.comm));
	if (!line->recv.comm)
		went(net_accept(line->listener, &line->recv.comm));
	return failure || (line->send.comm && line->recv.comm);
}

bool is_on_gpu(const char *end)
{
	const char *which = getenv("DRIVE_GPU");

	return which && strstr(which, end);
}

static int end_register(struct end *end)
{
	uint64_t offset = 0;

	if (end->is_gpu && is_on_gpu("dmabuf"))
		return net->regMrDmaBuf(end->comm, end->data, (size_t)STEPS * STEP_BYTES,
			NCCL_PTR_CUDA, offset, gpu_file(end->data, &offset), &end->known);
	return net->regMr(end->comm, end->data, STEPS * STEP_BYTES,
		end->is_gpu ? NCCL_PTR_CUDA : NCCL_PTR_HOST, &end->known);
}

static void end_memory(struct end *end, bool is_gpu)
{
	size_t bytes = (size_t)STEPS * STEP_BYTES;

	end->is_gpu = is_gpu;
	end->data = is_gpu ? gpu_alloc(bytes) : aligned_alloc(4096, bytes);
	TRUE(end->data);
	end->seen = is_gpu ? gpu_see(end->data) : end->data;
	memset(end->seen, 0, bytes);
	if (went(end_register(end)))
		TRUE(end->known);
	else
		end->known = NULL;
}

void end_free(struct end *end)
{
	if (end->is_gpu && end->data)
		gpu_free(end->data);
	else
		free(end->data);
}

void lines_open(struct line *lines, int count, struct world *from, struct world *to)
{
	time_t until = deadline();
	bool is_done = false;

	for (int i = 0; i < count; i++)
		line_listen(&lines[i], from, to);
	for (int turn = 0; turn < 3; turn++) /* nobody accepts yet */
		for (int i = 0; i < count; i++)
			if (!lines[i].send.comm)
				EQ(net_connect(
					   from, lines[i].handle, &lines[i].send.comm),
					ncclSuccess);
	for (; !is_done; TRUE(time(NULL) < until)) {
		is_done = true;
		for (int i = 0; i < count; i++)
			is_done = line_ask(&lines[i]) && is_done;
	}
	for (int i = 0; i < count && !failure; i++) {
		end_memory(&lines[i].send, is_on_gpu("send"));
		end_memory(&lines[i].recv, is_on_gpu("recv"));
	}
}

void end_forget(struct end *end)
{
	if (end->known)
		EQ(net->deregMr(end->comm, end->known), ncclSuccess);
	end->known = NULL;
}

void line_close(struct line *line, int order)
{
	end_forget(&line->send);
	end_forget(&line->recv);
	for (int i = 0; i < 3; i++)
		switch ((i + order) % 3) {
		case 0:
			EQ(net->closeSend(line->send.comm), ncclSuccess);
			break;
		case 1:
			EQ(net->closeRecv(line->recv.comm), ncclSuccess);
			break;
		default:
			EQ(net->closeListen(line->listener), ncclSuccess);
		}
	end_free(&line->send);
	end_free(&line->recv);
}

/* ---- messages ---- */

static size_t size_of(unsigned seed, uint64_t message)
{
	static const size_t sizes[] = {
		8, 0, 4096, STEP_BYTES, 1, 65536, 7, 131072 + 3, 16384};

	return sizes[(seed + message) % (sizeof(sizes) / sizeof(*sizes))];
}

static unsigned char byte_of(unsigned seed, uint64_t message, size_t i)
{
	return (unsigned char)(seed * 101 + message * 31 + i * 7 + (i >> 9));
}

static size_t offset_of(uint64_t message)
{
	return (size_t)(message % STEPS) * STEP_BYTES;
}

static char *step_of(const struct end *end, uint64_t message)
{
	return end->data + offset_of(message);
}

void send_post(struct line *line)
{
	struct end *end = &line->send;
	uint64_t message = end->posted;
	size_t bytes = size_of(line->seed, message);
	char *data = step_of(end, message);
	void *request = NULL;

	if (message == MESSAGES || message - end->done == STEPS)
		return;
	for (size_t i = 0; end->filled == message && i < bytes; i++)
		end->seen[offset_of(message) + i] = (char)byte_of(line->seed, message, i);
	end->filled = message + 1;
	if (!went(net_send(end->comm, data, bytes, end->known, &request)) || !request)
		return;
	end->requests[message % STEPS] = request;
	end->posted++;
}

void recv_post(struct line *line)
{
	struct end *end = &line->recv;
	void *request = NULL;

	if (end->posted == MESSAGES || end->posted - end->done == STEPS)
		return;
	if (!went(net_recv(end->comm, step_of(end, end->posted), STEP_BYTES, end->known,
		    &request)) ||
		!request)
		return;
	end->requests[end->posted % STEPS] = request;
	end->posted++;
}

/* Those of an end that are done, in any order; -1: it is not. */
static int request_test(struct end *end, uint64_t message)
{
	void **request = &end->requests[message % STEPS];
	int done = 0, bytes = -1;

	if (!went(net->test(*request, &done, &bytes)) || !done)
		return -1;
	*request = NULL;
	return bytes;
}

static void message_check(struct line *line, uint64_t message, int bytes)
{
	const char *data = line->recv.seen + offset_of(message);

	EQ(bytes, size_of(line->seed, message));
	for (int i = 0; i < bytes; i++)
		EQ((unsigned char)data[i], byte_of(line->seed, message, (size_t)i));
}

void line_flush(struct line *line, uint64_t message, int size)
{
	struct end *end = &line->recv;
	void *data = step_of(end, message), *request = NULL;
	int done = 0;

	EQ(net->iflush(end->comm, 1, &data, &size, &end->known, &request), ncclSuccess);
	for (time_t until = deadline(); request && !done; TRUE(time(NULL) < until))
		EQ(net->test(request, &done, NULL), ncclSuccess);
}

void line_sent(struct line *line)
{
	while (line->send.done < line->send.posted &&
		request_test(&line->send, line->send.done) >= 0)
		line->send.done++;
}

void line_receive(struct line *line)
{
	while (line->recv.done < line->recv.posted) {
		int bytes = request_test(&line->recv, line->recv.done);

		if (bytes < 0)
			break;
		line_flush(line, line->recv.done, bytes);
		message_check(line, line->recv.done, bytes);
		line->recv.done++;
	}
}

static void line_move(struct line *line)
{
	recv_post(line);
	send_post(line);
	line_sent(line);
	line_receive(line);
}

void lines_run(struct line *lines, int count)
{
	time_t until = deadline();
	bool is_done = false;

	while (!is_done) {
		is_done = true;
		for (int i = 0; i < count; i++) {
			line_move(&lines[i]);
			is_done = is_done &&
				  (failure || (lines[i].recv.done == MESSAGES &&
						      lines[i].send.done == MESSAGES));
		}
		TRUE(time(NULL) < until);
	}
}
