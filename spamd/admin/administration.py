"""Everything that the page and the API show and do, of one open store.

found = administration()                      # StorageUnavailable until the database answers
await found.overview.show(24, guarded=True)
await found.teaching.teach(id, Label.SPAM, Source.PAGE, visitor.name)
"""

from dataclasses import dataclass

from spamd.admin.accounts import Watched
from spamd.admin.evaluation import Evaluations
from spamd.admin.lessons import Lessons
from spamd.admin.mail import Mails
from spamd.admin.overview import Overviews
from spamd.admin.people.owned import Owned
from spamd.admin.ports import Records, Sessions, Site
from spamd.admin.teaching import Teaching
from spamd.admin.words import Words


@dataclass(frozen=True, slots=True, kw_only=True)
class Administration:
    """What stands behind the page and the API.

    secret     of the installation: a key for what only we may have written
    sessions   who has logged in
    records    the store as rows, for `history`
    site       this machine and worker
    """

    secret: bytes
    sessions: Sessions
    records: Records
    site: Site
    overview: Overviews
    mails: Mails
    teaching: Teaching
    words: Words
    lessons: Lessons
    accounts: Watched
    owned: Owned
    evaluation: Evaluations
