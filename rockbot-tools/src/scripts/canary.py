import json, os, resource, signal, socket, sys

told = json.loads(sys.stdin.read())


def fails(action):
    try:
        action()
    except (OSError, MemoryError, RuntimeError, ValueError):
        return True
    return False


def connects(family, address, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as tried:
        tried.settimeout(2)
        tried.connect(address)


def environments():
    yield set(os.environ)
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{process}/environ", "rb") as file:
                yield {entry.split(b"=")[0].decode(errors="replace") for entry in file.read().split(b"\0")}
        except OSError:
            pass


def keys():
    import ctypes
    keyctl = {"x86_64": 250, "aarch64": 219, "riscv64": 219, "ppc64le": 271, "s390x": 280}[os.uname().machine]
    session, buffer = -3, ctypes.create_string_buffer(64)
    return max(0, ctypes.CDLL(None).syscall(keyctl, 11, session, buffer, 64))


def unshares():
    import ctypes
    if ctypes.CDLL(None).unshare(0x10000000):
        raise OSError


def processes_end():
    children = []
    try:
        for _ in range(100):
            child = os.fork()
            if child == 0:
                signal.pause()
            children.append(child)
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def memory_ends():
    import mmap
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    mmap.mmap(-1, most if most > 0 else 1 << 20).close()


def file_ends():
    with open("canary", "wb") as file:
        os.unlink("canary")
        file.truncate(1 << 40)


def leaves():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(20)", told["marker"]])
        os._exit(0)


is_wanted = told["declared"]
if "cleanup" in is_wanted:
    leaves()
found = {
    "no_network": {
        "reaches a server of the host": lambda: fails(lambda: connects(socket.AF_INET, ("127.0.0.1", told["port"]))),
        "reaches a socket of the host": lambda: fails(lambda: connects(socket.AF_UNIX, "\0" + told["socket"])),
        "has a route": lambda: fails(lambda: connects(socket.AF_INET, ("192.0.2.1", 9), socket.SOCK_DGRAM)),
    },
    "no_files": {
        "reads a file of the host": lambda: all(
            fails(lambda: open(root + told["file"]).close()) for root in ("", "/proc/1/root", "/proc/self/cwd/..")
        ),
        "writes to the system": lambda: fails(lambda: open("/usr/canary", "w").close()),
        "changes the kernel": lambda: fails(lambda: open("/proc/sys/kernel/core_pattern", "r+").close()),
        "creates a user namespace": lambda: fails(unshares),
    },
    "no_credentials": {
        "sees the environment of the host": lambda: not any(
            names & set(told["variables"]) for names in environments()
        ),
        "reads keys of the host": lambda: keys() == 0,
    },
    "limits": {
        "has no limit of memory": lambda: fails(memory_ends),
        "has no limit of file sizes": lambda: fails(file_ends),
        "has no limit of CPU time": lambda: resource.getrlimit(resource.RLIMIT_CPU)[0] != resource.RLIM_INFINITY,
        "has no limit of processes": lambda: fails(processes_end),
    },
    "cleanup": {},
}
broken = {
    name: [words for words, holds in checks.items() if not holds()]
    for name, checks in found.items()
    if name in is_wanted
}
print(json.dumps(broken))
