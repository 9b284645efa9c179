"""What all listeners of a process share: who judges, whom to tell, what clients may use up."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, Self

from spamd.network.connection_limiter import ConnectionLimiter, ConnectionLimits
from spamd.network.deadlines import DeadlineTimer
from spamd.network.judge import Judge, JudgeOptions
from spamd.network.spool import Budget
from spamd.network.turns import Turns
from spamd.ports import Clock, Inspector, MessageObserver, MessageTeacher, People
from spamd.report import ScanReport


class SharedOptions(ConnectionLimits, JudgeOptions, Protocol):
    """The settings that hold for every listener (`relay.options.RelayOptions` has them)."""

    @property
    def memory_bytes(self) -> int: ...  # noqa: D102 - the options say what each is
    @property
    def spool_bytes(self) -> int: ...  # noqa: D102
    @property
    def spool_above_bytes(self) -> int: ...  # noqa: D102
    @property
    def spool_directory(self) -> str: ...  # noqa: D102
    @property
    def client_share(self) -> float: ...  # noqa: D102
    @property
    def max_message_bytes(self) -> int: ...  # noqa: D102
    @property
    def command_timeout_s(self) -> float: ...  # noqa: D102
    @property
    def data_timeout_s(self) -> float: ...  # noqa: D102
    @property
    def data_grace_s(self) -> float: ...  # noqa: D102
    @property
    def data_rate(self) -> float: ...  # noqa: D102
    @property
    def drain_s(self) -> float: ...  # noqa: D102


Answered = Callable[[ScanReport, str, bytes], None]


@dataclass(slots=True, kw_only=True)
class Shared:
    """What all listeners share; `teacher` and `people` are others once the database is open.

    people     who knows for whom a mail is; None: all mail is judged as the site
    answered   notes by which listener a message came, and the reply that it got
    """

    options: SharedOptions
    judge: Judge
    teacher: MessageTeacher
    observer: MessageObserver
    clock: Clock
    budget: Budget
    limiter: ConnectionLimiter
    deadline_timer: DeadlineTimer
    turns: Turns
    answered: Answered = field(default=lambda *_: None)
    people: People | None = None

    @classmethod
    def of(
        cls,
        options: SharedOptions,
        inspector: Inspector,
        teacher: MessageTeacher,
        observer: MessageObserver,
        clock: Clock,
    ) -> Self:
        """Return what listeners share by these settings."""
        return cls(
            options=options,
            judge=Judge(inspector, observer, options),
            teacher=teacher,
            observer=observer,
            clock=clock,
            budget=Budget(
                memory_bytes=options.memory_bytes,
                spool_bytes=options.spool_bytes,
                spool_above_bytes=options.spool_above_bytes,
                directory=options.spool_directory,
                client_share=options.client_share,
                max_message_bytes=options.max_message_bytes,
            ),
            limiter=ConnectionLimiter(options),
            deadline_timer=DeadlineTimer(),
            turns=Turns(),
        )

    def scanned(self, report: ScanReport, *, listener: str, reply: bytes, recipients: int) -> None:
        """Tell the observer of a message; its fault must not cost the client its reply."""
        try:
            self.observer.scanned(report, listener=listener, reply=reply, recipients=recipients)
            self.answered(report, listener, reply)
        except Exception as error:  # noqa: BLE001 - the message is answered, nothing may change that
            self.observer.failed("observer.failed", error)

    def judge_by(
        self, inspector: Inspector, teacher: MessageTeacher, people: People | None = None
    ) -> None:
        """Have mail judged and lessons taken by others than before, and for these people."""
        self.judge.inspector = inspector
        self.people = people
        self.teacher = teacher

    def close(self) -> None:
        """End what runs besides the listeners, after the last of them."""
        self.deadline_timer.stop()
        self.budget.close()
