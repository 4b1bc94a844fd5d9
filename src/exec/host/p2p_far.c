#include "exec/host/p2p_far.h"

#include <unistd.h>

#include "exec/host/cut.h"
#include "exec/host/peers.h"
#include "exec/host/remote.h"
#include "exec/host/squad.h"
#include "exec/host/state.h"
#include "exec/host/tell.h"

enum { CONNECT_US = 100 };

static const struct net_ops *far_net(const struct p2p *p2p)
{
	return wires_net(remote_wires(p2p->engine->remote));
}

static struct wires *far_wires(const struct p2p *p2p)
{
	return p2p->share.wires ? p2p->share.wires : remote_wires(p2p->engine->remote);
}

bool far_is_heard(const struct p2p *p2p)
{
	struct net_end *end;

	return !wires_from(far_wires(p2p), p2p->peer, WIRE_P2P, &end) &&
	       remote_is_patient(p2p->engine, p2p->peer);
}

/* ---- pieces ---- */

static size_t piece_most(const struct p2p *p2p)
{
	uint64_t piece = p2p->far.head.piece_bytes;

	return piece && piece < p2p->bytes ? (size_t)piece : p2p->bytes;
}

size_t far_bytes_of(const struct p2p *p2p, uint64_t pieces)
{
	size_t most = piece_most(p2p);

	if (!most)
		return 0;
	return pieces <= p2p->bytes / most ? (size_t)pieces * most : p2p->bytes;
}

/* Which piece of the message the i-th thing is that is asked for, the head being number
 * 0.
 */
static uint64_t piece_number(const struct p2p *p2p, uint64_t i)
{
	return p2p->share.cut ? p2p->share.number + (i - 1) * p2p->shares : i - 1;
}

/* All that there is to ask for? */
static bool is_all_asked(const struct p2p *p2p)
{
	const struct p2p_far *far = &p2p->far;

	return far->asked &&
	       far_bytes_of(p2p, piece_number(p2p, far->asked)) == p2p->bytes;
}

/* Is what the next piece is of here, or may be written? */
static bool is_next_come(const struct p2p *p2p)
{
	return !p2p->is_send || !p2p->tide ||
	       far_bytes_of(p2p, piece_number(p2p, p2p->far.asked) + 1) <=
		       tide_come(p2p->tide);
}

bool far_awaits_tide(const struct p2p *p2p)
{
	const struct p2p_far *far = &p2p->far;

	return far->asked && far->asked == far->over && !is_all_asked(p2p) &&
	       !is_next_come(p2p);
}

/* ---- asking ---- */

static struct net_request *request_at(struct p2p *p2p, uint64_t i)
{
	return &p2p->far.requests[i % P2P_UNDER_WAY];
}

static enum err head_ask(struct p2p *p2p, const struct net_ops *net)
{
	struct wires *wires = far_wires(p2p);
	struct net_request *request = request_at(p2p, 0);
	struct p2p_head *head = &p2p->far.head;
	struct net_end *end;
	enum err e = p2p->is_send ? wires_to(wires, p2p->peer, WIRE_P2P, &end)
				  : wires_from(wires, p2p->peer, WIRE_P2P, &end);

	if (e)
		return e;
	*head = (struct p2p_head){p2p->bytes, cut_piece(p2p)};
	e = p2p->is_send ? net->send(end, head, sizeof(*head), request)
			 : net->recv(end, head, sizeof(*head), request);
	p2p->far.asked = !e;
	if (!p2p->share.number)
		p2p->engine->letters.posted[p2p->peer] += !e && p2p->is_send;
	return e;
}

/* The next piece goes under the message's name, and lies where the message lies. */
static void piece_tell(struct p2p *p2p, struct net_end *end)
{
	const struct host_engine *engine = p2p->engine;
	struct host_message message = {.peer = p2p->peer,
		.is_send = p2p->is_send,
		.count = 1,
		.bytes = p2p->bytes};

	if (p2p->gpu && !p2p->trial)
		wires_in_gpu(end, p2p->gpu);
	if (!engine->teller || !p2p->told)
		return;
	if (p2p->far.asked == 1)
		p2p->far.message = engine->teller->began(p2p->told, &message);
	remote_tell(engine->remote, end, p2p->far.message);
}

