"""The same mail has the same tokens under every Python that is installed here."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.message.test_golden import MAILS

CHECKOUT = Path(__file__).parents[2]
PROGRAM = """
import hashlib, json, sys
from pathlib import Path
from spamd.message.features import extract
found = {}
for name in sys.argv[1:]:
    features = extract(Path(name).read_bytes())
    state = hashlib.sha256(features.sample.ids.tobytes() + features.digest)
    found[Path(name).name] = state.hexdigest()
print(json.dumps(found))
"""


def other_python() -> str:
    """Return Debian's own interpreter where the compiled packages of this one fit it, too."""
    found = shutil.which("python3", path="/usr/bin")
    if found is None:
        pytest.skip("there is no /usr/bin/python3")
    said = subprocess.run([found, "-c", "import sys; print(*sys.version_info[:3])"], check=True,
                          capture_output=True, text=True).stdout.split()  # fmt: skip
    if tuple(map(int, said[:2])) != sys.version_info[:2]:
        pytest.skip(
            f"/usr/bin/python3 is {'.'.join(said)}: the packages installed here don't fit it"
        )
    return found


def features(python: str) -> dict[str, str]:
    paths = [str(CHECKOUT), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    ran = subprocess.run(
        [python, "-c", PROGRAM, *map(str, MAILS)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found: dict[str, str] = json.loads(ran.stdout)
    return found


def test_another_release_of_python_reads_the_same_of_each_mail() -> None:
    assert features(other_python()) == features(sys.executable)
