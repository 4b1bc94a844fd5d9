/*
 * socket_cable.c - one TCP connection as bytes: what is read ahead, and how it ends.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/socket.h"

void cable_close(struct cable *cable)
{
	approach_end(cable);
	if (cable->fd >= 0)
		close(cable->fd);
	cable->fd = -1;
	free(cable->ahead);
	cable->ahead = NULL;
	auth_wipe(&cable->guard, sizeof(cable->guard));
}

enum err cable_lost(struct cable *cable, const char *why)
{
	cable->phase = CABLE_LOST;
	snprintf(cable->why, sizeof(cable->why), "%s", why);
	approach_end(cable);
	return ERR_REMOTE;
}

ssize_t cable_receive(const struct cable *cable, struct iovec list, size_t ahead)
{
	struct iovec both[2] = {list, {cable->ahead + cable->ahead_count, ahead}};
	struct msghdr message = {.msg_iov = list.iov_len ? both : both + 1,
		.msg_iovlen = list.iov_len ? 2 : 1};

	return recvmsg(cable->fd, &message, 0);
}

const char cable_unanswered[] = "it does not answer any more, see WEFT_SILENCE_SEC";

enum err cable_received(
	struct cable *cable, ssize_t got, struct iovec list, size_t *direct)
{
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return ERR_AGAIN;
	if (got < 0)
		return cable_lost(
			cable, errno == ETIMEDOUT ? cable_unanswered : strerror(errno));
	if (!got)
		return cable_lost(cable, "the other end has closed it");
	*direct = (size_t)got < list.iov_len ? (size_t)got : list.iov_len;
	cable->ahead_count += (size_t)got - *direct;
	return OK;
}

enum err cable_fill(struct cable *cable, struct iovec list, size_t ahead, size_t *direct)
{
	return cable_received(cable, cable_receive(cable, list, ahead), list, direct);
}

enum err cable_have(struct cable *cable, size_t bytes)
{
	size_t direct;
	enum err e = OK;

	while (cable->ahead_count < bytes && !e) {
		memmove(cable->ahead, cable_kept(cable), cable->ahead_count);
		cable->ahead_first = 0;
		e = cable_fill(cable, (struct iovec){0}, AHEAD_BYTES - cable->ahead_count,
			&direct);
	}
	return e;
}

void cable_drop(struct cable *cable, size_t bytes)
{
	cable->ahead_first += bytes;
	cable->ahead_count -= bytes;
	if (!cable->ahead_count)
		cable->ahead_first = 0;
}

/* The kernel knows whether what it sent, or asked, was answered. A receiver that has no
 * room is no silence: it answers. So no limit on unsent bytes would do here
 * (TCP_USER_TIMEOUT), which cuts that one off as well. */
bool cable_is_mute(const struct cable *cable, uint32_t silence_ms)
{
	struct tcp_info info = {0};
	socklen_t bytes = sizeof(info);

	if (!silence_ms || cable->phase != CABLE_OPEN ||
		getsockopt(cable->fd, IPPROTO_TCP, TCP_INFO, &info, &bytes))
		return false;
	return info.tcpi_last_ack_recv > silence_ms &&
	       ((info.tcpi_unacked && info.tcpi_retransmits > 1) || info.tcpi_probes > 1);
}

void cable_keep_alive(const struct cable *cable, uint32_t silence_ms)
{
	int one = 1, seconds = (int)((silence_ms + 999) / 1000);
	int idle = seconds > 1 ? seconds / 2 : 1, probes = seconds - idle;

	if (!silence_ms)
		return;
	probes = probes < 1 ? 1 : probes;
	setsockopt(cable->fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(cable->fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(cable->fd, IPPROTO_TCP, TCP_KEEPINTVL, &one, sizeof(one));
	setsockopt(cable->fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}
