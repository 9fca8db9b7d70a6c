//! Ways out of the sandbox, each tried by a script.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::Command;

use super::super::local::Isolation;
use super::{Local, sandbox};

/// Runs `script` after helpers, and asserts that it prints nothing: it prints what it could do.
async fn assert_no_way_out(sandbox: &Local, script: &str) {
    let helpers = "
import ctypes, glob, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def tried(name, action):
    try:
        found = action()
    except OSError:
        return
    print(name, repr(found))
def called(name, *arguments):
    if getattr(libc, name)(*arguments) == 0:
        print(name, arguments)
";
    let output = sandbox.run(&format!("{helpers}{script}")).await;
    assert_eq!((output.stdout.as_str(), output.exit_code), ("", Some(0)), "{output:?}");
}

#[tokio::test]
async fn no_file_of_the_host_is_reached() {
    let Some(sandbox) = sandbox().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "canary").unwrap();
    let script = format!(
        "
secret = {secret:?}
for root in ('', '/proc/1/root', '/proc/self/root', '/proc/1/cwd/..', '/newroot', '/oldroot'):
    tried(root + secret, lambda: open(root + secret).read())
os.symlink(secret, '/tmp/link')
tried('link', lambda: open('/tmp/link').read())
tried('hard link', lambda: os.link(secret, '/tmp/hard'))
os.symlink('/', '/tmp/root')
for path in ('/etc/shadow', '/etc/passwd', '/root', '/home', '/var', '/sys', '/run', '/boot', '/opt', '/srv', '/mnt'):
    tried(path, lambda: os.listdir('/tmp/root' + path) if os.path.isdir('/tmp/root' + path) else open('/tmp/root' + path).read())
for path in ('/usr/x', '/bin/x', '/lib/x', '/x', '/dev/x', '/proc/x', '/proc/sys/kernel/x'):
    tried(path, lambda: open(path, 'w'))
for path in ('/proc/sys/kernel/core_pattern', '/proc/sys/kernel/hostname', '/proc/sys/vm/drop_caches', '/proc/sysrq-trigger',
             '/proc/kcore', '/proc/kmsg', '/proc/timer_list', '/dev/mem', '/dev/kmsg', '/dev/sda', '/dev/vda'):
    tried(path, lambda: open(path, 'r+b').close() or path)
for path in ('/proc/self/uid_map', '/proc/self/gid_map', '/proc/1/uid_map'):
    tried(path, lambda: open(path, 'wb', 0).write(b'0 0 1'))
for path in glob.glob('/proc/[0-9]*/fd/*'):
    kept = path.startswith('/proc/self') or not os.path.exists(path)
    kept or os.path.isfile(path) and print(path, os.readlink(path))
    kept or os.path.isdir(path) and int(path.split('/')[2]) == 1 and print(path, os.readlink(path))
"
    );
    assert_no_way_out(&sandbox, &script).await;
}

#[tokio::test]
async fn no_right_is_gained() {
    let Some(sandbox) = sandbox().await else { return };
    let script = "
for kind in (0x10000000, 0x00020000, 0x40000000, 0x20000000, 0x10020000):
    called('unshare', kind)
called('mount', b'none', b'/tmp', b'tmpfs', 0, None)
called('mount', b'/proc', b'/tmp', None, 4096, None)
called('umount2', b'/proc', 2)
called('umount2', b'/tmp', 2)
called('chroot', b'/tmp')
called('setuid', 0)
called('setgid', 0)
called('sethostname', b'x', 1)
for name in ('mnt', 'net', 'user', 'pid'):
    descriptor = os.open('/proc/1/ns/' + name, os.O_RDONLY) if os.access('/proc/1/ns/' + name, os.R_OK) else -1
    called('setns', descriptor, 0)
tried('mknod', lambda: os.mknod('/tmp/disk', 0o60600, os.makedev(8, 0)))
devices = set(os.listdir('/dev')) - set('null zero full random urandom tty fd stdin stdout stderr core shm pts ptmx console'.split())
devices and print(devices)
tried('terminal', lambda: os.open('/dev/tty', os.O_RDWR))
status = open('/proc/self/status').read()
[print(line) for line in status.splitlines() if line.startswith('Cap') and int(line.split()[1], 16)]
'NoNewPrivs:\\t1' in status or print(status)
os.getuid() and os.getgid() or print('root')
";
    assert_no_way_out(&sandbox, script).await;
}

