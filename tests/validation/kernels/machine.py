"""Another kernel under this machine's own file system: machine.py KERNEL [OPTION...] -- COMMAND ...

KERNEL is a Debian kernel: the name of a package (`apt-get download` fetches it), a `.deb` file, or a folder
that one was unpacked into. QEMU boots it without KVM, so it needs neither root nor a processor that
virtualizes. The guest's root is the host's, read-only over 9P; what the guest writes stays in its memory. So
the guest runs the same files: this checkout, its environment, its Python and its programs. Only the kernel
differs. COMMAND runs in this folder, as the guest's root, with /job/out as a folder whose files come back to
--out. There is no network.

Every instruction of the guest counts as one nanosecond of its clock, unless --host-clock is given (`-icount`
of QEMU). The guest then sees one processor of even speed, however slow QEMU and busy the host are: tests of
timing hold. While the guest waits, its clock follows the host's.

It needs qemu-system-x86, busybox-static and cpio from Debian.
"""

import argparse
import lzma
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[3]
KEPT = PROJECT / "target" / "kernels"
MODULES = ("virtio_pci", "9pnet_virtio", "9p", "overlay", "tun", "veth", "tcp_bbr")
"""The modules that the guest needs if Debian does not build them in. The guest cannot load modules later."""
PROGRAMS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "busybox": "busybox-static",
    "cpio": "cpio",
    "dpkg-deb": "dpkg",
}
"""The programs that this needs, and the Debian package of each."""

INIT = """#!/bin/busybox sh
b=/bin/busybox
$b mkdir -p /lower /writes /new
for module in /modules/*; do $b insmod $module || exit 1; done
options=trans=virtio,version=9p2000.L,msize=512000
$b mount -t 9p -o ro,cache=loose,$options host /lower || exit 1
$b mount -t tmpfs -o mode=755,size=90% none /writes
$b mkdir /writes/upper /writes/work
$b mount -t overlay -o lowerdir=/lower,upperdir=/writes/upper,workdir=/writes/work none /new || exit 1
for folder in proc sys dev run job; do $b mkdir -p /new/$folder; done
$b mount -t 9p -o $options job /new/job || exit 1
$b mount -t proc none /new/proc
$b mount -t sysfs none /new/sys
$b mount -t devtmpfs none /new/dev
$b mkdir -p /new/dev/pts /new/dev/shm
$b mount -t devpts -o mode=620,ptmxmode=666 none /new/dev/pts
$b mount -t tmpfs -o mode=1777 none /new/dev/shm
$b mount -t tmpfs -o mode=755 none /new/run
$b ln -sf /proc/self/fd /new/dev/fd
# As udev makes it in most distributions.
$b chmod 666 /new/dev/net/tun
exec $b switch_root /new /bin/sh /job/start
"""

START = """export PATH={path} HOME=/root LC_ALL=C.UTF-8 {environment}
ip link set lo up || ifconfig lo up
cd {folder}
{command} </dev/null >/job/log 2>&1
echo $? >/job/status
sync
echo o >/proc/sysrq-trigger
sleep 60
"""


def main() -> int:
    arguments = parsed(sys.argv[1:])
    kernel = Kernel.found(arguments.kernel)
    status, elapsed_s = boot(
        kernel,
        arguments.command,
        out=arguments.out,
        memory_mib=arguments.memory,
        processors=arguments.cpus if arguments.host_clock else 1,
        counted=not arguments.host_clock,
        within_s=arguments.within,
    )
    sys.stderr.write(f"Linux {kernel.release}: status {status}, {elapsed_s:.0f} s of the host\n")
    return status


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("kernel", help="a kernel's package, its .deb, or a folder with boot and lib/modules")
    parser.add_argument("--out", type=Path, help="folder for what the guest leaves in /job/out")
    parser.add_argument("--host-clock", action="store_true", help="let the guest see the host's time")
    parser.add_argument("--cpus", type=int, default=2, help="processors, with --host-clock")
    parser.add_argument("--memory", type=int, default=4096, metavar="MIB")
    parser.add_argument(
        "--within", type=float, default=1800, metavar="S", help="time of the host it may take"
    )
    parser.usage = f"{parser.format_usage().removeprefix('usage: ').rstrip()} -- COMMAND ..."
    end = argv.index("--") if "--" in argv else len(argv)
    arguments = parser.parse_args(argv[:end])
    arguments.command = list(argv[end + 1 :])
    if not arguments.command:
        parser.error("no command: end with `-- COMMAND ...`")
    missing = {package for program, package in PROGRAMS.items() if not shutil.which(program)}
    if missing:
        parser.error(f"programs are missing. hint: as root: apt-get install {' '.join(sorted(missing))}")
    return arguments


