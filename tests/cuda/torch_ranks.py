"""Ranks of PyTorch that share one GPU: torch_ranks.py RANKS. Preload libnccl.so.2."""
import os
import socket
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def collectives(rank, n):
    x = torch.full((1000,), float(rank + 1), device="cuda")
    dist.all_reduce(x)
    assert (x == n * (n + 1) / 2).all()
    x = torch.full((1000,), rank + 1, device="cuda", dtype=torch.bfloat16)
    dist.all_reduce(x, op=dist.ReduceOp.MAX)
    assert (x == n).all()
    x = torch.full((77,), rank, device="cuda")
    dist.broadcast(x, 1)
    assert (x == 1).all()
    parts = [torch.empty(5, device="cuda") for _ in range(n)]
    dist.all_gather(parts, torch.full((5,), float(rank), device="cuda"))
    assert all((part == i).all() for i, part in enumerate(parts))
    whole = torch.arange(4 * n, device="cuda", dtype=torch.float32)
    own = torch.empty(4, device="cuda")
    dist.reduce_scatter_tensor(own, whole)
    assert (own == n * whole[4 * rank:4 * rank + 4]).all()
    dist.barrier()


def training(rank, n):
    """All ranks see other data and keep the same weights."""
    torch.manual_seed(rank)
    model = torch.nn.parallel.DistributedDataParallel(
        torch.nn.Linear(64, 64).cuda(), device_ids=[0])
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(10):
        optimizer.zero_grad()
        model(torch.randn(8, 64, device="cuda")).square().mean().backward()
        optimizer.step()
    weight = model.module.weight.detach().clone()
    weights = [torch.empty_like(weight) for _ in range(n)]
    dist.all_gather(weights, weight)
    assert all(torch.equal(weights[0], other) for other in weights)


def work(rank, n, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank),
                      WORLD_SIZE=str(n))
    torch.cuda.set_device(0)
    dist.init_process_group("nccl", rank=rank, world_size=n)
    collectives(rank, n)
    training(rank, n)
    torch.cuda.synchronize()
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        print(f"{n} ranks, torch {torch.__version__}, nccl {torch.cuda.nccl.version()}")


if __name__ == "__main__":
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        chosen = free.getsockname()[1]
    ranks = int(sys.argv[1])
    mp.spawn(work, (ranks, chosen), nprocs=ranks)
