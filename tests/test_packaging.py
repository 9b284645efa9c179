"""What is shipped: the wheel, the image's recipe, the demo of several services, the pins.

`make test-image` goes further and builds the image; here everything is checked that takes seconds.
"""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import sysconfig
import threading
import tomllib
import venv
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from ruamel.yaml import YAML

from tests.docs.blocks import block

CHECKOUT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
PROJECT: dict[str, Any] = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())


def run(
    *command: str | Path, cwd: Path = CHECKOUT, env: Mapping[str, str] | None = None, text: str = ""
) -> str:
    """Return what a command prints; fail the test with all its words when it fails."""
    done = subprocess.run(
        command, cwd=cwd, env=env, input=text, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.fail(f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def modules(folder: str, package: str) -> set[str]:
    """Return the files that the wheel must hold for a folder of the checkout."""
    paths = (CHECKOUT / folder).rglob("*.py")
    return {f"{package}/{path.relative_to(CHECKOUT / folder).as_posix()}" for path in paths}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy, so that the build leaves nothing in the checkout."""
    work = tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(CHECKOUT / name, work)
    for name in ("spamd", "migrations"):
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(CHECKOUT / name, work / name, ignore=ignore)
    run(
        sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation",
        "--wheel-dir", work / "dist", work,
    )  # fmt: skip
    (built,) = (work / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of a new environment that holds the wheel, far from the checkout.

    What spamd depends on is lent by this environment; the checkout itself is not.
    """
    home = tmp_path_factory.mktemp("installed") / "venv"
    venv.create(home, with_pip=False)
    purelib = sysconfig.get_path("purelib", vars={"base": str(home)})
    # A path in a .pth file is searched, but the .pth files in it (the checkout's) are not read.
    Path(purelib, "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
    run(
        sys.executable, "-m", "pip", "--python", home / "bin" / "python", "install", "--quiet",
        "--no-deps", "--no-index", "--ignore-installed", wheel,
    )  # fmt: skip
    return home / "bin"


def test_the_wheel_holds_every_module_and_migration_and_nothing_else(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    python = {name for name in names if name.endswith(".py")}
    assert python == modules("spamd", "spamd") | modules("migrations", "spamd/migrations")
    assert all(name.startswith("spamd/") for name in names)


def test_spamd_works_from_the_wheel_outside_the_checkout(installed: Path, tmp_path: Path) -> None:
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": str(tmp_path)}
    environment["SPAMD_DATABASE__URL"] = f"sqlite:///{tmp_path}/spamd.sqlite"
    where = run(
        installed / "python", "-c", "import spamd; print(spamd.__file__)",
        cwd=tmp_path, env=environment,
    )  # fmt: skip
    assert where.startswith(str(installed.parent))

    def spamd(*arguments: str, text: str = "") -> str:
        return run(installed / "spamd", *arguments, cwd=tmp_path, env=environment, text=text)

    assert PROJECT["project"]["version"] in spamd("--version")
    spamd("database", "upgrade")
    assert (tmp_path / "spamd.sqlite").exists()
    spamd("train", "spam", "-", text="Subject: buy\n\nbuy now\n")
    assert json.loads(spamd("status", "--json"))


def test_all_that_is_installed_is_pinned_exactly_and_within_its_range() -> None:
    lines = (CHECKOUT / ".ci" / "constraints.txt").read_text().splitlines()[1:]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line) for line in lines)
    pins = {canonicalize_name(line.split("==")[0]): line.split("==")[1] for line in lines}
    wanted = {
        *PROJECT["build-system"]["requires"],
        *PROJECT["project"]["dependencies"],
        *PROJECT["dependency-groups"]["dev"],
        *(text for extra in PROJECT["project"]["optional-dependencies"].values() for text in extra),
    }
    seen: set[str] = set()
    while new := wanted - seen:
        seen |= new
        for requirement in map(Requirement, new):
            extras = requirement.extras or {""}
            name = canonicalize_name(requirement.name)
            if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
                continue
            assert pins[name] in requirement.specifier, requirement
            assert metadata.version(name) == pins[name]
            for text in metadata.requires(name) or []:
                marker = Requirement(text).marker
                if not marker or any(marker.evaluate({"extra": extra}) for extra in extras):
                    wanted.add(text.partition(";")[0])


class TestImage:
    """The Dockerfile, read; `make test-image` builds it."""

    text = (CHECKOUT / "Dockerfile").read_text()

    def test_the_linter_has_no_objection(self) -> None:
        assert run(BIN / "hadolint", CHECKOUT / "Dockerfile") == ""

    def test_it_ends_as_a_plain_user_with_one_volume_one_port_and_a_health_check(self) -> None:
        last = self.text.rpartition("FROM ")[2]
        assert re.findall(r"^USER (\S+)", last, re.MULTILINE) == ["8025:8025"]
        assert re.findall(r"^VOLUME (\S+)", last, re.MULTILINE) == ["/var/lib/spamd"]
        assert re.findall(r"^EXPOSE (\S+)", last, re.MULTILINE) == ["8025"]
        assert "\nHEALTHCHECK " in last

    def test_all_it_copies_is_let_through_to_the_builder(self) -> None:
        let = (CHECKOUT / ".dockerignore").read_text().splitlines()
        sources = re.findall(r"^COPY (?!--from)(.+) \S+$", self.text, re.MULTILINE)
        for source in " ".join(sources).split():
            assert (CHECKOUT / source).exists()
            assert f"!{source}" in let


class TestCompose:
    """docker-compose.yml: whoever runs it gets a mail system on loopback, nothing more."""

    compose: dict[str, Any] = YAML(typ="safe").load(CHECKOUT / "docker-compose.yml")

    def test_it_keeps_to_the_compose_specification(self) -> None:
        run(
            BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec",
            CHECKOUT / "docker-compose.yml",
        )  # fmt: skip

    def test_every_name_it_mentions_is_defined_in_it(self) -> None:
        services: dict[str, dict[str, Any]] = self.compose["services"]
        for service in services.values():
            assert set(service.get("depends_on", {})) <= set(services)
            assert set(service.get("networks", [])) <= set(self.compose["networks"])
            volumes = {volume.partition(":")[0] for volume in service.get("volumes", [])}
            assert volumes <= set(self.compose["volumes"])
            configs = {config["source"] for config in service.get("configs", [])}
            assert configs <= set(self.compose["configs"])

    def test_whom_others_wait_for_has_a_health_check(self) -> None:
        services: dict[str, dict[str, Any]] = self.compose["services"]
        for service in services.values():
            for name, need in service.get("depends_on", {}).items():
                if need["condition"] == "service_healthy":
                    assert "healthcheck" in services[name]

    def test_no_port_is_open_beyond_this_machine(self) -> None:
        services: dict[str, dict[str, Any]] = self.compose["services"]
        for service in services.values():
            assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))

    def test_the_dockerfile_of_the_mailbox_has_no_objection_of_the_linter(self) -> None:
        inline = self.compose["services"]["mailbox"]["build"]["dockerfile_inline"]
        assert run(BIN / "hadolint", "-", text=inline) == ""


