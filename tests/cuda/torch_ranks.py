"""Ranks of PyTorch that share one GPU: torch_ranks.py RANKS [PART ..]. Preload libnccl.so.2.

One line per part. What fails or hangs is ended with all ranks, and the rest goes on in new
ones. `torch_ranks.py --list` names the parts. One rank skips messages; NVIDIA's own NCCL
can run that.
"""
import datetime
import multiprocessing
import os
import queue
import socket
import sys
import time
import traceback
import warnings

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard

LIMIT_S = 25  # of one part; the first one starts the ranks too


def full(value, count=1000, dtype=torch.float32):
    return torch.full((count,), value, device="cuda", dtype=dtype)


def all_equal(tensor, value):
    assert (tensor == value).all(), f"{tensor[:4].tolist()} is not {value}"


# ---- collectives ----


def collectives(rank, n):
    x = full(float(rank + 1))
    dist.all_reduce(x)
    all_equal(x, n * (n + 1) / 2)
    x = full(rank + 1, dtype=torch.bfloat16)
    dist.all_reduce(x, op=dist.ReduceOp.MAX)
    all_equal(x, n)
    x = full(rank, 77, torch.int64)
    dist.broadcast(x, n - 1)
    all_equal(x, n - 1)
    parts = [full(-1.0, 5) for _ in range(n)]
    dist.all_gather(parts, full(float(rank), 5))
    for i, part in enumerate(parts):
        all_equal(part, i)
    whole = torch.arange(4 * n, device="cuda", dtype=torch.float32)
    own = full(0.0, 4)
    dist.reduce_scatter_tensor(own, whole)
    all_equal(own, n * whole[4 * rank:4 * rank + 4])
    x = full(float(rank + 1))
    dist.reduce(x, n - 1)
    all_equal(x, n * (n + 1) / 2 if rank == n - 1 else x)


def operators(rank, n):
    x = full(float(rank))
    dist.all_reduce(x, op=dist.ReduceOp.AVG)
    all_equal(x, (n - 1) / 2)
    x = full(float(rank + 1))
    dist.all_reduce(x, op=dist._make_nccl_premul_sum(0.5))
    all_equal(x, n * (n + 1) / 4)
    x = full(float(rank + 1))  # the factor is on the device
    dist.all_reduce(x, op=dist._make_nccl_premul_sum(torch.tensor([2.0], device="cuda")))
    all_equal(x, n * (n + 1))
    own = full(0.0, 10)
    dist.reduce_scatter_tensor(own, full(float(rank), 10 * n), op=dist.ReduceOp.AVG)
    all_equal(own, (n - 1) / 2)


def all_to_all(rank, n):
    sent = torch.arange(3 * n, device="cuda") + 1000 * rank
    received = torch.empty_like(sent)
    dist.all_to_all_single(received, sent)
    for i in range(n):
        all_equal(received[3 * i:3 * i + 3] - 1000 * i,
                  torch.arange(3 * rank, 3 * rank + 3, device="cuda"))
    sizes_in = [(rank + i) % 3 for i in range(n)]  # some of them are 0
    sent = full(float(rank), sum(sizes_in))
    received = full(-1.0, sum(sizes_in))
    dist.all_to_all_single(received, sent, sizes_in, sizes_in)
    for i, part in enumerate(received.split(sizes_in)):
        all_equal(part, float(i))
    outs = [full(-1.0, 7) for _ in range(n)]
    dist.all_to_all(outs, [full(float(100 * rank + i), 7) for i in range(n)])
    for i, out in enumerate(outs):
        all_equal(out, float(100 * i + rank))


def gather_scatter(rank, n):
    root = n // 2
    parts = [full(-1.0, 9) for _ in range(n)] if rank == root else None
    dist.gather(full(float(rank), 9), parts, dst=root)
    for i, part in enumerate(parts or []):
        all_equal(part, i)
    parts = [full(float(i), 9) for i in range(n)] if rank == root else None
    own = full(-1.0, 9)
    dist.scatter(own, parts, src=root)
    all_equal(own, rank)


# ---- messages ----


