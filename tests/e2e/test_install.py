"""The printed steps of the installation, typed as they stand, in order, by root.

They are typed in a mount, network and process namespace of their own: `/etc`, `/opt`, `/var` and
`/usr/local` are overlays over this machine's, so that nothing of it is changed. Lent are the
packages that pip would fetch (no network here), and `systemctl`, which does what systemd does with
the printed unit as far as that needs no systemd.
"""

import json
import subprocess
import sysconfig
from pathlib import Path

from tests.docs.blocks import ROOT, block
from tests.servers.base import require

LENT = ("pyproject.toml", "README.md", "spamd", "migrations", "config", ".ci")
"""What a checkout holds that an installation needs."""

STEPS = block("docs/operations.md", "apt-get install")
SETTINGS = block("docs/operations.md", '[relay]\nlisten = ["127.0.0.1:8025"]')
LOOK = block("docs/operations.md", "spamd config check")
UNIT = block("docs/operations.md", "[Unit]")
START = block("docs/operations.md", "systemctl daemon-reload")

DEBIANS_SPAMD = "#!/bin/sh\necho SpamAssassin >&2\nexit 1\n"
"""What stands at /usr/sbin/spamd where Debian's package of that name is installed."""

SYSTEMCTL = r"""#!/bin/sh
# Starts a unit as systemd does: its user, folder, environment and command, read from its file.
set -eu
unit=/etc/systemd/system/$(basename "${3:-spamd-relay}" .service).service
value() { sed -n "s/^$1=//p" "$unit"; }
case "$1" in
  daemon-reload) test -f "$unit" ;;
  enable)
    test "$2" = --now
    cd "$(value WorkingDirectory)"
    unshare --mount /bin/sh -c '
      for folder in / /etc /opt /usr/local /usr/sbin /root; do
        mount -o remount,bind,ro $folder # ProtectSystem=strict
      done
      mount -t tmpfs -o mode=1777 none /tmp # PrivateTmp
      user=$1; shift
      exec setpriv --reuid="$user" --regid="$user" --clear-groups --no-new-privs \
        env -i PATH=/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 "$@"
    ' sh "$(value User)" $(value ExecStart) >/tmp/log 2>&1 &
    echo $! >/tmp/pid
    for _ in $(seq 600); do
      if grep -q worker.started /tmp/log; then exit 0; fi
      kill -0 "$(cat /tmp/pid)" || { cat /tmp/log >&2; exit 1; }
      sleep 0.1
    done
    exit 1
    ;;
  *) exit 2 ;;
esac
"""

FOLDERS = ("etc", "opt", "var", "usr/local", "usr/sbin", "root")


def room(work: Path, *more: str) -> str:
    """Return a script that lays overlays over this machine's folders."""
    lines = ["mount --make-rprivate /", f"mount -t tmpfs none {work}"]
    for folder in (*FOLDERS, *more):
        up = f"{work}/{folder.replace('/', '-')}"
        layers = f"lowerdir=/{folder},upperdir={up}/up,workdir={up}/work"
        lines += [
            f"mkdir -p {up}/up {up}/work",
            f"mount -t overlay -o {layers} none /{folder}",
        ]
    return "\n".join([*lines, "mount -t tmpfs -o mode=1777 none /tmp", "ip link set lo up"])


def checkout() -> str:
    """Return a script that goes into a copy of this checkout."""
    names = " ".join(f"{ROOT}/{name}" for name in LENT)
    return f"mkdir /root/checkout && cp -r {names} /root/checkout && cd /root/checkout"


def lent() -> str:
    """Return a script that lends the new environment the packages of this one."""
    packages = sysconfig.get_path("purelib")
    return (
        f"mkdir /usr/local/lib/lent && mount --bind {packages} /usr/local/lib/lent\n"
        "echo /usr/local/lib/lent > $(echo /opt/spamd/lib/python3*/site-packages)/lent.pth\n"
        "export PIP_NO_INDEX=1 PIP_NO_BUILD_ISOLATION=0 PYTHONPATH=/usr/local/lib/lent"
    )


def written(path: str, text: str) -> str:
    """Return a script that writes a file."""
    return f"cat > {path} <<'END-OF-FILE'\n{text}END-OF-FILE"


def typed(script: str) -> str:
    """Type a script as root in namespaces of its own; all processes in them end with it."""
    done = subprocess.run(
        ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc",
         "/bin/bash", "-euc", script],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=600,
        env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
             "LC_ALL": "C.UTF-8", "HOME": "/root"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_j12_the_printed_steps_of_the_installation_work_as_typed(tmp_path: Path) -> None:
    require("netns")
    require("python3-venv")
    first, second, third, *others = STEPS.splitlines()
    assert (second, third.split()[0]) == ("python3 -m venv /opt/spamd", "/opt/spamd/bin/pip")
    said = typed(
        "\n".join(
            [
                room(tmp_path),
                checkout(),
                written("/usr/sbin/spamd", DEBIANS_SPAMD) + "\nchmod 755 /usr/sbin/spamd",
                written("/usr/local/sbin/systemctl", SYSTEMCTL),
                "chmod 755 /usr/local/sbin/systemctl",
                first, second, lent(), third, "unset PYTHONPATH", *others,
                written("/etc/spamd/spamd.toml", SETTINGS),
                LOOK,
                written("/etc/systemd/system/spamd-relay.service", UNIT),
                "cd /etc/systemd/system",
                "systemd-analyze verify ./spamd-relay.service 2>&1 | tee /tmp/unit",
                "! grep spamd-relay /tmp/unit",
                START,
                "echo BEGIN",
                "spamd status --json",
                "grep worker.started /tmp/log",
                "ss --listening --tcp --numeric --no-header | awk '{print $4}'",
                "stat --format='%U %a' /var/lib/spamd/spamd.db",
                "kill $(cat /tmp/pid); tail --pid=$(cat /tmp/pid) --follow /dev/null",
                "grep worker.stopped /tmp/log",
            ]
        )
    )  # fmt: skip
    assert "/etc/spamd/spamd.toml: 4 settings, no fault\n" in said
    assert "# settings file: /etc/spamd/spamd.toml\n" in said
    assert "settings     /etc/spamd/spamd.toml\n" in said
    status, started, *doors, owner, _ = said.partition("BEGIN\n")[2].splitlines()
    assert json.loads(status)["settings"] == "/etc/spamd/spamd.toml"
    assert json.loads(started)["settings"] == "/etc/spamd/spamd.toml"
    assert doors == ["127.0.0.1:8025"]
    assert owner == "spamd 640"
