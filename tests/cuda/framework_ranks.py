"""Frameworks whose ranks share one GPU: framework_ranks.py RANKS [PART ..].

Preload libnccl.so.2. Every part is a job of its own, of fresh processes, because what is
tried is how they begin: eagerly, lazily, by a runtime's device or by a context of their
own. A framework that is not installed is skipped and says so. `--list` names the parts.
"""
import ctypes
import datetime
import importlib.util
import os
import socket
import subprocess
import sys
import tempfile
import time

LIMIT_S = 100


def need(condition, text):
    if not condition:
        raise AssertionError(text)


# ---- PyTorch ----


def torch_reduce(dist, torch, n, group=None, count=None):
    x = torch.full((1000,), float(dist.get_rank() + 1), device="cuda")
    dist.all_reduce(x, group=group)
    ranks = dist.get_process_group_ranks(group) if group else range(n)
    want = float(sum(r + 1 for r in ranks))
    need((x == want).all().item(), f"{x[:3].tolist()} is not {want}")


def torch_ring(dist, torch, rank, n):
    to, out = (rank + 1) % n, torch.full((50,), float(rank), device="cuda")
    got = torch.full((50,), -1.0, device="cuda")
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, out, to),
                                        dist.P2POp(dist.irecv, got, (rank - 1) % n)]):
        work.wait()
    need((got == (rank - 1) % n).all().item(), f"received {got[:3].tolist()}")


def torch_begin(rank, n, **options):
    import torch
    import torch.distributed as dist
    dist.init_process_group("nccl", rank=rank, world_size=n,
                            timeout=datetime.timedelta(seconds=60), **options)
    return dist, torch


def eager(rank, n):
    """Connected at once, before anything of CUDA was used; messages come first."""
    import torch
    dist, torch = torch_begin(rank, n, device_id=torch.device("cuda", 0))
    torch_ring(dist, torch, rank, n)
    torch_reduce(dist, torch, n)
    half = [r for r in range(n) if r % 2 == rank % 2]
    groups = [dist.new_group([r for r in range(n) if r % 2 == k]) for k in range(2)]
    torch_reduce(dist, torch, n, groups[rank % 2])
    split = dist.split_group(split_ranks=[[r for r in range(n) if r % 2 == k]
                                          for k in range(min(2, n))])
    need(dist.get_process_group_ranks(split) == half, "the split has other ranks")
    torch_reduce(dist, torch, n, split)
    torch.cuda.synchronize()
    dist.destroy_process_group()


def lazy(rank, n):
    """Connected by the first collective, after set_device."""
    dist, torch = torch_begin(rank, n)
    torch.cuda.set_device(0)
    torch_reduce(dist, torch, n)
    torch_ring(dist, torch, rank, n)
    torch.cuda.synchronize()
    dist.destroy_process_group()


# ---- DeepSpeed ----


def zero(stage, offload):
    def part(rank, n):
        import deepspeed
        import torch
        torch.manual_seed(7)
        data = torch.randn(8 * n, 64)
        alone = zero_alone(torch, data)
        deepspeed.init_distributed("nccl", verbose=False)
        together = zero_train(deepspeed, torch, data[8 * rank:8 * rank + 8], stage, offload)
        torch.testing.assert_close(together, alone, rtol=2e-3, atol=2e-4)
        need(alone[-1] < alone[0], "nothing was learned")
        torch.distributed.destroy_process_group()
    part.__doc__ = f"The losses of ZeRO {stage} are those of one process with all of the data."
    return part


def zero_model(torch):
    torch.manual_seed(5)
    return torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 64))


def zero_loss(model, x):
    return (model(x) - x.roll(1, 1)).square().mean()


def zero_alone(torch, data):
    model, losses = zero_model(torch).cuda(), []
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for _ in range(6):
        optimizer.zero_grad()
        loss = zero_loss(model, data.cuda())
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


def zero_train(deepspeed, torch, data, stage, offload):
    model = zero_model(torch)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    stage = {"stage": stage}
    if offload:
        stage |= {"offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}}
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config={
        "train_micro_batch_size_per_gpu": len(data), "zero_optimization": stage,
        "zero_force_ds_cpu_optimizer": False, "zero_allow_untested_optimizer": True})
    losses = []
    for _ in range(6):
        loss = zero_loss(engine, data.cuda())
        engine.backward(loss)
        engine.step()
        loss = loss.detach().clone().float()
        torch.distributed.all_reduce(loss, op=torch.distributed.ReduceOp.AVG)
        losses.append(loss)
    return torch.stack(losses)


# ---- others ----


