"""Why a message is parked, as `spamd feedback parked` shows it."""

from spamd.errors import StorageUnavailable
from spamd.feedback.mailboxes.mailbox import MailboxError
from spamd.feedback.watching.parked_messages import why_parked


def test_a_known_fault_is_told_in_its_own_words() -> None:
    assert why_parked(MailboxError("folder Junk can't be read")) == "folder Junk can't be read"
    assert why_parked(StorageUnavailable("the database is busy")) == "the database is busy"
    assert why_parked(FileNotFoundError(2, "No such file")) == "No such file"


def test_a_fault_of_the_program_is_named_as_one() -> None:
    assert why_parked(ValueError("too much")) == "internal error (ValueError): too much"
