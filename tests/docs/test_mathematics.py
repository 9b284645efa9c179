"""docs/mathematics.md names places in the code; each of them exists."""

import pkgutil
import re
from pathlib import Path

import pytest

DOCUMENT = Path(__file__).parents[2] / "docs" / "mathematics.md"
PLACE = re.compile(r"`((?:bayes|evaluation)(?:\.[a-z_]+)+\.\w+)`")
PLACES = sorted(set(PLACE.findall(DOCUMENT.read_text())))


@pytest.mark.parametrize("place", PLACES)
def test_the_named_place_exists(place: str) -> None:
    module, _, name = place.rpartition(".")
    assert hasattr(pkgutil.resolve_name(f"spamd.{module}"), name)


@pytest.mark.parametrize("test", sorted(set(re.findall(r"`(test_\w+\.py)`", DOCUMENT.read_text()))))
def test_the_named_test_exists(test: str) -> None:
    assert list(Path(__file__).parents[1].rglob(test))


def test_the_document_names_places() -> None:
    assert len(PLACES) > 25
