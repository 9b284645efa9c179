"""The same mail has the same tokens under every Python that is installed here."""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.message.test_golden import MAILS
from tests.servers.base import require

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
    require("python3-venv")  # Debian's own, which our compiled packages fit
    assert features("/usr/bin/python3") == features(sys.executable)
