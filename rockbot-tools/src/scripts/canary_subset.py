import json, os
from pathlib import Path

told = json.loads(ROCKBOT_INPUT)


def fails(action):
    try:
        action()
    except Exception:
        return True
    return False


def connects():
    import socket
    socket.create_connection(("127.0.0.1", told["port"]), 2)


def opens_connection():
    import asyncio
    asyncio.run(asyncio.open_connection("127.0.0.1", told["port"]))


def fetches():
    from urllib.request import urlopen
    urlopen(f"http://127.0.0.1:{told['port']}", timeout=2)


def calls_system():
    import ctypes
    ctypes.CDLL(None)


def starts_program():
    import subprocess
    subprocess.run(["true"])


def starts_thread():
    import threading
    threading.Thread(target=print).start()


def is_empty(names):
    try:
        return not set(names()) & set(told["variables"])
    except Exception:
        return True


def file_ends():
    with open("canary", "wb") as file:
        for _ in range(80):
            file.write(b"x" * (1 << 20))


file = told["file"]
is_wanted = told["declared"]
found = {
    "no_network": {
        "reaches a server of the host": lambda: all(fails(way) for way in (connects, opens_connection, fetches)),
    },
    "no_files": {
        "reads a file of the host": lambda: all(
            fails(lambda: open(path).read()) and fails(lambda: Path(path).read_text())
            for path in (file, "/tmp/.." + file, "/script/../.." + file, "/proc/1/root" + file, "/etc/passwd", "../../etc/passwd")
        ),
        "lists the files of the host": lambda: fails(lambda: os.listdir("/")) and fails(lambda: list(Path("/").iterdir())),
        "writes to the system": lambda: fails(lambda: open("/usr/canary", "w").close()),
        "changes its own source": lambda: fails(lambda: open("/script/source", "w").close()),
        "calls the system": lambda: fails(calls_system),
    },
    "no_credentials": {
        "sees the environment of the host": lambda: is_empty(lambda: os.environ)
        and is_empty(lambda: [name for name in told["variables"] if os.getenv(name)])
        and fails(lambda: open("/proc/self/environ").read()),
    },
    "limits": {
        "has no limit of file sizes": lambda: fails(file_ends),
        "has no limit of processes": lambda: all(
            fails(way) for way in (lambda: os.fork(), lambda: os.system("true"), starts_program, starts_thread)
        ),
    },
    "cleanup": {},
}
broken = {
    name: [words for words, holds in checks.items() if not holds()]
    for name, checks in found.items()
    if name in is_wanted
}
print(json.dumps(broken))