#[tokio::test]
async fn no_process_and_no_variable_of_the_host_is_seen() {
    let Some(sandbox) = sandbox().await else { return };
    let host = std::process::id();
    let names = std::env::vars_os();
    let common = [
        "PATH", "HOME", "LANG", "PWD", "LC_ALL", "TZ", "USER", "LOGNAME", "TMPDIR", "_", "SHLVL", "TERM", "OLDPWD",
        "HOSTNAME",
    ];
    let names = names.map(|(name, _)| name.to_string_lossy().into_owned());
    let names: Vec<_> = names.filter(|name| !common.contains(&&**name)).collect();
    assert!(
        names.iter().any(|name| name.starts_with("CARGO")),
        "cargo sets some: {names:?}"
    );
    let script = format!(
        "
host, names = {host}, set({names:?})
allowed = {{'PATH', 'HOME', 'LANG', 'PWD', 'ROCKBOT_INPUT', 'LC_CTYPE'}}
set(os.environ) <= allowed or print(os.environ)
for path in glob.glob('/proc/[0-9]*/environ'):
    tried(path, lambda: (seen := {{name.split(b'=')[0].decode() for name in open(path, 'rb').read().split(b'\\0')}} & names) and print(seen) or os.stat('/nothing'))
len(glob.glob('/proc/[0-9]*')) <= 2 or print(glob.glob('/proc/[0-9]*'))
tried('kill', lambda: os.kill(host, 0))
called('ptrace', 16, host, 0, 0)
tried('environ', lambda: open(f'/proc/{{host}}/environ').read())
tried('root', lambda: os.listdir(f'/proc/{{host}}/root'))
"
    );
    assert_no_way_out(&sandbox, &script).await;
}

