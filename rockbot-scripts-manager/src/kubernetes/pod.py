def _start():
    import base64, io, os, resource, sys
    count, source_len, memory, cpu, file, processes = map(int, sys.argv[1:7])
    os.dup2(os.open(sys.argv[7], os.O_WRONLY | os.O_APPEND), 2)
    # The cluster puts the address of its API into every pod.
    for name in [name for name in os.environ if name.startswith("KUBERNETES_")]:
        del os.environ[name]
    parts = [os.environ.pop("ROCKBOT_PART_%d" % number) for number in range(count)]
    data = base64.b64decode("".join(parts))
    source, data = data[:source_len], data[source_len:]
    if len(data) <= 65536 and b"\0" not in data:
        os.environ["ROCKBOT_INPUT"] = data.decode()
    sys.stdin = io.TextIOWrapper(io.BytesIO(data), "utf-8")
    for kind, most in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, cpu),
        (resource.RLIMIT_FSIZE, file),
        (resource.RLIMIT_NPROC, processes),
        (resource.RLIMIT_NOFILE, 256),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))
    sys.stdout.reconfigure(line_buffering=True)
    sys.path[:0] = sys.argv[8:]
    sys.argv[:] = ["script.py"]
    os.chdir("/tmp")
    return compile(source, "script.py", "exec", dont_inherit=True)


_code = _start()
del _start
exec(globals().pop("_code"))