class Kernel:
    """An unpacked kernel.

    Args:
        folder: It has `boot/vmlinuz-RELEASE` and `lib/modules/RELEASE` (or `usr/lib/modules`).
    """

    def __init__(self, folder: Path) -> None:
        images = sorted(folder.glob("boot/vmlinuz-*"))
        if len(images) != 1:
            sys.exit(
                f"error: {folder} has {len(images)} files boot/vmlinuz-*. hint: unpack one kernel into it"
            )
        self.image = images[0]
        self.release = self.image.name.removeprefix("vmlinuz-")
        places = [folder / "lib/modules" / self.release, folder / "usr/lib/modules" / self.release]
        modules = next((place for place in places if place.is_dir()), None)
        if not modules:
            sys.exit(
                f"error: {folder} has no lib/modules/{self.release}. hint: name a complete kernel package"
            )
        self._built_in = {_module_name(line) for line in (modules / "modules.builtin").read_text().split()}
        self._files = {_module_name(file.name): file for file in modules.rglob("*.ko*")}

    @classmethod
    def found(cls, named: str) -> "Kernel":
        """The kernel in a folder, a file or a package. Each package is unpacked once."""
        if Path(named).is_dir():
            return cls(Path(named))
        file = Path(named) if named.endswith(".deb") else _download(named)
        if not file.is_file():
            sys.exit(f"error: there is no {file}. hint: name a kernel's .deb, a folder or a package")
        folder = KEPT / file.stem
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(dir=_made(KEPT)) as unpacked:
                subprocess.run(["dpkg-deb", "-x", str(file.resolve()), unpacked], check=True)
                Path(unpacked).rename(folder)
                Path(unpacked).mkdir()
        return cls(folder)

    def modules(self, wanted: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """The modules in loading order: each comes after those that it depends on."""
        given: set[str] = set()

        def with_needs(name: str) -> Iterator[tuple[str, bytes]]:
            if name in given or name in self._built_in:
                return
            given.add(name)
            if name not in self._files:
                sys.exit(f"error: Linux {self.release} has no module {name}")
            content = _content(self._files[name])
            needs = re.search(rb"\0depends=([^\0]*)\0", content)
            for need in filter(None, (needs[1] if needs else b"").decode().split(",")):
                yield from with_needs(_module_name(need))
            yield name, content

        for name in wanted:
            yield from with_needs(name)


def _download(package: str) -> Path:
    kept = sorted(KEPT.glob(f"{package}_*.deb"))
    if not kept:
        ended = subprocess.run(["apt-get", "-q", "download", package], cwd=_made(KEPT), check=False)
        kept = sorted(KEPT.glob(f"{package}_*.deb"))
        if ended.returncode or not kept:
            sys.exit(
                f"error: apt has no package {package}. hint: apt-cache search linux-image; apt-get update"
            )
    return kept[-1]


def _module_name(file: str) -> str:
    return file.rsplit("/", 1)[-1].split(".ko", 1)[0].replace("-", "_")


def _content(file: Path) -> bytes:
    match file.suffix:
        case ".ko":
            return file.read_bytes()
        case ".xz":
            return lzma.decompress(file.read_bytes())
        case _:
            sys.exit(f"error: {file}: its compression is unknown here. hint: name a kernel of Debian")


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def boot(
    kernel: Kernel,
    command: Sequence[str],
    *,
    out: Path | None,
    memory_mib: int,
    processors: int,
    counted: bool,
    within_s: float,
) -> tuple[int, float]:
    """Runs a command under a kernel; returns its exit code and the time that it took on the host, s."""
    with tempfile.TemporaryDirectory() as scratch:
        initrd = _initrd(kernel, Path(scratch))
        job = _made(Path(scratch) / "job")
        if out:
            (job / "out").mkdir()
        (job / "start").write_text(_start(command))
        clock = ["-accel", "tcg,thread=multi"]
        if counted:
            clock = ["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=on"]
        begun = time.monotonic()
        try:
            subprocess.run(
                ["qemu-system-x86_64", *clock, *_hardware(kernel, initrd, job, memory_mib, processors)],
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr,
                timeout=within_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            sys.stderr.write(f"error: the guest took more than {within_s:g} s. hint: --within\n")
        elapsed_s = time.monotonic() - begun
        log, status = job / "log", job / "status"
        if log.exists():
            sys.stdout.write(log.read_text(errors="replace"))
        if out:
            shutil.copytree(job / "out", out, dirs_exist_ok=True)
        return int(status.read_text()) if status.exists() else 124, elapsed_s


def _hardware(kernel: Kernel, initrd: Path, job: Path, memory_mib: int, processors: int) -> list[str]:
    return [
        *("-cpu", "max", "-smp", str(processors), "-m", str(memory_mib)),
        *("-nodefaults", "-nographic", "-serial", "stdio", "-no-reboot", "-net", "none"),
        *("-kernel", str(kernel.image), "-initrd", str(initrd)),
        *("-append", "console=ttyS0 quiet panic=-1 mitigations=off"),
        *("-virtfs", "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap"),
        *("-virtfs", f"local,path={job},mount_tag=job,security_model=none"),
    ]


def _start(command: Sequence[str]) -> str:
    passed = {name: value for name, value in os.environ.items() if name.startswith("FIRSTFLIGHT_")}
    return START.format(
        path=shlex.quote(os.environ["PATH"]),
        environment=" ".join(f"{name}={shlex.quote(value)}" for name, value in passed.items()),
        folder=shlex.quote(str(Path.cwd())),
        command=shlex.join(command),
    )


def _initrd(kernel: Kernel, scratch: Path) -> Path:
    root = scratch / "initrd"
    modules = _made(root / "modules")
    shutil.copy(str(shutil.which("busybox")), _made(root / "bin") / "busybox")
    for number, (name, content) in enumerate(kernel.modules(MODULES)):
        (modules / f"{number:02}-{name}.ko").write_bytes(content)
    (root / "init").write_text(INIT)
    (root / "init").chmod(0o755)
    files = "\n".join(str(file.relative_to(root)) for file in sorted(root.rglob("*")))
    packed = subprocess.run(
        ["cpio", "--create", "--format=newc", "--quiet"],
        input=files.encode(),
        cwd=root,
        stdout=subprocess.PIPE,
        check=True,
    )
    (scratch / "initrd.cpio").write_bytes(packed.stdout)
    return scratch / "initrd.cpio"


if __name__ == "__main__":
    sys.exit(main())
