"""A systemd of its own, as the first process of new namespaces: units run in it as anywhere else.

It starts none of this machine's units: it knows those that stand in /etc/systemd/system, which is
empty at first, and the targets that a unit is hung on. What a unit is not allowed to do, this
machine's kernel refuses it there, by the same filters.
"""

import os
import shlex
import subprocess
from contextlib import suppress
from pathlib import Path

from tests.waiting import wait_until

UNITS = "/run/units"

TARGETS = {
    "sysinit": "",
    "basic": "Requires=sysinit.target",
    "multi-user": "Requires=basic.target",
    "network-online": "",
    "shutdown": "",
}
"""The targets that units are hung on, without what else a machine starts there."""

PATIENCE_S = 550

GROUPS = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))
"""Where a machine has the groups of processes that a systemd keeps (cgroups, version 2)."""

START = f"""\
mount -t tmpfs -o mode=755 none /run
mount -t tmpfs -o mode=755 none /etc/systemd/system
mount -t cgroup2 none /sys/fs/cgroup # its own only
mkdir {UNITS}
{{targets}}
(
  until systemctl is-active multi-user.target >/dev/null 2>&1; do sleep 0.05; done
  set +e
  /bin/bash -euc {{script}}
  systemctl --force exit $?
) &
export container=lxc SYSTEMD_UNIT_PATH=/etc/systemd/system:{UNITS}
export SYSTEMD_GENERATOR_PATH=/nonexistent
exec /lib/systemd/systemd --system --unit=multi-user.target --log-target=null --show-status=no
"""


def booted(room: str, script: str) -> str:
    """Type a script as root beside a systemd; all that either started ends with it.

    room    a script that makes the file system, before systemd starts
    script  what is typed once systemd answers
    """
    targets = [
        f"printf '[Unit]\\nDefaultDependencies=no\\n{text}\\n' >{UNITS}/{name}.target"
        for name, text in TARGETS.items()
    ]
    start = START.format(targets="\n".join(targets), script=shlex.quote(script))
    group = next(path for path in GROUPS if (path / "cgroup.controllers").exists())
    group /= f"for-tests-{os.getpid()}"
    group.mkdir()
    unshare = [
        *("unshare", "--mount", "--net", "--pid", "--uts", "--ipc", "--cgroup", "--fork"),
        *("--kill-child", "--mount-proc", "/bin/bash", "-euc", f"{room}\n{start}"),
    ]
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", f"echo $$ >{group}/cgroup.procs; exec {shlex.join(unshare)}"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            timeout=PATIENCE_S,
            env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                 "LC_ALL": "C.UTF-8", "HOME": "/root"},
        )  # fmt: skip
    finally:
        wait_until(lambda: removed(group), what="its last process has ended")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def removed(group: Path) -> bool:
    for folder, _, _ in os.walk(group, topdown=False):
        with suppress(OSError):
            Path(folder).rmdir()
    return not group.exists()
