"""Pods on this machine, as a container runtime makes them: podman plays the pods of a manifest where
it may; where it may not, namespaces stand in. Either has a network with an address of its own behind a
bridge, a /dev/shm of 64 MiB unless a volume is there, a host name, IPC and processes of its own, 64 KiB of
locked memory, and no way into the host's.

check-pods starts itself again in `outer` namespaces, so that nothing made here outlives it.
"""
import os
import re
import subprocess
import sys

NET = "10.99.7."
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable


def address(number):
    return f"{NET}{10 + number}"


def names(count):
    """What the Service of a Job gives: a name for every pod."""
    return [(address(number), f"weft-{number}.weft") for number in range(count)]


def pod_count(text):
    return int(re.search(r"completions: (\d+)", text).group(1))


def variables(number):
    """What the Job's controller adds, and what keeps a test short."""
    return {"JOB_COMPLETION_INDEX": str(number), "WEFT_SECRET": "of this test", "WEFT_TIMEOUT_SEC": "60",
            "WEFT_BOOT_TIMEOUT_SEC": "60"}


def run(*words, **more):
    return subprocess.run(words, check=True, text=True, **more)


class Namespaces:
    """Linux alone."""
    name = "namespaces"
    grants_locks = False  # root of a user namespace may not lock all memory
    outer = ["unshare", "--user", "--map-root-user", "--mount", "--net", "--kill-child"]
    pod = ["unshare", "--mount", "--uts", "--ipc", "--net", "--pid", "--fork", "--mount-proc", "--kill-child"]
    enter = """
set -e
until [ -z "$POD_ADDRESS" ] || ip link show eth0 > /dev/null 2>&1; do sleep 0.05; done
ip link set lo up
if [ -n "$POD_ADDRESS" ]; then
  hostname "$POD_NAME"; ip addr add "$POD_ADDRESS/24" dev eth0; ip link set eth0 up
  mount --bind "$POD_HOSTS" /etc/hosts
fi
mount -t tmpfs -o size=64m tmpfs /dev/shm
ulimit -l 64
exec "$@"
"""

    def __init__(self, build, folder):
        self.build, self.folder = build, folder

    @classmethod
    def refusal(cls, _folder):
        probe = subprocess.run([*cls.outer, *cls.pod, "sh", "-c", "mount -t tmpfs none /mnt && ip link show lo"],
                               capture_output=True, text=True, check=False)
        return probe.stderr.strip() if probe.returncode else None

    def begin(self):
        for words in ("link set lo up", "link add bridge type bridge", f"addr add {NET}1/24 dev bridge",
                      "link set bridge up"):
            run("ip", *words.split())

    def end(self):
        pass

    def start(self, number, text, log, extra):
        job = text.split("kind: Job")[1]
        block = re.search(r"command:\n((?: +- .*\n)+)", job).group(1)
        command = [w.strip('"') for w in re.findall(r"- (\S+)", re.sub(r" # .*", "", block))]
        command = [os.path.join(self.build, "bin", command[0])] + ["1M" if w == "1G" else w for w in command[1:]]
        told = dict(re.findall(r"- name: (\w+)(?: #.*)?\n +value: \"?([^\s\"]+)", job))
        environment = {"PATH": os.environ["PATH"], **told, **variables(number), **extra,
                       "POD_NAME": f"weft-{number}", "POD_ADDRESS": address(number),
                       "POD_HOSTS": os.path.join(self.folder, "hosts")}
        pod = subprocess.Popen([*self.pod, "sh", "-c", self.enter, "pod", *command, "-n", "2"], env=environment,
                               stdout=log, stderr=subprocess.STDOUT)
        # its namespaces are there when it has a network that is not ours
        while os.readlink(f"/proc/{pod.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            if pod.poll() is not None:
                sys.exit(f"pod {number} did not start")
        run("ip", "link", "add", f"pod{number}", "type", "veth", "peer", "name", "eth0", "netns", str(pod.pid))
        run("ip", "link", "set", f"pod{number}", "master", "bridge", "up")
        return pod

    def run_job(self, text, **extra):
        """Exit codes and the names of the logs."""
        count = pod_count(text)
        with open(os.path.join(self.folder, "hosts"), "w", encoding="utf-8") as hosts:
            hosts.write("127.0.0.1 localhost\n" + "".join(f"{at} {name}\n" for at, name in names(count)))
        logs = [os.path.join(self.folder, f"log.{number}.of.{count}") for number in range(count)]
        pods = []
        for number, path in enumerate(logs):
            with open(path, "w", encoding="utf-8") as log:
                pods.append(self.start(number, text, log, extra))
        return [pod.wait() for pod in pods], logs

    def run_script(self, script):
        """What a shell says in a pod without volumes."""
        environment = {"PATH": os.environ["PATH"], "POD_ADDRESS": ""}
        return subprocess.run([*self.pod, "sh", "-c", self.enter, "pod", "bash", "-c", script], env=environment,
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False).stdout


class Podman:
    """podman play kube, with its store, its network and its locks where they vanish."""
    name = "podman"
    grants_locks = True
    outer = ["unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "--kill-child"]

    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        self.store = os.path.join(folder, "store")
        self.environment = {**os.environ, "CONTAINERS_CONF": os.path.join(folder, "containers.conf")}

    @classmethod
    def refusal(cls, folder):
        """Why not: tried with a pod that says a word."""
        if os.geteuid():
            return "only root may here"
        try:
            probe = subprocess.run([*cls.outer, PYTHON, "-B", os.path.abspath(__file__), folder], capture_output=True,
                                   text=True, check=False, timeout=60)
        except subprocess.TimeoutExpired:
            return "it hangs"
        return None if "a word" in probe.stdout else (probe.stderr.strip().splitlines() or ["it says nothing"])[-1]

    def podman(self, *words, **more):
        return run("podman", "--root", f"{self.store}/root", "--runroot", f"{self.store}/run", "--tmpdir",
                   f"{self.store}/tmp", "--storage-driver", "vfs", *words, env=self.environment,
                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more).stdout

    def begin(self):
        # crun wants one kind of control groups, and here may be two
        if os.path.exists("/sys/fs/cgroup/unified"):
            run("umount", "--lazy", "/sys/fs/cgroup/unified")
        for path in (self.store, "/dev/shm", "/var/lib/cni"):
            os.makedirs(path, exist_ok=True)
            run("mount", "-t", "tmpfs", "none", path)
        run("ip", "link", "set", "lo", "up")
        os.makedirs(f"{self.store}/net.d")
        with open(f"{self.store}/net.d/pods.conflist", "w", encoding="utf-8") as file:
            file.write('{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "pods0", '
                       '"isGateway": true, "ipam": {"type": "host-local", "ranges": '
                       f'[[{{"subnet": "{NET}0/24", "gateway": "{NET}1"}}]]}}}}]}}')
        with open(self.environment["CONTAINERS_CONF"], "w", encoding="utf-8") as file:
            # limits that podman would raise are not everybody's to raise
            file.write('[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1000:1000", '
                       '"memlock=65536:65536"]\n[engine]\nruntime = "crun"\ncgroup_manager = "cgroupfs"\n'
                       'events_logger = "none"\n[network]\nnetwork_backend = "cni"\ndefault_network = "pods"\n'
                       f'network_config_dir = "{self.store}/net.d"\n')
        self.make_image()

    def make_image(self):
        """Nothing but folders: programs and libraries are the host's, by volumes."""
        root = f"{self.store}/image"
        for folder in ("usr", "etc", "tmp", "proc", "sys", "dev", "var"):
            os.makedirs(f"{root}/{folder}")
        for folder in ("bin", "sbin", "lib", "lib64"):
            os.symlink(f"usr/{folder}", f"{root}/{folder}")
        run("tar", "-C", root, "-cf", f"{self.store}/image.tar", ".")
        self.podman("import", "--change", f"ENV PATH={self.build}/bin:/usr/bin:/bin", f"{self.store}/image.tar",
                    "localhost/weft:latest")

    def end(self):
        self.podman("pod", "rm", "--force", "--time", "0", "--all")
        # what podman leaves of its control groups
        run("sh", "-c", "find /sys/fs/cgroup -depth -type d -name libpod_parent -exec rmdir {} + 2>/dev/null || true")

    def play(self, number, manifest):
        path = f"{self.store}/pod.{number}.yaml"
        with open(path, "w", encoding="utf-8") as file:
            file.write(manifest)
        try:
            self.podman("play", "kube", "--network", "pods", "--ip", address(number), path)
        except subprocess.CalledProcessError as failure:
            sys.exit(f"podman play kube: {failure.output}")

    def volumes(self):
        paths = {"usr": "/usr", "build": self.build}
        return ("".join(f"    - name: {name}\n      mountPath: {path}\n" for name, path in paths.items()),
                "".join(f"  - name: {name}\n    hostPath:\n      path: {path}\n" for name, path in paths.items()))

    def pod_of(self, text, number, extra):
        """A pod of a Job, as the Job's controller makes it of the template."""
        template = text.split("kind: Job")[1].split("\n  template:\n")[1]
        pod = "apiVersion: v1\nkind: Pod\n" + re.sub(r"^    ", "", template, flags=re.M)
        mounts, volumes = self.volumes()
        more = "".join(f"    - name: {name}\n      value: \"{value}\"\n"
                       for name, value in {**variables(number), **extra}.items())
        hosts = "".join(f"  - ip: {at}\n    hostnames: [{name}]\n" for at, name in names(pod_count(text)))
        for old, new in (("metadata:\n", f"metadata:\n  name: weft-{number}\n"),
                         ("\nspec:\n", f"\nspec:\n  hostAliases:\n{hosts}"),
                         ("    env:\n", f"    args: [\"-n\", \"2\"]\n    env:\n{more}"),
                         ("    volumeMounts:\n", f"    volumeMounts:\n{mounts}"),
                         ("\n  volumes:\n", f"\n  volumes:\n{volumes}"), ("- 1G\n", "- 1M\n")):
            if pod.count(old) != 1:
                sys.exit(f"a manifest with {pod.count(old)} times {old!r}:\n{pod}")
            pod = pod.replace(old, new)
        return re.sub(r"image: \S+", "image: localhost/weft:latest", pod)

    def run_job(self, text, **extra):
        count = pod_count(text)
        for number in range(count):
            self.play(number, self.pod_of(text, number, extra))
        logs, codes = [], []
        for number in range(count):
            codes.append(int(self.podman("wait", f"weft-{number}-ranks")))
            logs.append(os.path.join(self.folder, f"log.{number}.of.{count}"))
            with open(logs[-1], "w", encoding="utf-8") as log:
                log.write(self.podman("logs", f"weft-{number}-ranks"))
        self.podman("pod", "rm", "--force", "--time", "0", "--all")
        return codes, logs

    def run_script(self, script, may_lock=False):
        mounts, volumes = self.volumes()
        locks = "    securityContext:\n      capabilities:\n        add: [IPC_LOCK]\n" if may_lock else ""
        lines = "".join(f"        {line}\n" for line in script.splitlines())
        self.play(0, "apiVersion: v1\nkind: Pod\nmetadata:\n  name: script\nspec:\n  restartPolicy: Never\n"
                     "  containers:\n  - name: only\n    image: localhost/weft:latest\n    command:\n"
                     f"    - bash\n    - -c\n    - |\n{lines}{locks}    volumeMounts:\n{mounts}  volumes:\n{volumes}")
        self.podman("wait", "script-only")
        said = self.podman("logs", "script-only")
        self.podman("pod", "rm", "--force", "--time", "0", "--all")
        return said


def probe_podman(folder):
    podman = Podman(folder, folder)
    podman.begin()
    print(podman.run_script("echo a word"))
    podman.end()


if __name__ == "__main__":
    probe_podman(sys.argv[1])