def health(listen: str, key: str = "RELAY") -> int:
    """Return how the image's health check ends where spamd listens there."""
    environment = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(CHECKOUT),
        "SPAMD_CONFIG": "/dev/null",
    }
    return subprocess.run(
        [sys.executable, CHECKOUT / "config" / "image-health.py"],
        env=environment | {f"SPAMD_{key}__LISTEN": listen}, capture_output=True, check=False,
    ).returncode  # fmt: skip


@pytest.mark.parametrize(
    ("greeting", "healthy"), [(b"220 mx.test ESMTP\r\n", True), (b"421 ", False)]
)
def test_j13_the_health_check_follows_the_settings(greeting: bytes, healthy: bool) -> None:  # noqa: FBT001 - a column
    with socket.create_server(("127.0.0.1", 0)) as door:

        def greet() -> None:
            with door.accept()[0] as client, suppress(ConnectionError):
                client.sendall(greeting)
                client.recv(10)

        thread = threading.Thread(target=greet)
        thread.start()
        port = door.getsockname()[1]
        assert (health(f"0.0.0.0:{port}") == 0) is greeting.startswith(b"220")
        thread.join()
    assert health(f"127.0.0.1:{port}") != 0


@pytest.mark.parametrize(
    ("answer", "healthy"),
    [
        (b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nok\n", True),
        (b"HTTP/1.1 503 Service Unavailable\r\n\r\nok\n", False),
        (b"220 mx.test ESMTP\r\n", False),
        (b"", False),
    ],
)
def test_the_health_check_asks_by_http_where_there_is_an_address(
    answer: bytes,
    healthy: bool,  # noqa: FBT001 - a column
) -> None:
    asked = []
    with socket.create_server(("127.0.0.1", 0)) as door:

        def answered() -> None:
            with door.accept()[0] as client, suppress(ConnectionError):
                asked.append(client.recv(1000))
                client.sendall(answer)

        thread = threading.Thread(target=answered)
        thread.start()
        assert (health(f"0.0.0.0:{door.getsockname()[1]}", "WEB") == 0) is healthy
        thread.join()
    assert asked[0].startswith(b"GET /healthz HTTP/1.0\r\n")


DOCKER = block("docs/operations.md", "docker build")


def test_j13_docker_is_used_as_the_image_is_made() -> None:
    build, start, teach = map(shlex.split, DOCKER.splitlines())
    header = re.findall(r"^#   (.+)$", TestImage.text, re.MULTILINE)
    assert header == DOCKER.splitlines()[:2]
    last = TestImage.text.rpartition("FROM ")[2]
    (volume,) = re.findall(r"^VOLUME (\S+)", last, re.MULTILINE)
    (port,) = re.findall(r"^EXPOSE (\S+)", last, re.MULTILINE)
    assert build == ["docker", "build", "--tag", "spamd", "."]
    options = dict(zip(start[3:-1:2], start[4:-1:2], strict=True))
    assert options == {
        "--name": "spamd",
        "--publish": f"127.0.0.1:8025:{port}",
        "--volume": f"spamd:{volume}",
    }
    assert (start[:3], start[-1]) == (["docker", "run", "--detach"], build[3])
    assert teach[:4] == ["docker", "exec", "--interactive", options["--name"]]
    assert teach[4:] == ["spamd", "train", "spam", "-", "<", "mail.mbox"]


@pytest.mark.parametrize("script", ["install-packages"])
def test_j12_a_script_says_the_usage_that_stands_at_its_top(script: str) -> None:
    path = CHECKOUT / ".ci" / script
    (usage,) = re.findall(r"^#   (\S+) (.+)$", path.read_text(), re.MULTILINE)
    done = subprocess.run([path], capture_output=True, text=True, check=False)
    assert done.returncode == 64
    assert done.stderr.split()[2:] == [usage[1]]
    kinds = re.findall(r"^  ([a-z|]+)\)", path.read_text(), re.MULTILINE)
    assert sorted(usage[1].split("|")) == sorted(kinds)


def test_the_settings_of_the_image_are_valid() -> None:
    # Another user's folder: so only the file named here is read.
    environment = {**os.environ, "SPAMD_CONFIG": str(CHECKOUT / "config" / "image.toml")}
    here = "database.url=sqlite:////tmp/spamd.db"  # the volume is not there
    shown = run(BIN / "spamd", "config", "check", "--set", here, env=environment)
    assert "image.toml" in shown


@pytest.mark.parametrize(
    "script", ["run", "install-packages", "make-venv", "make-pins", "make-run"]
)
def test_the_scripts_have_no_objection_of_the_linter(script: str) -> None:
    assert run(BIN / "shellcheck", CHECKOUT / ".ci" / script) == ""


def test_no_process_of_ours_imports_from_the_folder_that_it_is_started_in() -> None:
    found = []
    for path in sorted((CHECKOUT / "spamd").rglob("*.py")):
        found += re.findall(r'sys\.executable,\s*((?:"[^"]*",?\s*)+)', path.read_text())
    assert len(found) >= 5
    assert [each for each in found if not each.startswith('"-P"')] == []