def messages(rank, n):
    right, left = (rank + 1) % n, (rank - 1) % n
    for turn in range(3):
        got = full(-1.0)
        if rank % 2 == 0 and rank + 1 < n:
            dist.send(full(float(rank + turn)), rank + 1)
        elif rank % 2:
            dist.recv(got, rank - 1)
            all_equal(got, rank - 1 + turn)
        gots = [full(-1.0, 50), full(-1.0, 3)]
        works = dist.batch_isend_irecv(
            [dist.P2POp(dist.isend, full(float(rank), 50), right),
             dist.P2POp(dist.isend, full(float(-rank), 3), right),
             dist.P2POp(dist.irecv, gots[0], left),
             dist.P2POp(dist.irecv, gots[1], left)])
        for work in works:
            work.wait()
        all_equal(gots[0], left)
        all_equal(gots[1], -left)


# ---- ways to call ----


def coalesced(rank, n):
    xs = [full(float(rank + i), 100 * (i + 1)) for i in range(5)]
    with dist._coalescing_manager(device=torch.device("cuda", 0), async_ops=True) as work:
        for x in xs:
            dist.all_reduce(x)
    work.wait()
    for i, x in enumerate(xs):
        all_equal(x, n * (n - 1) / 2 + n * i)
    outs = [full(-1.0, 10 * n) for _ in range(3)]
    with dist._coalescing_manager(device=torch.device("cuda", 0)):
        for i, out in enumerate(outs):
            dist.all_gather_into_tensor(out, full(float(rank + i), 10))
    for i, out in enumerate(outs):
        for r in range(n):
            all_equal(out[10 * r:10 * r + 10], r + i)


def asynchronous(rank, n):
    xs = [full(float(rank + i), 100000) for i in range(20)]
    works = [dist.all_reduce(x, async_op=True) for x in xs]
    for i, (x, work) in enumerate(zip(xs, works)):
        work.wait()
        all_equal(x, n * (n - 1) / 2 + n * i)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        y = full(1.0)
        for _ in range(5):
            dist.all_reduce(y)
    torch.cuda.current_stream().wait_stream(stream)
    all_equal(y, float(n ** 5))
    for _ in range(3):
        dist.barrier()


def groups(rank, n):
    """Halves and pairs, used at once with the whole."""
    halves = [dist.new_group(range(n // 2)), dist.new_group(range(n // 2, n))] \
        if n > 1 else [dist.new_group([0])] * 2
    mine = halves[rank >= n // 2]
    size = dist.get_world_size(mine)
    for _ in range(5):
        x, y = full(1.0), full(1.0)
        work = dist.all_reduce(x, group=mine, async_op=True)
        dist.all_reduce(y)
        work.wait()
        all_equal(x, size)
        all_equal(y, n)
    dist.barrier(group=mine)
    dist.destroy_process_group(mine)
    x = full(1.0)
    dist.all_reduce(x)
    all_equal(x, n)


def graph(rank, n):
    x, out = full(0.0), full(0.0, 1000 * n)
    dist.all_reduce(x)
    dist.all_gather_into_tensor(out, x)
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured, capture_error_mode="thread_local"):
        y = x * 2
        dist.all_reduce(y)
        dist.all_gather_into_tensor(out, y + rank)
    for turn in range(20):
        x.fill_(rank + turn)
        captured.replay()
        total = n * (n - 1) + 2 * n * turn
        all_equal(y, total)
        for r in range(n):
            all_equal(out[1000 * r:1000 * (r + 1)], total + r)
        z = full(1.0)  # a plain call in between
        dist.all_reduce(z)
        all_equal(z, n)
    torch.cuda.synchronize()
    del captured


# ---- training ----


def model_make():
    torch.manual_seed(7)
    return torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.GELU(),
                               torch.nn.Linear(96, 96), torch.nn.GELU(),
                               torch.nn.Linear(96, 64)).cuda()


def train(model, data, average):
    """The losses of ten steps."""
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = (model(data) - data.roll(1, 1)).square().mean()
        loss.backward()
        optimizer.step()
        loss = loss.detach().clone()
        if average:
            dist.all_reduce(loss, op=dist.ReduceOp.AVG)
        losses.append(loss)
    return torch.stack(losses)


def training(rank, n, wrap):
    """The ranks, each with its part of the data, lose what one alone with all of it does."""
    torch.manual_seed(3)
    data = torch.randn(8 * n, 64, device="cuda")
    alone = train(model_make(), data, False)
    together = train(wrap(model_make()), data[8 * rank:8 * rank + 8], True)
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-5)
    assert alone[-1] < alone[0]


def ddp(rank, n):
    training(rank, n, lambda model: torch.nn.parallel.DistributedDataParallel(
        model, device_ids=[0]))


def fsdp(rank, n):
    training(rank, n, lambda model: FullyShardedDataParallel(
        model, device_id=0, use_orig_params=True))


def sharded(rank, n):
    def wrap(model):
        for layer in model:
            if isinstance(layer, torch.nn.Linear):
                fully_shard(layer)
        return fully_shard(model)
    training(rank, n, wrap)


PARTS = {"collectives": collectives, "operators": operators, "asynchronous": asynchronous,
         "coalesced": coalesced, "groups": groups, "ddp": ddp, "fsdp": fsdp,
         "sharded": sharded, "graph": graph, "gather scatter": gather_scatter,
         "all to all": all_to_all, "messages": messages}
ONLY_SEVERAL = {"messages"}


# ---- the ranks ----


def work(rank, n, port, names, said):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank),
                      WORLD_SIZE=str(n), LOCAL_RANK="0")
    warnings.filterwarnings("ignore")
    name = names[0]
    try:
        torch.cuda.set_device(0)
        # bound to a device, groups are made by ncclCommSplit; else each by itself
        bound = {"device_id": torch.device("cuda", 0)} if n % 4 == 0 else {}
        dist.init_process_group("nccl", rank=rank, world_size=n,
                                timeout=datetime.timedelta(seconds=LIMIT_S), **bound)
        for name in names:
            PARTS[name](rank, n)
            torch.cuda.synchronize()
            said.put((rank, name, None))
        name = "end"
        dist.barrier()
        torch.cuda.synchronize()
        dist.destroy_process_group()
        said.put((rank, name, None))
    except Exception:
        said.put((rank, name, traceback.format_exc()))
        time.sleep(LIMIT_S)  # the others need not meet a dead peer on top of it