static enum err piece_ask(struct p2p *p2p, const struct net_ops *net)
{
	struct p2p_far *far = &p2p->far;
	struct net_end *end = request_at(p2p, far->asked - 1)->end;
	uint64_t number = piece_number(p2p, far->asked);
	size_t from = far_bytes_of(p2p, number);
	size_t bytes = far_bytes_of(p2p, number + 1) - from;
	struct net_request *request = request_at(p2p, far->asked);
	enum err e;

	piece_tell(p2p, end);
	e = p2p->is_send ? net->send(end, p2p->data + from, bytes, request)
			 : net->recv(end, p2p->data + from, bytes, request);
	far->asked += !e;
	return e;
}

/* As much as may be under way. A receiver has to know the length first. */
static enum err pieces_ask(struct p2p *p2p, const struct net_ops *net)
{
	const struct p2p_far *far = &p2p->far;
	enum err e = OK;

	while (!e && (p2p->is_send || far->over) && !is_all_asked(p2p) &&
		far->asked - far->over < P2P_UNDER_WAY && is_next_come(p2p))
		e = piece_ask(p2p, net);
	return e;
}

/* ---- what is over ---- */

static enum err head_check(const struct p2p *p2p)
{
	if (p2p->is_send || p2p->far.head.bytes == p2p->bytes)
		return OK;
	return err_set(ERR_USAGE,
		"rank %u receives %zu bytes from rank %u, which sends %lu: a send and "
		"its receive must have the same size",
		p2p->engine->rank, p2p->bytes, p2p->peer,
		(unsigned long)p2p->far.head.bytes);
}

/* The oldest of what is under way is over. */
static enum err piece_end(struct p2p *p2p)
{
	if (++p2p->far.over == 1)
		return head_check(p2p);
	p2p->done = far_bytes_of(p2p,
		p2p->share.cut ? cut_tell(p2p, p2p->far.over - 1) : p2p->far.over - 1);
	if (p2p->tide && !p2p->is_send)
		tide_tell(p2p->tide, p2p->done);
	return OK;
}

/* The connection is there now: it can be asked. */
static void far_try(struct p2p *p2p)
{
	struct p2p_trial *trial = p2p->trial;

	if (!trial || trial->is_over || !p2p->bytes)
		return;
	trial->is_taken = wires_try_gpu(
		request_at(p2p, 0)->end, p2p->gpu, trial->data, p2p->bytes);
	trial->is_over = true;
}

static enum err far_move(struct p2p *p2p, const struct net_ops *net)
{
	const struct p2p_far *far = &p2p->far;
	enum err e = far->asked ? OK : head_ask(p2p, net);

	while (!e) {
		e = pieces_ask(p2p, net);
		if (!e && far->over == far->asked)
			return is_all_asked(p2p) ? OK : ERR_AGAIN;
		if (!e)
			e = net->test(request_at(p2p, far->over), 0);
		if (!e)
			e = piece_end(p2p);
	}
	return e;
}

static void far_end(struct p2p *p2p)
{
	p2p->done = p2p->bytes;
	if (p2p->share.number)
		return;
	p2p->engine->letters.taken[p2p->peer] += !p2p->is_send;
	far_try(p2p);
	tell_over(p2p->engine->teller, p2p->far.message);
}

enum err far_step(struct p2p *p2p)
{
	enum err e = p2p->share.cut && squad_has_stopped(p2p->engine)
			     ? squad_failure(p2p->engine)
			     : OK;

	if (e)
		return e;
	if (p2p->share.cut)
		cut_look(p2p);
	if (!p2p->share.is_over)
		e = far_move(p2p, far_net(p2p));
	if (!e && p2p->share.cut)
		e = cut_join(p2p);
	if (!e)
		far_end(p2p);
	return e == ERR_REMOTE ? host_blame_wire(p2p->engine, p2p->peer, e) : e;
}

void far_sleep(const struct p2p *p2p, uint32_t timeout_us)
{
	const struct p2p_far *far = &p2p->far;

	if (p2p->share.is_over)
		cut_sleep(p2p, timeout_us);
	else if (far->asked != far->over)
		far_net(p2p)->test(&far->requests[far->over % P2P_UNDER_WAY], timeout_us);
	else
		usleep(timeout_us < CONNECT_US ? timeout_us : CONNECT_US);
}
