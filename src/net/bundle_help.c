/*
 * bundle_help.c - threads that read and write the cables of a bundle, where the user asks
 * for them (WEFT_SOCKET_HELPERS). Each has cables of its own. None is awake while
 * nothing is asked for.
 */
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/thread.h"
#include "net/bundle.h"

enum { NAP_MS = 50 };

void bundle_lock(struct bundle *bundle)
{
	if (bundle && bundle->help.is_there)
		pthread_mutex_lock(&bundle->lock);
}

void bundle_unlock(struct bundle *bundle)
{
	if (bundle && bundle->help.is_there)
		pthread_mutex_unlock(&bundle->lock);
}

/* One that is awake may have looked already at what there is to do now: it lets go of the
 * lock while it reads and writes. So it looks once more before it sleeps. */
static void helper_wake(struct helper *helper)
{
	uint64_t one = 1;

	helper->is_called = true;
	if (!helper->is_asleep)
		return;
	helper->is_asleep = false;
	if (write(helper->wake_fd, &one, sizeof(one)) < 0)
		return; /* it has been woken more often than it can count */
}

void helpers_wake(struct bundle *bundle)
{
	for (uint32_t i = 0; i < bundle->help.count; i++)
		helper_wake(&bundle->help.threads[i]);
}

static void helper_sleep(struct helper *helper, uint32_t step)
{
	const struct bundle *bundle = helper->end->bundle;
	struct pollfd fds[NET_CABLES_MAX + 1] = {
		{.fd = helper->wake_fd, .events = POLLIN}};
	bool is_idle = !bundle->parcels.count;
	uint32_t count = 1;
	uint64_t woken;

	for (uint32_t i = helper->index; i < bundle->count; i += step)
		if (fibre_is_open(&bundle->fibres[i]))
			fds[count++] = (struct pollfd){.fd = bundle->fibres[i].cable.fd,
				.events = fibre_events(&bundle->fibres[i])};
	helper->is_asleep = true;
	bundle_unlock(helper->end->bundle);
	poll(fds, count, is_idle ? -1 : NAP_MS);
	if (fds[0].revents && read(helper->wake_fd, &woken, sizeof(woken)) < 0)
		fds[0].revents = 0; /* somebody else was quicker: there is nobody else */
	bundle_lock(helper->end->bundle);
	helper->is_asleep = false;
}

static void *helper_main(void *argument)
{
	struct helper *helper = argument;
	struct bundle *bundle = helper->end->bundle;
	struct portion portion = {.first = helper->index};

	bundle_lock(bundle);
	portion.step = bundle->help.count;
	while (!bundle->help.is_closing) {
		helper->is_called = false;
		if (!bundle_is_lost(bundle))
			bundle_move(helper->end, portion);
		if (bundle_is_lost(bundle))
			pthread_cond_signal(&bundle->news);
		if (!helper->is_called)
			helper_sleep(helper, portion.step);
	}
	bundle_unlock(bundle);
	return NULL;
}

void helpers_stop(struct bundle *bundle)
{
	bundle_lock(bundle);
	bundle->help.is_closing = true;
	for (uint32_t i = 0; i < bundle->help.count; i++)
		helper_wake(&bundle->help.threads[i]);
	bundle_unlock(bundle);
	for (uint32_t i = 0; i < bundle->help.count; i++) {
		pthread_join(bundle->help.threads[i].thread, NULL);
		close(bundle->help.threads[i].wake_fd);
	}
	bundle->help.count = 0;
	bundle->help.is_there = bundle->help.is_closing = false;
	free(bundle->help.threads);
	bundle->help.threads = NULL;
}

static enum err helper_start(struct helper *helper)
{
	helper->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (helper->wake_fd >= 0 &&
		!thread_start(&helper->thread, "weft-net", helper_main, helper))
		return OK;
	if (helper->wake_fd >= 0)
		close(helper->wake_fd);
	return err_set(ERR_SYSTEM,
		"no thread to help with a connection: %m (WEFT_SOCKET_HELPERS)");
}

/* No more than there are cables. They begin when the lock is free, and know then how many
 * they are. */
enum err helpers_start(struct net_end *end)
{
	struct bundle *bundle = end->bundle;
	uint32_t count = bundle->manner.threads, started = 0;
	enum err e = OK;

	if (!count || bundle->help.is_there)
		return OK;
	count = count < bundle->count ? count : bundle->count;
	bundle->help.threads = calloc(count, sizeof(*bundle->help.threads));
	if (!bundle->help.threads)
		return err_set(ERR_SYSTEM, "no memory for threads of a connection");
	bundle->help.is_there = true;
	pthread_mutex_lock(&bundle->lock);
	while (started < count && !e) {
		bundle->help.threads[started] = (struct helper){
			.end = end, .index = started};
		e = helper_start(&bundle->help.threads[started]);
		started += !e;
	}
	bundle->help.count = started;
	pthread_mutex_unlock(&bundle->lock);
	if (e)
		helpers_stop(bundle);
	return e;
}