def listen(n, processes, names, said):
    """Shows what passes, in order. The part that did not, and why; or None."""
    names = names + ["end"]
    passed = {name: set() for name in names}
    start = time.monotonic()
    while names:
        name = names[0]
        if len(passed[name]) == n:
            print(f"pass  torch {name}, {n} ranks ({time.monotonic() - start:.1f} s)",
                  flush=True)
            names, start = names[1:], time.monotonic()
            continue
        try:
            rank, which, error = said.get(timeout=0.2)
        except queue.Empty:
            dead = [i for i, p in enumerate(processes) if p.exitcode not in (None, 0)]
            if dead:
                return name, f"rank {dead[0]} ended with {processes[dead[0]].exitcode}"
            if time.monotonic() > start + LIMIT_S:
                return name, f"not done in {LIMIT_S} s by {set(range(n)) - passed[name]}"
            continue
        if error:
            return which, f"rank {rank}: {error}"
        passed[which].add(rank)
    return None


def run(n, names):
    """The ranks, once. The part that failed, if one did."""
    context = multiprocessing.get_context("fork")
    said = context.Queue()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = [context.Process(target=work, args=(i, n, port, names, said))
                 for i in range(n)]
    for process in processes:
        process.start()
    failure = listen(n, processes, names, said)
    for process in processes:
        if failure:
            process.kill()
        process.join()
    if not failure:
        return None
    lines = failure[1].strip().splitlines()
    print(f"FAIL  torch {failure[0]}, {n} ranks", *lines[:1], *lines[-4:], sep="\n      ",
          flush=True)
    return failure[0]


def main(arguments):
    if arguments[0] == "--list":
        print("\n".join(PARTS))
        return 0
    n = int(arguments[0])
    names = [name for name in arguments[1:] or PARTS if n > 1 or name not in ONLY_SEVERAL]
    failed = []
    while names:
        last = run(n, names)
        if last is None:
            break
        failed.append(last)
        names = names[names.index(last) + 1:] if last in names else []
    print(f"torch {torch.__version__}, {n} ranks: {len(failed)} parts failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
