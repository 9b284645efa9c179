"""What an admin can set about feedback: accounts, folders, report addresses, guards.

Every number stands here once, with its unit and its reason; `config/spamd.toml` shows the same.
"""

from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path

from spamd.bayes.selection import KeptOptions

JUNK_FOLDERS = (
    "Junk", "Spam", "Junk E-mail", "Junk Email", "Junk Mail", "Bulk", "Bulk Mail", "Junk-E-Mail",
    "Spamverdacht", "Courrier indésirable", "Pourriel", "Indésirables", "Correo no deseado",
    "Posta indesiderata", "Ongewenste e-mail", "Skräppost", "Søppelpost", "Uønsket e-mail",
    "Roskaposti", "Lixo Eletrônico", "Niechciane", "Нежелательная почта", "Спам", "迷惑メール",
    "垃圾邮件", "스팸",
)  # fmt: skip
"""Names of the Junk folder in the mail clients and languages that create one by themselves."""

TRASH_FOLDERS = (
    "Trash", "Deleted", "Deleted Items", "Deleted Messages", "Bin", "Wastebasket", "Papierkorb",
    "Gelöschte Elemente", "Gelöscht", "Corbeille", "Éléments supprimés", "Papelera", "Cestino",
    "Prullenbak", "Papperskorgen", "Lixeira", "Kosz", "Корзина", "ゴミ箱", "已删除邮件",
)  # fmt: skip
"""Names of the folder in which people throw mail away."""

SENT_FOLDERS = (
    "Sent", "Sent Items", "Sent Messages", "Sent Mail", "Gesendet", "Gesendete Elemente",
    "Gesendete Objekte", "Envoyés", "Messages envoyés", "Éléments envoyés", "Enviados",
    "Elementos enviados", "Posta inviata", "Inviata", "Verzonden", "Skickat", "Отправленные",
    "送信済み", "已发送",
)  # fmt: skip
"""Names of the folder for the mail that people wrote: it tells `bootstrap` what they answered, and
to whom they have written."""

EXCLUDED_FOLDERS = (
    *TRASH_FOLDERS,
    "Drafts", "Draft", "Entwürfe", "Brouillons", "Borradores", "Bozze", "Concepten", "Utkast",
    "Rascunhos", "Черновики", "下書き", "草稿",
    *SENT_FOLDERS,
    "Outbox", "Postausgang", "Boîte d'envoi", "Templates", "Vorlagen",
)  # fmt: skip
"""Folders whose mail says nothing about ham: thrown away, unfinished, or written by the user."""


ALLOW_FOLDERS = ("Allow", "Allowed", "Allow list", "Allowlist", "Whitelist")
"""Names of the folder for mail of senders that its owner lets in."""

DENY_FOLDERS = ("Deny", "Denied", "Block", "Blocked", "Block list", "Blocklist", "Blacklist")
"""Names of the folder for mail of senders that its owner keeps out."""


class Tls(StrEnum):
    """How a connection to an IMAP server is protected."""

    AUTO = "auto"  # port 993: from the first byte; else STARTTLS, needed unless it is loopback
    IMPLICIT = "implicit"
    STARTTLS = "starttls"
    NONE = "none"


_KEPT = KeptOptions()
"""Which kept mail teaches is the same for the watchers and for `spamd evaluate`."""

LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountOptions:
    """One place where a person keeps mail: an IMAP account (`host`) or a Maildir (`maildir`).

    host            name or address of the IMAP server
    port            0: 993 with tls = "implicit", else 143
    tls             "auto", "implicit", "starttls", "none"
    ca_file         certificates to trust instead of the system's; for a server with its own
    user            login name; for a Maildir, the name its lessons carry
    password        login password; better in a file
    password_file   file whose first line is the password; read again at each login
    token_file      file whose first line is an OAuth2 access token: log in by XOAUTH2
    token_command   program and arguments that print such a token; run at each login
    users           log in for each of these users by the master user `user`
    users_file      the same, one name a line
    master_separator  between user and master user in the login name (Dovecot: "*")
    maildir         folder of a Maildir++ (with cur, new, tmp; sub-folders begin with a dot)
    folders         watch only these folders besides Junk and the inbox; empty: all. Mail that goes
                    to a folder named here counts even where nobody knows which is the Trash
    junk_folders    names of Junk here, instead of those for all accounts
    excluded_folders  names of folders that teach nothing here, instead of those for all accounts
    """

    host: str = ""
    port: int = 0
    tls: Tls = Tls.AUTO
    ca_file: Path | None = None
    user: str = ""
    password: str = field(default="", repr=False)
    password_file: Path | None = None
    token_file: Path | None = None
    token_command: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    users_file: Path | None = None
    master_separator: str = "*"
    maildir: Path | None = None
    folders: tuple[str, ...] = ()
    junk_folders: tuple[str, ...] = ()
    excluded_folders: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if bool(self.host) == bool(self.maildir):
            raise ValueError('an account has either "host" (IMAP) or "maildir"')
        if self.maildir:
            return
        if not 0 <= self.port <= 65535:
            raise ValueError(f'"port" of account {self.host} is not between 0 and 65535')
        if not self.user:
            raise ValueError(f'account {self.host} needs a "user"')
        ways = [
            name
            for name in ("password", "password_file", "token_file", "token_command")
            if getattr(self, name)
        ]
        if len(ways) != 1:
            raise ValueError(
                f"account {self.user} at {self.host} needs exactly one of password,"
                " password_file, token_file and token_command; it has"
                f" {' and '.join(ways) or 'none'}"
            )
        if self.tls is Tls.NONE and self.host not in LOOPBACK and "password" in ways[0]:
            raise ValueError(
                f'account {self.user} at {self.host} would send its password in the clear: "tls"'
                ' may be "none" on loopback only'
            )

    @property
    def effective_port(self) -> int:
        """Return the port to connect to."""
        return self.port or (993 if self.tls in {Tls.AUTO, Tls.IMPLICIT} else 143)

    @property
    def implicit_tls(self) -> bool:
        """Return whether TLS begins with the first byte."""
        return self.tls is Tls.IMPLICIT or (self.tls is Tls.AUTO and self.effective_port == 993)

    @property
    def key(self) -> str:
        """Return the name under which state is kept: never shared by two accounts."""
        if self.maildir:
            return f"maildir:{self.maildir}"
        return f"{self.user}@{self.host}:{self.effective_port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackOptions:
    """Learning from mail that users move. Nothing is watched unless accounts are named.

        [[feedback.accounts]]
        host = "imap.example.org"              # or: maildir = "/var/mail/ann"
        user = "ann"
        password_file = "/run/secrets/ann"

    All keys of an account stand in docs/training.md.

    accounts            where people keep mail; empty: nothing is watched
    junk_folders        names of the Junk folder where the server doesn't say (SPECIAL-USE is asked
                        first); compared without case, as the last part of the folder's path
    junk_children       sub-folders of Junk are Junk too (else they are ordinary folders)
    excluded_folders    folders that never teach ham, found as above
    sent_folders        folders of the mail that people wrote, found as above: whom they write to is
                        known to them (section "known")
    allow_folders       folders, by name, that let in the sender of a mail which their owner moves
                        there, for this user and with proof only (docs/lists.md); empty: none does
    deny_folders        folders that keep the sender out
    list_days           days after which such an entry ends; 0: it stays
    kept_days           days after which a mail that its owner has read and left in the inbox may
                        be taught as ham: who finds a mail wrong mostly says so while he reads it,
                        and a weekend lies between; less than database.scans_days; 0: never
    kept_sure           kept mail below this probability of spam teaches nothing: the filter knows
                        it, and thousands of like lessons would drown the few that tell something
    kept_doubt          the most that a kept mail may be spam in truth, as a probability: some
                        people leave spam lying
    kept_missed         share of the spam in the inbox that is supposed to be left lying before
                        anything is known of a person; what he moves and keeps tells better
    kept_crowd          how much less a mail is worth for each e-fold of lessons from its sender's
                        domain, in log-odds
    kept_ratio          lessons of ham for each of spam, at most, of those that people give by and
                        by; kept mail fills up what corrections leave open
    kept_start          lessons of ham beyond that, so that it can begin
    kept_a_day          lessons of kept mail in 24 hours, at most
    kept_window_days    days that these lessons are counted over
    keywords            $Junk and $NotJunk set on a mail count like a move
    poll_s              poll all folders at least this often, in seconds; of the inbox, IDLE
                        tells at once
    idle_s              seconds before IDLE is issued anew: below the 29 minutes of RFC 2177, and
                        below the 5 minutes after which NAT devices and some servers drop a line
    maildir_poll_s      seconds between two polls of the folders of a Maildir (a few `stat` calls)
    timeout_s           seconds until an answer of an IMAP server must be whole; five times as long
                        for one about a folder, as servers index large ones when they are opened
    max_folders         folders of one account that are watched: Junk and the inbox, then the others
                        by name; each costs a question at every poll, a thousand take a second
    retry_first_s       wait after the first failed connection in seconds, doubled each time
    retry_most_s        longest such wait
    attempts            how often a mail is tried before it is left parked
    chunk               messages asked for in one command; progress is saved after each chunk
    max_message_bytes   larger messages are not fetched whole, only this much of their start: twice
                        what is looked at (`tokenizer.limits`), as each line may end in CR and LF
    rule_window_s       a mail that was not seen in its folder so long after its delivery may have
                        been moved by a rule of a mail program, as no person is as quick; seconds;
                        0: everything counts
    hold_after          lessons of one person within `hold_window_s` that contradict a clear
                        verdict; further ones wait for `spamd lessons release`; 0: never
    hold_window_s       seconds in which they are counted
    held_days           days that a held lesson waits for a review (`spamd lessons held`); then it
                        is dropped
    seen_days           days after which the messages of an account that nobody watches any more are
                        forgotten; when it comes back they teach nothing at the first poll
    parked_days         days that a message which was given up stands in `spamd feedback parked`
    lease_s             seconds until another worker takes over the watchers of one that died
    connections         IMAP connections that a worker keeps, a thread each; of more accounts than
                        that, a tenth of the connections looks at the rest in turn, each account
                        every `poll_s` or later
    spam_addresses      mail to these addresses reports the attached messages as spam
    ham_addresses       the same for ham
    report_mails        messages taken from one report, at most
    """

    accounts: tuple[AccountOptions, ...] = ()
    junk_folders: tuple[str, ...] = JUNK_FOLDERS
    junk_children: bool = True
    excluded_folders: tuple[str, ...] = EXCLUDED_FOLDERS
    sent_folders: tuple[str, ...] = SENT_FOLDERS
    allow_folders: tuple[str, ...] = ALLOW_FOLDERS
    deny_folders: tuple[str, ...] = DENY_FOLDERS
    list_days: int = 0
    kept_days: float = 3.0
    kept_sure: float = _KEPT.kept_sure
    kept_doubt: float = _KEPT.kept_doubt
    kept_missed: float = _KEPT.kept_missed
    kept_crowd: float = _KEPT.kept_crowd
    kept_ratio: float = _KEPT.kept_ratio
    kept_start: int = _KEPT.kept_start
    kept_a_day: int = _KEPT.kept_a_day
    kept_window_days: int = 30
    keywords: bool = True
    poll_s: float = 30.0
    idle_s: float = 270.0
    maildir_poll_s: float = 1.0
    timeout_s: float = 60.0
    max_folders: int = 5000
    retry_first_s: float = 1.0
    retry_most_s: float = 300.0
    attempts: int = 3
    chunk: int = 500
    max_message_bytes: int = 2 * (4 * 1024 + 256) * 1024
    rule_window_s: float = 1.0
    hold_after: int = 100
    hold_window_s: float = 3600.0
    held_days: int = 90
    seen_days: int = 90
    parked_days: int = 30
    lease_s: float = 15.0
    connections: int = 1000
    spam_addresses: tuple[str, ...] = ()
    ham_addresses: tuple[str, ...] = ()
    report_mails: int = 100

    def __post_init__(self) -> None:
        for name in ("poll_s", "idle_s", "maildir_poll_s", "timeout_s", "retry_first_s", "lease_s"):
            if getattr(self, name) <= 0:
                raise ValueError(f'"{name}" must be above 0')
        if self.idle_s >= 29 * 60:
            # RFC 2177 §3: re-issue IDLE at least every 29 minutes.
            raise ValueError('"idle_s" must stay below 1740 (29 minutes)')
        self._check_days()
        if self.retry_most_s < self.retry_first_s:
            raise ValueError('"retry_most_s" is below "retry_first_s"')
        for name in (
            "attempts",
            "chunk",
            "connections",
            "max_folders",
            "max_message_bytes",
            "report_mails",
        ):
            if getattr(self, name) < 1:
                raise ValueError(f'"{name}" must be at least 1')
        self._check_lists()
        _ = self.kept

    @property
    def kept(self) -> KeptOptions:
        """Return which kept mail teaches.

        Raises:
            ValueError: a number is out of its range.
        """
        return KeptOptions(**{each.name: getattr(self, each.name) for each in fields(KeptOptions)})

    @property
    def teaches_kept(self) -> bool:
        """Whether mail that people have kept teaches, beside what they correct."""
        return bool(self.accounts and self.kept_days)

    def _check_days(self) -> None:
        for name in ("kept_days", "list_days"):
            if not 0 <= getattr(self, name) <= 36_500:
                raise ValueError(f'"{name}" must lie between 0 and 36500 days')
        for name in ("held_days", "seen_days", "parked_days", "kept_window_days"):
            if not 1 <= getattr(self, name) <= 36_500:
                raise ValueError(f'"{name}" must lie between 1 and 36500 days')

    def _check_lists(self) -> None:
        keys = [account.key for account in self.accounts]
        for key in keys:
            if keys.count(key) > 1:
                raise ValueError(f"account {key} is listed twice")
        both = {a.casefold() for a in self.spam_addresses} & {
            a.casefold() for a in self.ham_addresses
        }
        if both:
            raise ValueError(f"{min(both)} can't report both spam and ham")
        both = {a.casefold() for a in self.allow_folders} & {
            a.casefold() for a in self.deny_folders
        }
        if both:
            raise ValueError(f"a folder {min(both)!r} can't both let in and keep out")
