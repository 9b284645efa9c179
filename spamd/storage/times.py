"""Times in the database: microseconds since 1970 in UTC, exact both ways."""

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def to_number(time: datetime) -> int:
    """Return a time (with its zone) as microseconds."""
    return (time - EPOCH) // MICROSECOND


def from_number(number: int) -> datetime:
    """Return microseconds as a time in UTC."""
    return EPOCH + number * MICROSECOND
