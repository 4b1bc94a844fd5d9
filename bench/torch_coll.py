"""A peer: torch.distributed's Gloo on CPU tensors, between hosts of namespaces.

torch_coll.py hosts=K N COLLECTIVE BYTES,.. (the method is bench/method.h's)
"""
import os
import sys
import tempfile
import time


def enter(host):
    """Into the namespaces of a host, which a process of its own keeps."""
    pid = os.readlink(f"/run/weft-hosts/{host}/pid")
    spaces = [os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY) for name in ("net", "uts", "ipc")]
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    for space in spaces:
        if libc.setns(space, 0):
            raise OSError(ctypes.get_errno(), "setns")


def iterations(size):
    for limit, count in ((32768, 400), (262144, 100), (2097152, 30), (16777216, 8)):
        if size <= limit:
            return count
    return 4


def call_of(dist, torch, collective, size, ranks):
    floats = max(1, size // 4)
    block = max(1, floats // ranks)
    whole, part = torch.zeros(floats), torch.zeros(block)
    blocks, others = torch.zeros(block * ranks), torch.zeros(block * ranks)
    return {"all_reduce": lambda: dist.all_reduce(whole),
            "broadcast": lambda: dist.broadcast(whole, 0),
            "all_gather": lambda: dist.all_gather_into_tensor(blocks, part),
            "alltoall": lambda: dist.all_to_all_single(blocks, others),
            "reduce_scatter": lambda: dist.reduce_scatter_tensor(part, blocks)}[collective]


def loop(dist, torch, call, count):
    """Seconds per call of the slowest rank."""
    dist.barrier()
    start = time.monotonic()
    for _ in range(count):
        call()
    took = torch.tensor([(time.monotonic() - start) / count], dtype=torch.float64)
    dist.all_reduce(took, op=dist.ReduceOp.MAX)
    return float(took)


def rank_main(rank, hosts, ranks, collective, sizes, store):
    enter(rank * hosts // ranks)
    os.environ["GLOO_SOCKET_IFNAME"] = "eth1"
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
    for size in sizes:
        call = call_of(dist, torch, collective, size, ranks)
        count = iterations(size)
        warm = loop(dist, torch, call, count // 20 + 2)
        count = min(count, max(3, int(0.1 / warm)))
        best = min(loop(dist, torch, call, count) for _ in range(3))
        if rank == 0:
            print(collective, ranks, size, f"{best * 1e6:.3f}", flush=True)


def main():
    hosts, ranks = int(sys.argv[1].partition("=")[2]), int(sys.argv[2])
    sizes = [int(size) for size in sys.argv[4].split(",")]
    with tempfile.TemporaryDirectory() as folder:
        children = []
        for rank in range(ranks):
            child = os.fork()
            if not child:
                rank_main(rank, hosts, ranks, sys.argv[3], sizes, os.path.join(folder, "store"))
                os._exit(0)
            children.append(child)
        return 1 if any(os.waitpid(child, 0)[1] for child in children) else 0


if __name__ == "__main__":
    sys.exit(main())