def lightning(rank, n):
    import pytorch_lightning as pl
    import torch

    class Model(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(16, 16)

        def training_step(self, batch, _):
            return (self.layer(batch[0]) - batch[0]).square().mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    torch.manual_seed(rank)
    model = Model()
    data = torch.utils.data.TensorDataset(torch.randn(64, 16))
    trainer = pl.Trainer(accelerator="gpu", devices=1, num_nodes=n, strategy="ddp",
                         max_steps=5, logger=False, enable_checkpointing=False,
                         enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(model, torch.utils.data.DataLoader(data, batch_size=8))
    mine = model.layer.weight.detach().cuda()
    least, most = mine.clone(), mine.clone()
    torch.distributed.all_reduce(least, op=torch.distributed.ReduceOp.MIN)
    torch.distributed.all_reduce(most, op=torch.distributed.ReduceOp.MAX)
    need(torch.equal(least, most), "the ranks' models differ after training")
    torch.distributed.destroy_process_group()


def jax_ranks(rank, n):
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    import jax
    import jax.numpy as jnp
    from jax.sharding import NamedSharding, PartitionSpec
    jax.distributed.initialize(f"127.0.0.1:{os.environ['MASTER_PORT']}", n, rank,
                               local_device_ids=[0])
    mesh = jax.make_mesh((n,), ("i",))
    rows = NamedSharding(mesh, PartitionSpec("i"))
    mine = jnp.full((1, 1000), float(rank + 1))
    whole = jax.make_array_from_process_local_data(rows, mine)
    need(whole.shape == (n, 1000), f"the array has shape {whole.shape}")
    total = jax.jit(lambda x: x.sum(0), out_shardings=NamedSharding(mesh, PartitionSpec()))(whole)
    got = float(total.addressable_data(0)[0])
    need(got == n * (n + 1) / 2, f"the sum is {got}")
    jax.distributed.shutdown()


def shared_id(rank, make):
    """Rank 0's unique id, handed on in a file."""
    path = os.path.join(os.environ["FRAMEWORK_FOLDER"], "id")
    if rank == 0:
        with open(path + ".new", "wb") as file:
            file.write(make())
        os.rename(path + ".new", path)
    while not os.path.exists(path):
        time.sleep(0.01)
    with open(path, "rb") as file:
        return file.read()


def cupy_ranks(rank, n):
    import pickle
    import cupy
    from cupy.cuda import nccl
    ident = pickle.loads(shared_id(rank, lambda: pickle.dumps(nccl.get_unique_id())))
    comm = nccl.NcclCommunicator(n, ident, rank)
    x = cupy.full(1000, rank + 1, dtype=cupy.float32)
    y = cupy.empty_like(x)
    comm.allReduce(x.data.ptr, y.data.ptr, x.size, nccl.NCCL_FLOAT32, nccl.NCCL_SUM,
                   cupy.cuda.Stream.null.ptr)
    cupy.cuda.Stream.null.synchronize()
    need(bool((y == n * (n + 1) / 2).all()), f"the sum is {y[:3]}")
    comm.destroy()


def own_context(rank, n):
    """A context made by the driver, which is not the device's primary one."""
    cuda, nccl = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libnccl.so.2")
    context, pointer, comm = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_void_p()

    class Id(ctypes.Structure):
        _fields_ = [("bytes", ctypes.c_char * 128)]

    def check(code, what):
        need(code == 0, f"{what} gives {code}")

    def make():
        ident = Id()
        check(nccl.ncclGetUniqueId(ctypes.byref(ident)), "ncclGetUniqueId")
        return bytes(ident)

    check(cuda.cuInit(0), "cuInit")
    check(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0), "cuCtxCreate")
    check(cuda.cuMemAlloc_v2(ctypes.byref(pointer), 4000), "cuMemAlloc")
    ident = Id.from_buffer_copy(shared_id(rank, make))
    check(nccl.ncclCommInitRank(ctypes.byref(comm), n, ident, rank), "ncclCommInitRank")
    values = (ctypes.c_float * 1000)(*([float(rank + 1)] * 1000))
    check(cuda.cuMemcpyHtoD_v2(pointer, values, 4000), "cuMemcpyHtoD")
    address = ctypes.c_void_p(pointer.value)
    check(nccl.ncclAllReduce(address, address, ctypes.c_size_t(1000), 7, 0, comm, None),
          "ncclAllReduce")
    check(cuda.cuCtxSynchronize(), "cuCtxSynchronize")
    check(cuda.cuMemcpyDtoH_v2(values, pointer, 4000), "cuMemcpyDtoH")
    need(set(values) == {n * (n + 1) / 2}, f"the sum is {values[0]}")
    check(nccl.ncclCommDestroy(comm), "ncclCommDestroy")


def other_shape(rank, n):
    """A model that is wider on rank 0: the others are told so and make no further call, and
    rank 0's broadcast, which waits for them on the device, is given up."""
    os.environ["TORCH_NCCL_BLOCKING_WAIT"] = "1"
    import torch
    dist, torch = torch_begin(rank, n)
    gloo = dist.new_group(backend="gloo", timeout=datetime.timedelta(seconds=60))
    group = dist.new_group(timeout=datetime.timedelta(seconds=10))
    torch.cuda.set_device(0)
    model = torch.nn.Linear(50 if rank else 500, 10).cuda()
    start = time.monotonic()
    try:
        torch.nn.parallel.DistributedDataParallel(model, device_ids=[0], process_group=group)
        dist.barrier(group)
        raise SystemExit("nobody said that the models differ")
    except RuntimeError as error:
        text = str(error).splitlines()[0]
        print(f"rank {rank}, after {time.monotonic() - start:.1f} s: {text}", flush=True)
        need(rank == 0 or "appears not to match" in str(error), "of something else")
    x = torch.ones(1000, device="cuda").sum().item()  # the device goes on
    need(x == 1000, f"the sum is {x}")
    dist.barrier(gloo)
    torch.cuda.synchronize()
    need(time.monotonic() - start < 30, f"it took {time.monotonic() - start:.0f} s")
    dist.destroy_process_group()


PARTS = {  # name: function, what must be installed, the most ranks
    "eager": (eager, "torch", 8), "lazy": (lazy, "torch", 8),
    "other shape": (other_shape, "torch", 8),
    "zero 1": (zero(1, False), "deepspeed", 4), "zero 2": (zero(2, False), "deepspeed", 4),
    "zero 3": (zero(3, False), "deepspeed", 4),
    "zero 3 offload": (zero(3, True), "deepspeed", 4),
    "lightning": (lightning, "pytorch_lightning", 8), "jax": (jax_ranks, "jax", 8),
    "cupy": (cupy_ranks, "cupy", 8), "own context": (own_context, "ctypes", 8)}


# ---- the jobs ----


def port_find():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def job(name, n):
    """The first rank that did not end well and the end of what it said, or None."""
    port, ranks, logs = port_find(), [], []
    with tempfile.TemporaryDirectory() as folder:
        for rank in range(n):
            logs.append(open(os.path.join(folder, f"log{rank}"), "w+", errors="replace"))
            environment = dict(
                os.environ, FRAMEWORK_FOLDER=folder, MASTER_ADDR="127.0.0.1",
                MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(n), LOCAL_RANK="0",
                GROUP_RANK=str(rank), LOCAL_WORLD_SIZE="1", TORCHELASTIC_RUN_ID="weft")
            ranks.append(subprocess.Popen(
                [sys.executable, "-W", "ignore", __file__, "--rank", str(rank), str(n), name],
                stdout=logs[-1], stderr=subprocess.STDOUT, env=environment))
        bad = wait(ranks)
        if bad is None:
            return None
        logs[bad[0]].seek(0)
        return f"rank {bad[0]} {bad[1]}", logs[bad[0]].read().strip().splitlines()[-12:]


def wait(ranks):
    """Ends all when one fails, a little later so that the others can fail by themselves."""
    end = time.monotonic() + LIMIT_S
    bad = None
    while any(p.poll() is None for p in ranks) and time.monotonic() < end:
        for i, p in enumerate(ranks):
            if p.poll() and bad is None:
                bad = i, f"ended with {p.returncode}"
                end = min(end, time.monotonic() + 5)
        time.sleep(0.02)
    for i, p in enumerate(ranks):
        if p.poll() is None:
            bad = bad or (i, f"was not done in {LIMIT_S} s")
            p.kill()
        p.wait()
        if p.returncode and bad is None:
            bad = i, f"ended with {p.returncode}"
    return bad


def main(arguments):
    if arguments[0] == "--list":
        print("\n".join(PARTS))
        return 0
    if arguments[0] == "--rank":
        PARTS[arguments[3]][0](int(arguments[1]), int(arguments[2]))
        return 0
    n, failed = int(arguments[0]), 0
    for name in arguments[1:] or PARTS:
        _, package, most = PARTS[name]
        if n > most:
            continue
        if not importlib.util.find_spec(package):
            print(f"skip  {name}, {n} ranks: {package} is not installed", flush=True)
            continue
        start = time.monotonic()
        bad = job(name, n)
        took = f"({time.monotonic() - start:.1f} s)"
        if bad is None:
            print(f"pass  {name}, {n} ranks {took}", flush=True)
            continue
        failed += 1
        print(f"FAIL  {name}, {n} ranks {took}: {bad[0]}", *bad[1], sep="\n      ", flush=True)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
