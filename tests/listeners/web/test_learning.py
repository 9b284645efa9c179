"""Who may teach over HTTP, and what he reads."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from spamd.errors import ConfigError, StorageUnavailable
from spamd.listeners.web.access.passwords import PasswordHash
from spamd.listeners.web.access.tries import TRIES, WINDOW_S
from spamd.ports import Taught
from spamd.sample import Label
from tests.fakes import FakeClock, FakeTeacher
from tests.listeners.web.clients import MAIL, Running, running

SECRET = "correct horsé"
RIGHT = f"Password: {SECRET.encode().decode('latin_1')}"
WRONG = "Password: battery staple"


def password_file(folder: Path) -> str:
    """Write a file that lets a password in without much work."""
    kept = PasswordHash.of(SECRET.encode(), b"0123456789abcdef", log_n=10, p=1)
    (folder / "password").write_text(f"{kept}\n")
    return str(folder / "password")


def keep(path: Path, line: str) -> None:
    path.write_text(line)


async def taught(here: Running, path: str, fields: Iterable[str] = ()) -> tuple[int, str]:
    answer = await here.post(path, MAIL, fields)
    return answer.status, answer.phrase


@pytest.mark.parametrize(("path", "label"), [("/learnspam", Label.SPAM), ("/learnham", Label.HAM)])
async def test_a_unix_socket_teaches_without_a_password(
    path: str, label: Label, tmp_path: Path
) -> None:
    async with running(address=f"unix:{tmp_path}/s") as here:
        answer = await here.post(path)
    assert (answer.status, answer.json) == (200, {"success": True})
    assert here.teacher.learned == [(MAIL, label, "http", "unix")]


@pytest.mark.parametrize("name", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "Via"])
async def test_what_a_proxy_passes_on_to_a_unix_socket_needs_the_password(
    name: str, tmp_path: Path
) -> None:
    async with running(address=f"unix:{tmp_path}/s", password_file=password_file(tmp_path)) as here:
        assert (await taught(here, "/learnspam", [f"{name}: 192.0.2.1"]))[0] == 401
        assert (await taught(here, "/learnspam", [f"{name}: 192.0.2.1", RIGHT]))[0] == 200


@pytest.mark.parametrize(
    ("fields", "user"),
    [
        (["Deliver-To: <anna@x.test>", "Rcpt: bob@x.test"], "anna@x.test"),
        (["Rcpt: bob@x.test", "User: carl"], "bob@x.test"),
        (["Rcpt: bob@x.test", "Rcpt: carl@x.test"], ""),
        (["User: carl"], "carl"),
        ([], ""),
    ],
)
async def test_a_lesson_is_for_whom_the_mail_would_be_judged(
    fields: list[str], user: str, tmp_path: Path
) -> None:
    teacher = FakeTeacher(known=("anna@x.test",))
    async with running(address=f"unix:{tmp_path}/s", teacher=teacher) as here:
        assert (await taught(here, "/learnspam", fields))[0] == 200
    assert teacher.users == [user]


async def test_where_nobody_has_a_filter_of_their_own_lessons_are_for_the_site(
    tmp_path: Path,
) -> None:
    async with running(address=f"unix:{tmp_path}/s", web={"socket_mode": "0666"}) as here:
        assert (await taught(here, "/learnspam", ["User: carl"]))[0] == 200
        assert here.teacher.users == [""]


async def test_at_a_socket_that_all_may_open_a_lesson_for_a_user_takes_the_password(
    tmp_path: Path,
) -> None:
    teacher = FakeTeacher(known=("anna",))
    async with running(
        address=f"unix:{tmp_path}/s", web={"socket_mode": "0666"}, teacher=teacher,
        password_file=password_file(tmp_path),
    ) as here:  # fmt: skip
        assert (await taught(here, "/learnspam", ["User: anna"]))[0] == 401
        assert (await taught(here, "/learnspam", ["User: anna", WRONG]))[0] == 401
        assert (await taught(here, "/learnspam", ["User: anna", RIGHT]))[0] == 200
        assert (await taught(here, "/learnspam"))[0] == 200
    assert teacher.users == ["anna", ""]


async def test_over_tcp_without_a_password_file_nobody_teaches_and_reads_what_to_set() -> None:
    async with running() as here:
        status, phrase = await taught(here, "/learnspam", [RIGHT])
    assert status == 403
    assert "web.password_file" in phrase
    assert not here.teacher.learned


async def test_over_tcp_the_password_teaches_in_a_field_and_in_the_query(tmp_path: Path) -> None:
    async with running(password_file=password_file(tmp_path)) as here:
        assert await taught(here, "/learnspam") == (401, "the password is missing or wrong")
        assert (await taught(here, "/learnspam", [WRONG]))[0] == 401
        assert (await taught(here, "/learnspam", [RIGHT]))[0] == 200
        assert (await taught(here, "/learnham?password=correct%20hors%C3%A9"))[0] == 200
        assert (await here.get("/auth", [RIGHT])).json["auth"] == "ok"
        assert (await here.get("/auth")).status == 401
    assert [label for _, label, _, _ in here.teacher.learned] == [Label.SPAM, Label.HAM]


async def test_a_report_network_teaches_without_a_password_but_no_browser_of_it() -> None:
    async with running(report_networks=("127.0.0.0/8",)) as here:
        assert (await taught(here, "/learnspam"))[0] == 200
        assert (await taught(here, "/learnspam", ["Origin: http://evil.example"]))[0] == 403
        assert (await taught(here, "/learnspam", ["X-Forwarded-For: 127.0.0.1"]))[0] == 403
        assert (await taught(here, "/learnspam", ["User: ann"]))[0] == 200
    assert {actor for _, _, _, actor in here.teacher.learned} == {"127.0.0.1"}


async def test_a_name_that_the_client_gives_itself_is_no_right() -> None:
    async with running() as here:
        assert (await taught(here, "/learnspam", ["User: ann"]))[0] == 403


async def test_wrong_passwords_are_throttled_for_a_while(tmp_path: Path) -> None:
    clock = FakeClock()
    async with running(password_file=password_file(tmp_path), clock=clock) as here:
        statuses = [(await taught(here, "/learnspam", [WRONG]))[0] for _ in range(TRIES)]
        assert set(statuses) == {401}
        answer = await here.post("/learnspam", MAIL, [RIGHT])
        assert (answer.status, answer.fields["retry-after"]) == (429, "60")
        clock.seconds += WINDOW_S + 1
        assert (await taught(here, "/learnspam", [RIGHT]))[0] == 200


async def test_right_passwords_are_as_many_as_they_like(tmp_path: Path) -> None:
    async with running(password_file=password_file(tmp_path)) as here:
        statuses = [(await taught(here, "/learnspam", [RIGHT]))[0] for _ in range(2 * TRIES)]
    assert set(statuses) == {200}


async def test_a_new_password_is_read_again_and_a_broken_file_keeps_the_old(tmp_path: Path) -> None:
    path = Path(password_file(tmp_path))
    async with running(password_file=str(path)) as here:
        assert (await taught(here, "/learnspam", [RIGHT]))[0] == 200
        keep(path, "secret\n")
        with pytest.raises(ConfigError, match=r"web\.password_file: .*spamd password"):
            here.listener.reload()
        assert (await taught(here, "/learnspam", [RIGHT]))[0] == 200
        keep(path, str(PasswordHash.of(b"another", b"0123456789abcdef", log_n=10, p=1)))
        here.listener.reload()
        assert (await taught(here, "/learnspam", [RIGHT]))[0] == 401


@pytest.mark.parametrize(
    ("answer", "status"), [(Taught.LEARNED, 200), (Taught.HELD, 200), (Taught.KNOWN, 208)]
)
async def test_what_is_known_already_is_no_error(
    answer: Taught, status: int, tmp_path: Path
) -> None:
    async with running(address=f"unix:{tmp_path}/s", teacher=FakeTeacher(answer)) as here:
        assert (await taught(here, "/learnspam"))[0] == status


async def test_a_lesson_that_can_not_be_kept_may_come_again(tmp_path: Path) -> None:
    teacher = FakeTeacher(fault=StorageUnavailable("secret host"))
    async with running(address=f"unix:{tmp_path}/s", teacher=teacher) as here:
        assert await taught(here, "/learnspam") == (503, "nothing was learned, try again later")


async def test_an_empty_lesson_is_refused(tmp_path: Path) -> None:
    async with running(address=f"unix:{tmp_path}/s") as here:
        assert (await here.post("/learnspam", b"")).status == 400


async def test_a_large_lesson_is_learned_whole(tmp_path: Path) -> None:
    mail = MAIL + b"line\r\n" * 100_000
    async with running(address=f"unix:{tmp_path}/s", spool_above_bytes=1000) as here:
        assert (await here.post("/learnspam", mail)).status == 200
    assert here.teacher.learned[0][0] == mail


@pytest.mark.parametrize("path", ["/fuzzyadd", "/fuzzydel"])
async def test_fuzzy_hashes_are_done_without_being_there(path: str, tmp_path: Path) -> None:
    async with running(address=f"unix:{tmp_path}/s") as here:
        answer = await here.post(path, MAIL, ["Flag: 11", "Weight: 10"])
    assert (answer.status, answer.json) == (200, {"success": True})
    assert not here.teacher.learned
