"""A bare Debian of its own, made by debootstrap in a temporary folder.

`typed` runs a script in it before it is started, with the network of this machine: what fetches
packages.
`booted` starts it with its own systemd, in namespaces of its own and a network that has loopback
only, and types a script there as root. Every process ends with its namespace; the machine's mounts,
ports, groups of processes and kernel settings are not touched.

Lent are the resolver and, for pip behind a proxy, the certificates that this machine trusts.
"""

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

from tests.servers.systemd import GROUPS, removed
from tests.waiting import wait_until

CHECKOUT = Path(__file__).parents[2]
LENT = ("pyproject.toml", "README.md", "Makefile", "spamd", "migrations", "config", "man", ".ci")
"""What a clone holds that somebody needs who installs."""

CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
PATIENCE_S = 1800
NOT_YET = "usr/sbin/policy-rc.d"
"""Debian's way to say that a package shall start nothing: there is nothing yet that starts it."""

ENTER = """\
mount --make-rprivate /
mount --bind {root} {root}
cd {root}
mount -t proc proc proc
mount --rbind /dev dev
exec chroot . /usr/bin/env -i {environment} /bin/bash -euc {script}
"""

BOOT = """\
mount --make-rprivate /
mount --bind {root} {root}
cd {root}
mount -t proc proc proc
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
mount -t tmpfs -o mode=755 none run
mount -t tmpfs -o mode=1777 none tmp
mount -t sysfs -o ro none sys
mount -t cgroup2 none sys/fs/cgroup
mount -t tmpfs -o mode=755 none dev
for name in null zero full random urandom tty; do
  touch dev/$name
  mount --bind /dev/$name dev/$name
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 none dev/pts
mount -t tmpfs none dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ln -s fd/0 dev/stdin
ln -s fd/1 dev/stdout
ln -s fd/2 dev/stderr
mkdir -p old
pivot_root . old
umount -l /old
(
  until systemctl is-active multi-user.target >/dev/null 2>&1; do sleep 0.1; done
  cd /root/spamd
  set +e
  env -i {environment} /bin/bash -euc {script} 2>&1
  systemctl --force exit $?
) &
export container=lxc
exec /lib/systemd/systemd --system --log-target=null --show-status=no
"""


class System:
    """One bare Debian below `root`; `network` is the name of its network once it is started."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.network = f"stranger{os.getpid()}"
        self._environment = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/root",
            "LC_ALL": "C.UTF-8",
        }

    def make(self, release: str) -> None:
        """Fill the folder: what debootstrap makes, and a clone of this checkout."""
        subprocess.run(
            ["debootstrap", "--variant=minbase", "--include=systemd-sysv", release, self.root],
            check=True, timeout=PATIENCE_S, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        self.root.chmod(0o755)  # a temporary folder is its maker's alone, and this one becomes /
        shutil.copy("/etc/resolv.conf", self.root / "etc/resolv.conf")
        if CERTIFICATES.exists():
            shutil.copy(CERTIFICATES, self.root / "opt/lent.pem")
            self._environment["PIP_CERT"] = "/opt/lent.pem"
        clone = self.root / "root/spamd"
        clone.mkdir()
        for name in LENT:
            copy = shutil.copytree if (CHECKOUT / name).is_dir() else shutil.copy
            copy(CHECKOUT / name, clone / name)

    def typed(self, script: str) -> str:
        """Return what a script prints that is typed in the clone, before the start."""
        policy = self.root / NOT_YET
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)
        try:
            inside = self._written(ENTER, f"cd /root/spamd\n{script}")
            done = subprocess.run(
                ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-euc", inside],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                timeout=PATIENCE_S,
            )  # fmt: skip
        finally:
            policy.unlink()
        assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
        return done.stdout

    def booted(self, script: str, hear: Callable[[str], None]) -> None:
        """Start it and type a script in the clone; `hear` gets each line that it prints."""
        with _network(self.network), _group() as group:
            inside = self._written(BOOT, script)
            unshare = [
                *("ip", "netns", "exec", self.network),
                *("unshare", "--mount", "--pid", "--uts", "--ipc", "--cgroup", "--fork"),
                *("--kill-child", "sh", "-euc", inside),
            ]
            with subprocess.Popen(
                ["sh", "-c", f"echo $$ >{group}/cgroup.procs; exec {shlex.join(unshare)}"],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors="replace",
            ) as process:  # fmt: skip
                end = Timer(PATIENCE_S, process.kill)
                end.start()
                try:
                    assert process.stdout is not None
                    for line in process.stdout:
                        hear(line)
                except BaseException:
                    process.kill()
                    raise
                finally:
                    end.cancel()
            assert process.returncode == 0, f"the script ended with {process.returncode}"

    def _written(self, text: str, script: str) -> str:
        return text.format(
            root=shlex.quote(str(self.root)),
            script=shlex.quote(script),
            environment=" ".join(f"{name}={value}" for name, value in self._environment.items()),
        )


@contextmanager
def _network(name: str) -> Iterator[None]:
    subprocess.run(["ip", "netns", "add", name], check=True, timeout=60)
    try:
        subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True, timeout=60)
        yield
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True, timeout=60)


@contextmanager
def _group() -> Iterator[Path]:
    group = next(path for path in GROUPS if (path / "cgroup.controllers").exists())
    group /= f"stranger-{os.getpid()}"
    group.mkdir()
    try:
        yield group
    finally:
        wait_until(lambda: removed(group), what="its last process has ended")
