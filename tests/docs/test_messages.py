"""What the program says when something fails: in words, never what a library made of it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = sorted((Path(__file__).parents[2] / "spamd").rglob("*.py"))

IN_WORDS = ("reason", "unbound", "words", "_ended", "plain", "type")
"""Functions that make words of an exception, or name its class."""

OF_THE_SYSTEM = {
    "BaseException", "BlockingIOError", "ConnectionError", "EOFError", "Exception", "FAULTS",
    "FileExistsError", "FileNotFoundError", "IMAPClientError", "OSError", "PermissionError",
    "RuntimeError", "SMTPException", "SSLError", "SubprocessError", "TimeoutError",
    "UnicodeDecodeError", "UnicodeError", "_ENDED", "GARBLED",
}  # fmt: skip
"""What libraries raise; texts of ours (SpamdError, ValueError of options) are words already."""

ALLOWED = {
    (
        "cli/commands/database.py",
        "error",
    ): "an export that is none says so itself; gzip's EOFError is words",
    ("cli/mail/files.py", "error"): "zlib, lzma and zipfile say in words what is broken",
    ("cli/mail/compressed.py", "error"): "zipfile says in words that a file is encrypted",
    ("feedback/watching/watcher.py", "error"): "compared with what was told before, not shown",
    ("relay/outbound/open_relay.py", "error"): "a SpamdError, or a ValueError of our own options",
    ("evaluation/index.py", "error"): "the name of the file that may not be read",
}


def caught_by(handler: ast.ExceptHandler) -> set[str]:
    """Return the names of the exceptions that a handler catches, without their modules."""
    nodes = list(ast.walk(handler.type)) if handler.type else []
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return names | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


def shown_in(node: ast.AST) -> ast.expr | None:
    """Return the expression that a place of an f-string, or str(), makes a text of."""
    if isinstance(node, ast.FormattedValue):
        return node.value
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "str" and node.args:
        return node.args[0]
    return None


def raw_texts(file: Path) -> Iterator[tuple[str, int]]:
    """Yield the name of a caught exception and the line where its own text becomes a message."""
    for handler in ast.walk(ast.parse(file.read_text())):
        if not isinstance(handler, ast.ExceptHandler) or not handler.name:
            continue
        if not caught_by(handler) & OF_THE_SYSTEM:
            continue
        for node in ast.walk(handler):
            shown = shown_in(node)
            if shown is None or ast.unparse(shown).startswith(IN_WORDS):
                continue
            if any(isinstance(n, ast.Name) and n.id == handler.name for n in ast.walk(shown)):
                yield handler.name, shown.lineno


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: file.name)
def test_j16_no_message_shows_what_a_library_made_of_a_fault(file: Path) -> None:
    place = str(file).rpartition("/spamd/")[2]
    wrong = [line for name, line in raw_texts(file) if (place, name) not in ALLOWED]
    assert wrong == [], f"{place}: show reason(error) instead"


def test_j16_every_exception_of_that_rule_is_still_needed() -> None:
    used = {
        (str(file).rpartition("/spamd/")[2], name)
        for file in SOURCES
        for name, _ in raw_texts(file)
    }
    assert set(ALLOWED) <= used


def test_j16_what_an_imap_server_said_is_shown_without_signs_of_python() -> None:
    from spamd.feedback.mailboxes.mailbox import words

    assert words("b'[AUTHENTICATIONFAILED] Authentication failed.'") == (
        "[AUTHENTICATIONFAILED] Authentication failed."
    )
    assert words(ConnectionRefusedError(111, "Connect call failed (1)")) == "Connection refused"
