"""Where views and the rows behind their numbers are: paths with their questions."""

from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import quote, urlencode

from spamd.listeners.web.pages.charts import Slot

VIEWS = (
    ("overview", "/"),
    ("history", "/history"),
    ("words", "/words"),
    ("lessons", "/lessons"),
    ("accounts", "/accounts"),
    ("settings", "/settings"),
    ("evaluation", "/evaluation"),
)


def asked(path: str, **conditions: str | int | None) -> str:
    """Return a path with those conditions that are given."""
    given = {name: value for name, value in conditions.items() if value not in {None, ""}}
    return f"{path}?{urlencode(given)}" if given else path


def history(**conditions: str | None) -> str:
    """Return where the mails that fit are listed."""
    return asked("/history", **conditions)


def lessons(**conditions: str | None) -> str:
    """Return where the lessons that fit are listed."""
    return asked("/lessons", **conditions)


def slot(span: Slot) -> str:
    """Return where the mails of a span of time are listed."""
    return history(since=as_field(span.begins), until=as_field(span.ends))


def lesson_slot(span: Slot) -> str:
    """Return where the lessons of a span of time are listed."""
    return lessons(since=as_field(span.begins), until=as_field(span.ends))


def account(name: str) -> str:
    """Return where a watched account is shown."""
    return asked("/account", name=name)


def word(text: str) -> str:
    """Return where a word is looked up."""
    return asked("/words", word=text)


def mail(name: str) -> str:
    """Return where a mail is shown, by its id or its identity."""
    return f"/mail/{quote(name, safe='')}"


def as_field(time: datetime | None) -> str:
    """Return a time as a field of a form holds it, in UTC."""
    return "" if time is None else f"{time.astimezone(UTC):%Y-%m-%dT%H:%M}"


def wrong(name: str, since: datetime) -> str:
    """Return where the lessons are listed that corrected the mail of an error rate."""
    label = "spam" if name == "spam_passed" else "ham"
    return lessons(label=label, since=as_field(since))


def rollback(chosen: Mapping[str, str]) -> str:
    """Return where the lessons that fit can be taken back."""
    return asked("/lessons/rollback", **chosen)
