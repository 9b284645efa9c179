r"""SMTP and LMTP dialogs as data: `dialogs/*.txt`, each with one client, our relay, one next hop.

    == smtp_m06_a_second_mail_is_503      the name of the test; a new dialog begins
    relay.max_recipients = 2              settings in TOML; also next_hop.NAME, and of the scripted
                                          next hop hop.lmtp, hop.extensions
    hop MAIL: 550 5.1.8 no                what the next hop answers; written again: the next time.
                                          "hop banner:" and "hop message:" for those; <close>,
                                          <reset> and <nothing> are no answers
    verdict: reject                       or "fault": the inspector fails
    case: one => other                    the dialog is run for each case, with {} and {1} replaced
    C: MAIL FROM:<a@x.test>               the client sends a line; several in a row are one write
    C> BDAT 2 LAST\r\n\r\n                likewise, without a CRLF at the end
    S: 250 2.1.0 sender fine              it reads this reply; a reply of several lines has as many
                                          of these; "..." at the end stands for anything
    S: <closed>                           it reads the end of the connection; that to the next hop
                                          ends, too
    N: MAIL FROM:<a@x.test>               the next hop got this; all such lines are all it got.
                                          "N: <no connection>": it was not even connected to
    messages: 1                           it got so many messages
    recipients: 4                         so many accepted recipients of the first of them
    faults: session.failed                the observer was told of these, no others

`\r`, `\n`, `\s` (a blank), `\xHH` and `\\` are escapes, `<9*5000>` is a sign 5000 times.
A dialog that does not begin with the banner ("S: 220 ...") is played behind it.
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import HAM, REJECT, FakeInspector
from tests.relay.peers import MESSAGE, QUEUED, Answer, Do, ScriptedNextHop, Talk, relay

FOLDER = Path(__file__).parent / "dialogs"
PEER_VERBS = {"banner": "", "message": "."}
NO_ANSWERS = {b"<close>": Do.CLOSE, b"<reset>": Do.RESET, b"<nothing>": Do.NOTHING}
MACROS = {
    "hello": ["C: EHLO c.test", "S: 250..."],
    "envelope": ["C: MAIL FROM:<a@x.test>", "S: 250...", "C: RCPT TO:<b@y.test>", "S: 250..."],
    "message": [
        *["C: MAIL FROM:<a@x.test>", "S: 250...", "C: RCPT TO:<b@y.test>", "S: 250..."],
        *["C: DATA", "S: 354...", "content", "S: " + QUEUED.decode().strip()],
    ],
    "content": ["C> " + MESSAGE.decode().replace("\r\n", "\\r\\n") + ".\\r\\n"],
}
_ESCAPE = re.compile(rb"\\(?:x([0-9a-f]{2})|(.))")
_REPEATED = re.compile(r"<(.)\*([0-9]+)>")
_SIGNS = {b"r": b"\r", b"n": b"\n", b"s": b" ", b"\\": b"\\"}
_STEP = re.compile(r"(C:|C>|S:|N:|hop [a-zA-Z]+:|messages:|recipients:|faults:|verdict:) ?(.*)")


def octets(text: str) -> bytes:
    text = _REPEATED.sub(lambda match: match[1] * int(match[2]), text)
    return _ESCAPE.sub(
        lambda match: bytes.fromhex(match[1].decode()) if match[1] else _SIGNS[match[2]],
        text.encode(),
    )


@dataclass
class Dialog:
    """One dialog of one case."""

    settings: dict[str, Any]
    steps: list[tuple[str, bytes]] = field(default_factory=list)

    def all(self, kind: str) -> list[bytes]:
        return [value for each, value in self.steps if each == kind]

    def section(self, name: str) -> dict[str, Any]:
        """Return settings as our dataclasses take them; what a next hop offers is octets."""
        offered = name == "hop"
        return {
            key: tuple(each.encode() if offered else each for each in value)
            if isinstance(value, list)
            else value
            for key, value in self.settings.get(name, {}).items()
        }

    @property
    def answers(self) -> dict[str, Answer | list[Answer]]:
        found: dict[str, list[Answer]] = {}
        for kind, value in self.steps:
            if kind.startswith("hop "):
                word = kind[4:-1]
                answer = NO_ANSWERS.get(value, value + b"\r\n")
                found.setdefault(PEER_VERBS.get(word, word), []).append(answer)
        return {verb: each[0] if len(each) == 1 else each for verb, each in found.items()}


def dialogs() -> Iterator[Any]:
    """Yield the dialogs of all files, once for each case, with their names."""
    for path in sorted(FOLDER.glob("*.txt")):
        for text in re.split(r"^== ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            name, _, body = text.partition("\n")
            lines = [line for line in body.split("\n") if line and not line.startswith("#")]
            cases = [line.removeprefix("case: ") for line in lines if line.startswith("case: ")]
            lines = [line for line in lines if not line.startswith("case: ")]
            for number, case in enumerate(cases or [""]):
                suffix = f"-{number + 1}" if cases else ""
                yield pytest.param(parsed(lines, case.split(" => ")), id=name.strip() + suffix)


def parsed(lines: list[str], case: list[str]) -> Dialog:
    toml, dialog = "", Dialog({})
    rest = list(lines)
    while rest:
        line = rest.pop(0)
        if line in MACROS:
            rest = MACROS[line] + rest
            continue
        for sign, value in zip(("{}", "{1}", "{2}"), case, strict=False):
            line = line.replace(sign, value)
        step = _STEP.fullmatch(line)
        if step is not None:
            dialog.steps.append((step[1], octets(step[2])))
        else:
            assert " = " in line, line
            toml += line + "\n"
    dialog.settings = tomllib.loads(toml)
    return dialog


async def played(talk: Talk, dialog: Dialog) -> None:
    """Say what the client says and read what it must read."""
    sending = b""
    expected: list[bytes] = []
    for kind, value in dialog.steps:
        if kind in {"C:", "C>"}:
            sending += value if kind == "C>" else value + b"\r\n"
        elif kind == "S:":
            if sending:
                await talk.send(sending)
                sending = b""
            if value == b"<closed>":
                assert await talk.rest() == b""
                continue
            expected.append(value)
            if value[3:4] != b"-" or value.endswith(b"..."):
                reply = await talk.reply()
                wanted = b"\r\n".join(expected)
                expected = []
                if wanted.endswith(b"..."):
                    assert reply.startswith(wanted[:-3]), (reply, wanted)
                else:
                    assert reply == wanted + b"\r\n"
    assert not sending
    assert not expected


@pytest.mark.parametrize("dialog", list(dialogs()))
async def test_dialog(dialog: Dialog) -> None:
    inspector = FakeInspector(HAM)
    match dialog.all("verdict:"):
        case [b"reject"]:
            inspector = FakeInspector(REJECT)
        case [b"fault"]:
            inspector = FakeInspector(fault=ZeroDivisionError())
        case other:
            assert not other
    hop = ScriptedNextHop(answers=dialog.answers, **dialog.section("hop"))
    options = dialog.section("relay")
    next_hop = dialog.settings.get("next_hop", {})
    async with hop, relay(hop.url, inspector=inspector, next_hop=next_hop, **options) as running:
        banner = dialog.steps[0][1].startswith(b"220 ")
        await played(await running.talk(greeting=not banner), dialog)
        if b"<closed>" in dialog.all("S:"):
            await hop.until(lambda: hop.open == 0)
        if commands := dialog.all("N:"):
            assert hop.commands == [each for each in commands if each != b"<no connection>"]
            assert (hop.connections == 0) is (b"<no connection>" in commands)
        for count in dialog.all("messages:"):
            assert len(hop.messages) == int(count)
        for count in dialog.all("recipients:"):
            assert len(hop.envelopes[0][1]) == int(count)
        for events in dialog.all("faults:"):
            assert [event for event, _ in running.observer.faults] == events.decode().split()
