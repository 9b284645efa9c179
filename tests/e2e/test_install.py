"""The printed steps of the installation, typed as they stand, in order, by root.

They are typed in namespaces of their own with a systemd of their own: `/etc`, `/opt`, `/var` and
`/usr/local` are overlays over this machine's, so that nothing of it is changed. Lent are the
packages that pip would fetch (no network here).
"""

import json
import re
import subprocess
import sysconfig
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, block
from tests.servers.base import require
from tests.servers.systemd import booted

LENT = ("pyproject.toml", "README.md", "spamd", "migrations", "config", ".ci")
"""What a checkout holds that an installation needs."""

pytestmark = pytest.mark.timeout(600)

STEPS = block("docs/operations.md", "apt-get install")
SETTINGS = block("docs/operations.md", '[relay]\nlisten = ["127.0.0.1:8025"]')
LOOK = block("docs/operations.md", "spamd config check")
START = block("docs/operations.md", "install -m 0644 config/systemd")

PORT = block("docs/operations.md", "[Service]\nAmbientCapabilities")
MAILDIRS = block("docs/operations.md", "[Service]\nReadWritePaths=/srv/mail")
OPERATIONS = (ROOT / "docs/operations.md").read_text("utf-8")
UNIT = ROOT / "config/systemd/spamd-relay.service"

BIND = f"{1 << 10:016x}"
"""CAP_NET_BIND_SERVICE and nothing else, as the kernel writes it."""

TIMES = "[Service]\nWatchdogSec=20\nTimeoutStopSec=5\n"
"""So that a test need not wait for as long; on a busy machine all takes its time."""

LIMITED = """\
[relay]
listen = ["127.0.0.1:25"]
workers = 2

[next_hop]
url = "maildir:///srv/mail"

[spamc]
listen = ["unix:/run/spamd/spamc"]

[web]
listen = ["127.0.0.1:11333", "unix:/run/spamd/web"]

[database]
url = "sqlite:////var/lib/spamd/spamd.db"
"""

DEBIANS_SPAMD = "#!/bin/sh\necho SpamAssassin >&2\nexit 1\n"
"""What stands at /usr/sbin/spamd where Debian's package of that name is installed."""

OUTPUT = """\
[Service]
StandardOutput=append:/var/log/spamd
StandardError=inherit
"""
"""There is no journal here to keep the log."""

DROP_INS = "/etc/systemd/system/spamd-relay.service.d"

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


def install() -> list[str]:
    """Return the printed steps that put spamd into /opt/spamd, and settings beside them."""
    first, second, third, *others = STEPS.splitlines()
    assert (second, third.split()[0]) == ("python3 -m venv /opt/spamd", "/opt/spamd/bin/pip")
    return [
        checkout(), written("/usr/sbin/spamd", DEBIANS_SPAMD), "chmod 755 /usr/sbin/spamd",
        first, second, lent(), third, "unset PYTHONPATH", *others,
        f"mkdir {DROP_INS}", written(f"{DROP_INS}/output.conf", OUTPUT),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Return what the printed steps say, and what is found within the limits of the unit."""
    require("systemd")
    require("python3-venv")
    guest = Path(__file__).with_name("unit_guest.py")
    said = booted(
        room(tmp_path_factory.mktemp("room"), "srv"),
        "\n".join(
            [
                *install(),
                written("/etc/spamd/spamd.toml", SETTINGS),
                LOOK,
                START,
                "echo BEGIN",
                "spamd status --json",
                "grep worker.started /var/log/spamd",
                "ss --listening --tcp --numeric --no-header | awk '{print $4}'",
                "stat --format='%U %a' /var/lib/spamd/spamd.db",
                "systemctl stop spamd-relay",
                "systemctl show --property=Result spamd-relay",
                "grep worker.stopped /var/log/spamd",
                "install -d -o spamd -g mail -m 0770 /srv/mail",
                written(f"{DROP_INS}/port.conf", PORT),
                written(f"{DROP_INS}/maildirs.conf", MAILDIRS),
                written(f"{DROP_INS}/times.conf", TIMES),
                written("/etc/spamd/spamd.toml", LIMITED),
                "rm /var/log/spamd",
                "systemctl daemon-reload",
                "systemctl start spamd-relay",
                f"echo LIMITS; /usr/bin/python3 {guest}",
                "spamd status --json",
                "systemctl stop spamd-relay",
                "cat /var/log/spamd",
            ]
        ),
    )
    steps, _, limits = said.partition("LIMITS\n")
    return steps, limits


def test_j12_the_printed_steps_of_the_installation_work_as_typed(said: tuple[str, str]) -> None:
    steps, _ = said
    assert "/etc/spamd/spamd.toml: 4 settings, no fault\n" in steps
    assert "# settings file: /etc/spamd/spamd.toml\n" in steps
    assert "settings     /etc/spamd/spamd.toml\n" in steps
    status, started, *doors, owner, result, _ = steps.partition("BEGIN\n")[2].splitlines()
    assert json.loads(status)["settings"] == "/etc/spamd/spamd.toml"
    assert json.loads(started)["settings"] == "/etc/spamd/spamd.toml"
    assert doors == ["127.0.0.1:8025"]
    assert (owner, result) == ("spamd 640", "Result=success")


def test_within_the_limits_of_the_unit_all_works_and_nothing_else(said: tuple[str, str]) -> None:
    _, limits = said
    found, status, *log = map(json.loads, limits.splitlines())
    account = {"CapEff": BIND, "CapBnd": BIND, "NoNewPrivs": "1", "Seccomp": "2"}
    assert len(found["rights"]) >= 4  # supervisor, two workers, who read the large mail
    assert all({**each, **account} == each and each["Uid"] != "0" for each in found["rights"])
    assert found["verdicts"] == ["unsure", "unsure"]
    assert "DidSet: local" in found["taught"]
    assert found["ready"] == "ready"
    assert found["/etc"] == found["/usr"] == "Read-only file system"
    assert found["reload"] == ["active", "True"]
    assert found["hung"] == {"NRestarts": "1"}
    assert found["after all"] == ["unsure"] * 3
    assert status["corpus"]["spam"] == 1
    assert [line for line in log if line["level"] in {"warning", "error"}] == []


def test_the_unit_has_no_fault_and_hardly_a_right() -> None:
    require("systemd")
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", UNIT], capture_output=True, text=True, check=False
    )
    faults = [line for line in verified.stderr.splitlines() if UNIT.stem in line]
    assert [line for line in faults if "is not executable" not in line] == []  # /opt/spamd
    rated = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", UNIT],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert rated.returncode == 0, rated.stdout
    (level,) = re.findall(r"Overall exposure level for spamd-relay.service: (\S+) ", rated.stdout)
    assert f"`systemd-analyze security spamd-relay`: {level} of 10" in OPERATIONS
