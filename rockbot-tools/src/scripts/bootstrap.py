def _leave_keyrings(os):
    # Processes inherit the session keyring of the host, through all namespaces.
    import ctypes
    keyctl = {"x86_64": 250, "aarch64": 219, "riscv64": 219, "ppc64le": 271, "s390x": 280}[os.uname().machine]
    ctypes.CDLL(None).syscall(keyctl, 1, None)


def _close_kernel(os):
    # A filter of system calls. What it refuses reaches past namespaces (sockets of virtual machines, keys) or
    # into parts of the kernel that scripts have no business with. It cannot be taken off, and children have it, too.
    import ctypes, struct, sys
    machine = os.uname().machine
    known = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1), "riscv64": (0xC00000F3, 1)}
    arch, column = known.get(machine) or sys.exit(f"there is no filter of system calls for {machine}")
    refused = (
        (101, 117), (310, 270), (311, 271), (312, 272),  # ptrace, process_vm_readv, process_vm_writev, kcmp
        (248, 217), (249, 218), (250, 219),  # add_key, request_key, keyctl
        (321, 280), (298, 241), (323, 282),  # bpf, perf_event_open, userfaultfd
        (425, 425), (426, 426), (427, 427),  # io_uring_setup, io_uring_enter, io_uring_register
        (165, 40), (166, 39), (155, 41), (161, 51),  # mount, umount2, pivot_root, chroot
        (428, 428), (429, 429), (430, 430), (432, 432), (442, 442),  # open_tree, move_mount, fsopen, fsmount, mount_setattr
        (272, 97), (308, 268), (303, 264), (304, 265),  # unshare, setns, name_to_handle_at, open_by_handle_at
        (246, 104), (320, 294), (175, 105), (313, 273), (176, 106),  # kexec_load, kexec_file_load, init_module, ...
        (167, 224), (168, 225), (163, 89), (169, 142), (179, 60), (103, 116),  # swapon, swapoff, acct, reboot, ...
        (227, 112), (164, 170), (159, 171), (305, 266), (300, 262), (135, 92),  # clocks, fanotify_init, personality
    )
    socket = (41, 198)[column]
    load, equal, least, end = 0x20, 0x15, 0x35, 0x06
    allowed, killed, no_permission, no_such_call, no_family = 0x7FFF0000, 0x80000000, 0x50001, 0x50026, 0x50061
    code = [
        (load, 0, 0, 4), (equal, 1, 0, arch), (end, 0, 0, killed),
        # The second interface of x86_64 has other numbers.
        (load, 0, 0, 0), (least, 0, 1, 0x40000000), (end, 0, 0, no_such_call),
    ]
    for numbers in refused:
        code += [(equal, 0, 1, numbers[column]), (end, 0, 0, no_permission)]
    # Sockets of the own network and of processes alone: AF_UNIX, AF_INET, AF_NETLINK for the names of interfaces, AF_INET6.
    code += [(equal, 0, 6, socket), (load, 0, 0, 16)]
    code += [(equal, 4 - at, 0, family) for at, family in enumerate((1, 2, 16, 10))]
    code += [(end, 0, 0, no_family), (end, 0, 0, allowed)]
    lines = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in code))
    program = ctypes.create_string_buffer(struct.pack("HP", len(code), ctypes.addressof(lines)))
    # PR_SET_SECCOMP with SECCOMP_MODE_FILTER.
    if ctypes.CDLL(None).prctl(22, 2, program):
        sys.exit("the system refuses the filter of system calls")


def _memory_of(os, processes):
    # Memory in bytes, with parts of what processes share. A process may hide all but its whole memory.
    total = 0
    for process in processes:
        try:
            with open(f"/proc/{process}/smaps_rollup") as lines:
                total += sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
        except OSError:
            try:
                with open(f"/proc/{process}/statm") as sizes:
                    total += int(sizes.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
            except OSError:
                pass
    return total


def _become_child(os, memory):
    # The first process of a namespace is no usual one: it ignores signals, and has to wait for orphans.
    script = os.fork()
    if script == 0:
        return
    import select

    os.close(0)
    # Bubblewrap that is killed while it begins leaves this process behind. The runner reads the output, so the end of the
    # reader is the end of the run.
    events = select.poll()
    events.register(1, 0)
    pause = 200
    try:
        events.register(os.pidfd_open(script), select.POLLIN)
    except (AttributeError, OSError):
        pause = 20
    ended = status = 0
    while ended != script:
        for stream, _ in events.poll(pause):
            if stream == 1:
                os._exit(1)
        # The system limits the memory of each process.
        processes = [name for name in os.listdir("/proc") if name.isdigit() and name != "1"]
        if len(processes) > 1 and _memory_of(os, processes) > memory:
            os.write(2, b"MemoryError: all processes of the script together took more than %d MiB\n" % (memory >> 20))
            os.kill(-1, 9)
        ended, status = os.waitpid(-1, os.WNOHANG)
        while ended not in (0, script):
            ended, status = os.waitpid(-1, os.WNOHANG)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def _start():
    import os, resource, sys
    if os.getpid() == 1:
        _leave_keyrings(os)
        _close_kernel(os)
        _become_child(os, int(sys.argv[3]))
    source_len, input_len, memory, cpu, file, processes = map(int, sys.argv[1:7])
    packages = sys.argv[7]
    pipe = sys.stdin.buffer
    source = pipe.read(source_len)
    if len(source) < source_len:
        os._exit(1)
    data = pipe.read(input_len) if input_len <= 65536 else b"\0"
    if b"\0" not in data:
        os.environ["ROCKBOT_INPUT"] = data.decode()
    if input_len <= 65536:
        import io
        sys.stdin = io.TextIOWrapper(io.BytesIO(data), "utf-8")
    try:
        with open("/proc/self/oom_score_adj", "w") as score:
            score.write("1000")
    except OSError:
        pass
    for kind, most in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, cpu),
        (resource.RLIMIT_FSIZE, file),
        (resource.RLIMIT_NPROC, processes),
        (resource.RLIMIT_NOFILE, 256),
        (resource.RLIMIT_CORE, 0),
    ):
        if most >= 0:
            hard = resource.getrlimit(kind)[1]
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(kind, (most, most))
    sys.stdout.reconfigure(line_buffering=True)
    if packages:
        sys.path.insert(0, packages)
    sys.argv[:] = ["script.py"]
    return compile(source, "script.py", "exec", dont_inherit=True)


_code = _start()
del _leave_keyrings, _close_kernel, _memory_of, _become_child, _start
exec(globals().pop("_code"))
