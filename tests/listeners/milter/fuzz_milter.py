"""Coverage-guided fuzzing of a milter's connection: `make fuzz FUZZ=milter SECONDS=3600`.

The first octet says how what follows is cut into segments, and whether there is room for a message.
"""

import asyncio
import sys
from pathlib import Path

import atheris  # type: ignore[import-untyped]  # installed only by who runs this

with atheris.instrument_imports(include=["spamd.listeners.milter"]):
    from tests.listeners.milter.hostile import play, stream

LOOP = asyncio.new_event_loop()


def one_input(data: bytes) -> None:
    """Play one server."""
    choice, text = data[0] if data else 0, data[1:]
    size = (choice >> 1) or len(text) or 1
    LOOP.run_until_complete(play(text, [size], small=bool(choice & 1)))


def main() -> None:
    """Run the fuzzer with the options of libFuzzer given on the command line."""
    for folder in (Path(word) for word in sys.argv[1:] if not word.startswith("-")):
        folder.mkdir(exist_ok=True, parents=True)
        for number in range(40):
            (folder / f"seed-{number}").write_bytes(bytes([number]) + stream(number))
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
