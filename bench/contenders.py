"""What bench/run and bench/network share: contenders are compiled, run by turns and timed."""
import fcntl
import os
import shutil
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SIZES = [8, 4 << 10, 32 << 10, 256 << 10, 2 << 20, 16 << 20, 64 << 20]
FLAGS = ["-O2", "-std=gnu17", "-D_GNU_SOURCE", "-Wall", "-Wextra"]
LIMIT_S = 60  # of one contender, one collective, one round

PEERS = {
    "openmpi": {"packages": ["libopenmpi-dev", "openmpi-bin"], "tool": "mpicc.openmpi"},
    "mpich": {"packages": ["libmpich-dev", "mpich"], "tool": "mpicc.mpich"},
    "gloo": {"packages": ["libgloo-dev", "g++"], "header": "/usr/include/gloo/allreduce.h"},
}


def size_text(size):
    for unit, letter in ((1 << 20, "M"), (1 << 10, "K")):
        if size >= unit:
            return f"{size // unit}{letter}"
    return str(size)


def say(text):
    print(f"# {text}", flush=True)


def take_hosts():
    """The hosts of namespaces are the machine's, and taking them down ends all that runs on them: the
    tests and who measures wait for each other. They are ours until what is returned is closed."""
    lock = open("/tmp/hosts.lock", "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say("somebody has the hosts: waiting")
        fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


class Contenders:
    """Programs that time collectives; a subclass says which take part, and how each is started."""

    def __init__(self, build):
        self.build = build
        self.out = os.path.join(build, "bench")
        self.cores = len(os.sched_getaffinity(0))
        self.programs = {}
        os.makedirs(self.out, exist_ok=True)

    def present(self, peer):
        if "tool" in peer:  # which comes without the headers, too
            return shutil.which(peer["tool"]) is not None and not subprocess.run(
                [peer["tool"], "-E", "-include", "mpi.h", "-x", "c", "/dev/null"],
                capture_output=True).returncode
        return os.path.exists(peer["header"]) and shutil.which("g++") is not None

    def install(self, name):
        """Get a peer's packages; True when it can be compiled."""
        peer = PEERS[name]
        if self.present(peer):
            return True
        if not shutil.which("apt-get"):
            return False
        command = ["apt-get", "install", "-y", "--no-install-recommends", *peer["packages"]]
        if os.geteuid():
            command = ["sudo", "-n", *command]
        say("installing " + " ".join(peer["packages"]))
        environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
        with open(os.path.join(self.out, "install.log"), "a") as log:
            for attempt in (command, command[:command.index("install")] + ["update"], command):
                if shutil.which(attempt[0]) is None:
                    return False
                done = subprocess.run(attempt, stdout=log, stderr=log, env=environment)
                if self.present(peer):
                    return True
                if done.returncode and attempt[-1] == "update":
                    return False
        return False

    def compile(self, name, command):
        program = os.path.join(self.out, name)
        done = subprocess.run(command + ["-o", program], capture_output=True, text=True)
        if done.returncode:
            say(f"{name} does not compile, left out: {done.stderr.strip().splitlines()[:1]}")
            return
        self.programs[name] = program

    def prepare(self, peers):
        here = os.path.join(ROOT, "bench")
        library = os.path.join(self.build, "lib")
        if os.path.exists(os.path.join(library, "libnccl.so.2")):
            self.compile("ours", ["cc", *FLAGS, f"-I{ROOT}/include", f"{here}/ours.c",
                                  "-pthread", f"-L{library}", "-l:libnccl.so.2",
                                  f"-Wl,-rpath,{library}"])
        else:
            say(f"no libnccl.so.2 in {library}: ours is left out; run make first")
        for name in peers:
            if not self.install(name):
                say(f"{name} is not there and cannot be installed: left out")
            elif name == "gloo":
                self.compile(name, ["g++", "-O2", "-std=c++17", "-D_GNU_SOURCE",
                                    f"{here}/gloo_coll.cc", "-lgloo", "-pthread"])
            else:
                self.compile(name, [PEERS[name]["tool"], *FLAGS, f"{here}/mpi_coll.c"])

    def once(self, name, collective, ranks, sizes):
        """One contender's lines by size: microseconds, and of some processor time; empty when
        it fails."""
        command = self.command(name, ranks)
        command += [collective, ",".join(map(str, sizes))]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, start_new_session=True)
        try:
            out, err = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)  # our own child's session
            out, err = process.communicate()
            err = f"longer than {LIMIT_S} s"
        if process.returncode:
            last = (err.strip().splitlines() or ["no message"])[-1]
            say(f"{name} {collective} n={ranks}: {last}")
        times = {}
        for line in out.splitlines():
            fields = line.split()
            if len(fields) in (4, 5) and fields[0] == collective:
                times[int(fields[2])] = [float(field) for field in fields[3:]]
        return times

    def measure(self, collective, ranks, sizes, rounds):
        """[contender][size]: the figures of its best round."""
        best = {name: {} for name in self.contenders(ranks)}
        broken = set()
        for _ in range(rounds):
            for name in best:
                if name in broken:
                    continue
                times = self.once(name, collective, ranks, sizes)
                if len(times) < len(sizes):
                    broken.add(name)  # one line said why; do not wait for it again
                for size, figures in times.items():
                    best[name][size] = min(figures, best[name].get(size, figures))
        return best


def lowest(times, names, size):
    """(name, microseconds) of the fastest of these, or None."""
    known = [(times[name][size][0], name) for name in names if size in times.get(name, {})]
    return (min(known)[1], min(known)[0]) if known else None


def cell(value, width, decimals=1):
    return f"{value:{width}.{decimals}f}" if value is not None else f"{'-':>{width}}"