#[tokio::test]
async fn no_socket_of_the_host_is_reached() {
    let Some(sandbox) = sandbox().await else { return };
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let name = format!("rockbot-test-{port}");
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _listener = UnixListener::bind_addr(&address).unwrap();
    let script = format!(
        "
tried('tcp', lambda: socket.create_connection(('127.0.0.1', {port}), 2))
tried('abstract', lambda: socket.socket(socket.AF_UNIX).connect('\\0{name}'))
tried('udp', lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(('192.0.2.1', 9)))
tried('udp6', lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).connect(('2001:db8::1', 9)))
tried('raw', lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
tried('packet', lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
tried('names', lambda: socket.getaddrinfo('example.com', 80))
[name for _, name in socket.if_nameindex()] == ['lo'] or print(socket.if_nameindex())
{name:?} in open('/proc/net/unix').read() and print('unix sockets')
"
    );
    assert_no_way_out(&sandbox, &script).await;
    drop(server);
}

#[tokio::test]
async fn no_call_passes_the_filter() {
    let Some(sandbox) = sandbox().await else { return };
    // The numbers of x86_64 and of the others: ptrace, keyctl, add_key, bpf, userfaultfd, io_uring_setup,
    // open_by_handle_at, personality.
    let script = "
import subprocess
column = 0 if os.uname().machine == 'x86_64' else 1
calls = ((101, 117), (250, 219), (248, 217), (321, 280), (323, 282), (425, 425), (304, 265), (135, 92))
for numbers in calls:
    result = libc.syscall(numbers[column], 0, 0, 0, 0, 0)
    (result, ctypes.get_errno()) == (-1, 1) or print(numbers, result, ctypes.get_errno())
if column == 0:
    result = libc.syscall(0x40000000 | 39)
    (result, ctypes.get_errno()) == (-1, 38) or print('the second interface', result)
# Of machines above this machine, of the kernel's ciphers, of packets and radios.
for family in (40, 38, 17, 31, 44):
    tried(family, lambda: socket.socket(family, socket.SOCK_STREAM).close())
status = subprocess.run(['/bin/sh', '-c', 'cat /proc/self/status'], capture_output=True, text=True).stdout
'Seccomp:\t2' in status or print(status)
";
    assert_no_way_out(&sandbox, script).await;
}

#[tokio::test]
async fn usual_work_passes_the_filter() {
    let Some(sandbox) = sandbox().await else { return };
    let script = "
import asyncio, concurrent.futures, datetime, json, multiprocessing, os, socket, sqlite3, subprocess, tempfile, threading
async def talk():
    async def answer(reader, writer):
        writer.write(await reader.readline())
        writer.close()
    server = await asyncio.start_server(answer, '127.0.0.1', 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b'said' + bytes([10]))
    return (await reader.readline()).strip()
print(asyncio.run(talk()))
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    print(sum(pool.map(abs, range(-3, 1))))
reading, writing = multiprocessing.Pipe()
child = multiprocessing.get_context('fork').Process(target=lambda: writing.send('sent'))
child.start()
print(reading.recv())
child.join()
print(subprocess.run(['/bin/echo', 'ran'], capture_output=True, text=True).stdout.strip())
print(sqlite3.connect('kept.db').execute('select 1 + 1').fetchone())
with tempfile.TemporaryFile() as file:
    print(file.write(b'four'))
print(datetime.datetime.now().year > 2000, os.sched_getaffinity(0) != set())
";
    let output = sandbox.run(script).await;
    let expected = "b'said'\n6\nsent\nran\n(2,)\n4\nTrue True\n";
    assert_eq!(
        (output.stdout.as_str(), output.exit_code),
        (expected, Some(0)),
        "{output:?}"
    );
}

/// Adds a key to the session keyring, and becomes the program that the arguments name.
const WITH_KEY: &str = "
import ctypes, os, sys
add_key = {'x86_64': 248, 'aarch64': 217, 'riscv64': 217}[os.uname().machine]
sys.exit(77) if ctypes.CDLL(None).syscall(add_key, b'user', b'rockbot-secret', b'canary', 6, -3) < 0 else None
os.environ['ROCKBOT_TEST_HAS_KEY'] = '1'
os.execv(sys.argv[1], sys.argv[1:])
";

#[tokio::test]
async fn no_key_of_the_host_is_read() {
    if std::env::var_os("ROCKBOT_TEST_HAS_KEY").is_none() {
        if sandbox().await.is_none() {
            return;
        }
        let name = "scripts::tests::escapes::no_key_of_the_host_is_read";
        let test = std::env::current_exe().unwrap();
        let mut with_key = Command::new("/usr/bin/python3");
        let with_key = with_key
            .args(["-c", WITH_KEY])
            .arg(test)
            .args(["--exact", name])
            .output();
        let output = with_key.unwrap();
        return match output.status.code() {
            Some(77) => super::skip("this kernel keeps no keys"),
            _ => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout)),
        };
    }
    let script = "
buffer = ctypes.create_string_buffer(64)
keyctl = {'x86_64': 250, 'aarch64': 219, 'riscv64': 219}[os.uname().machine]
def key(*arguments):
    return libc.syscall(keyctl, *arguments)
for ring in (-1, -2, -3, -4, -5):
    found = key(10, ring, b'user', b'rockbot-secret', 0)
    found < 0 or key(11, found, buffer, 64) < 0 or print(ring, buffer.value)
max(0, key(11, -3, buffer, 64)) and print('keys', buffer.raw)
# Its owner may see that it is there.
for line in open('/proc/keys').read().splitlines():
    number = int(line.split()[0], 16)
    if 'rockbot-secret' in line:
        key(5, number, 0x3f3f3f3f) == 0 and print('changed', line)
        key(8, number, -3) == 0 and print('linked', line)
        key(11, number, buffer, 64) < 0 or print('read', line)
";
    assert_no_way_out(&Local::new(Isolation::Bubblewrap), script).await;
}
