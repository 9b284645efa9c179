"""Who may see and change what: at this machine, with a password, behind a proxy, with a token."""

import asyncio
import json
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from spamd.admin.ports import StoredSession
from spamd.admin.roles import Role
from spamd.errors import ConfigError, StorageUnavailable
from spamd.listeners.web.access.headers import SECURITY
from spamd.listeners.web.access.passwords import PasswordHash
from spamd.listeners.web.access.tokens import Token
from spamd.listeners.web.access.tries import TRIES, WINDOW_S
from tests.docs.blocks import block
from tests.fakes import FakeClock, FakeSessions
from tests.listeners.web.clients import Answer, Running, office_of, running

FILES = block("docs/access.md", '[web]\nlisten = ["127.0.0.1:11333"]')
BEHIND = block("docs/access.md", "[web]\ntrusted_proxies")
COMMANDS = block("docs/access.md", "spamd password >/etc")

SECRET = "correct horse"
HERE = "Host: localhost:11333"
ELSEWHERE = "Host: spamd.example"
OURS = "Sec-Fetch-Site: same-origin"
PATH = "/api/session"


def kept(folder: Path, name: str, password: str) -> str:
    """Write a file that lets a password in without much work."""
    line = PasswordHash.of(password.encode(), b"0123456789abcdef", log_n=10, p=1)
    (folder / name).write_text(f"{line}\n")
    return str(folder / name)


def written(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def rewrite(path: str, text: str) -> None:
    Path(path).write_text(text)


@asynccontextmanager
async def guarded(folder: Path, clock: FakeClock | None = None) -> AsyncIterator[Running]:
    """Run a listener with a password for each role."""
    web = {
        "password_file": kept(folder, "teacher", SECRET),
        "reader_password_file": kept(folder, "reader", "only looking"),
    }
    async with running(web=web, clock=clock) as here:
        yield here


async def log_in(
    here: Running, password: str = SECRET, fields: Iterable[str] = (ELSEWHERE, OURS)
) -> Answer:
    return await here.post(PATH, json.dumps({"password": password}).encode(), fields)


def cookie_of(answer: Answer) -> str:
    return f"Cookie: {answer.fields['set-cookie'].partition(';')[0]}"


async def who(here: Running, *fields: str) -> tuple[int, Mapping[str, Any]]:
    answer = await here.get(PATH, fields)
    return answer.status, answer.json


async def test_without_a_password_everybody_at_this_machine_teaches() -> None:
    async with running() as here:
        status, found = await who(here, HERE)
    assert (status, found["role"], found["way"]) == (200, "teacher", "local")


@pytest.mark.parametrize("host", ["127.0.0.1:11333", "[::1]:11333", "spamd.localhost"])
async def test_this_machine_has_several_names(host: str) -> None:
    async with running() as here:
        assert (await who(here, f"Host: {host}"))[0] == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "10.0.0.1", "[::", ""])
async def test_a_name_that_a_stranger_points_at_this_machine_opens_nothing(host: str) -> None:
    async with running() as here:
        assert (await who(here, f"Host: {host}"))[0] == 403


@pytest.mark.parametrize(
    "field", ["X-Forwarded-For: 127.0.0.1", "Forwarded: for=::1", "Via: 1.1 x", "X-Real-IP: ::1"]
)
async def test_what_a_proxy_passes_on_is_not_of_this_machine(field: str) -> None:
    async with running() as here:
        assert (await who(here, HERE, field))[0] == 403


@pytest.mark.parametrize(("role", "status"), [("reader", 200), ("nobody", 403)])
async def test_the_role_of_this_machine_can_be_less(role: str, status: int) -> None:
    async with running(web={"local_role": Role(role)}) as here:
        found, answer = await who(here, HERE)
    assert found == status
    assert answer.get("role", "nobody") == role


async def test_a_unix_socket_teaches_but_no_browser_by_it(tmp_path: Path) -> None:
    async with running(address=f"unix:{tmp_path}/s") as here:
        assert (await who(here))[1]["name"] == "unix"
        assert (await who(here, "Cookie: a=b"))[0] == 403
        assert (await who(here, "X-Forwarded-For: 192.0.2.1"))[0] == 403


async def test_with_a_password_this_machine_has_to_log_in_too(tmp_path: Path) -> None:
    async with guarded(tmp_path) as here:
        answer = await here.get(PATH, [HERE])
    assert (answer.status, answer.fields["www-authenticate"]) == (401, "Bearer")


@pytest.mark.parametrize(("password", "role"), [(SECRET, "teacher"), ("only looking", "reader")])
async def test_a_session_has_the_role_of_its_password(
    password: str, role: str, tmp_path: Path
) -> None:
    async with guarded(tmp_path) as here:
        answer = await log_in(here, password)
        assert answer.status == 201
        status, found = await who(here, ELSEWHERE, cookie_of(answer))
    assert (status, found["role"], found["way"]) == (200, role, "session")


async def test_the_cookie_is_for_this_host_https_and_no_script(tmp_path: Path) -> None:
    async with guarded(tmp_path) as here:
        field = (await log_in(here)).fields["set-cookie"]
    name, *rest = field.split("; ")
    assert name.startswith("__Host-spamd=")
    assert set(rest) == {"Path=/", "Max-Age=604800", "Secure", "HttpOnly", "SameSite=Strict"}


async def test_what_is_kept_of_a_session_opens_none(tmp_path: Path) -> None:
    sessions = FakeSessions()
    web = {"password_file": kept(tmp_path, "teacher", SECRET)}
    opened = office_of(sessions)
    async with running(web=web, administration=opened) as here:
        secret = cookie_of(await log_in(here)).rpartition("=")[2]
        (digest,) = sessions.rows
        assert secret.encode() not in digest
        for guess in (digest.hex(), digest.hex()[:43], "", "é" * 43, "A" * 43):
            cookie = f"Cookie: __Host-spamd={guess}".encode().decode("latin_1")
            assert (await who(here, ELSEWHERE, cookie))[0] == 401


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ([ELSEWHERE, OURS], 201),
        ([ELSEWHERE, "Origin: https://spamd.example"], 201),
        ([HERE, OURS, "Origin: http://localhost:11333"], 201),
        ([ELSEWHERE], 403),
        ([ELSEWHERE, "Sec-Fetch-Site: cross-site", "Origin: https://spamd.example"], 403),
        ([ELSEWHERE, "Sec-Fetch-Site: same-site"], 403),
        ([ELSEWHERE, "Origin: https://evil.example"], 403),
        ([ELSEWHERE, "Origin: null"], 403),
        ([ELSEWHERE, "Origin: http://spamd.example"], 403),  # the password can be read on its way
    ],
)
async def test_one_logs_in_from_our_own_page_and_not_in_the_clear(
    fields: list[str], status: int, tmp_path: Path
) -> None:
    async with guarded(tmp_path) as here:
        assert (await log_in(here, fields=fields)).status == status


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"password": 1}', b'"x"', b"\xff", b"[" * 4096, b"x" * 5000]
)
async def test_a_login_that_is_none_is_refused(body: bytes, tmp_path: Path) -> None:
    async with guarded(tmp_path) as here:
        assert (await here.post(PATH, body, [ELSEWHERE, OURS])).status in {400, 413}


async def test_guessing_passwords_and_tokens_is_slowed(tmp_path: Path) -> None:
    clock = FakeClock()
    token = "Authorization: Bearer guess"
    async with guarded(tmp_path, clock) as here:
        half = TRIES // 2
        statuses = [(await log_in(here, f"guess {number}")).status for number in range(half)]
        statuses += [(await who(here, ELSEWHERE, token))[0] for _ in range(TRIES - half)]
        assert set(statuses) == {401}
        answer = await log_in(here)
        assert (answer.status, answer.fields["retry-after"]) == (429, "60")
        assert (await who(here, ELSEWHERE, token))[0] == 429
        clock.seconds += WINDOW_S + 1
        assert (await log_in(here)).status == 201
    failed = [details for event, details in here.observer.events if event == "login.failed"]
    assert [each["way"] for each in failed[:TRIES]] == ["password"] * half + ["token"] * (
        TRIES - half
    )
    assert failed[0]["address"] == "127.0.0.1"


async def test_a_session_ends_unused_and_at_last_whatever_happens(tmp_path: Path) -> None:
    clock, hour = FakeClock(), 3600.0
    async with guarded(tmp_path, clock) as here:
        first = cookie_of(await log_in(here))
        clock.seconds += 12 * hour + 1
        assert (await who(here, ELSEWHERE, first))[0] == 401
        second = cookie_of(await log_in(here))
        for _ in range(15):  # used each 11 hours
            clock.seconds += 11 * hour
            assert (await who(here, ELSEWHERE, second))[0] == 200
        clock.seconds += 4 * hour
        assert (await who(here, ELSEWHERE, second))[0] == 401


async def test_who_logs_out_is_out_everywhere(tmp_path: Path) -> None:
    async with guarded(tmp_path) as here:
        cookie = cookie_of(await log_in(here))
        csrf = (await who(here, ELSEWHERE, cookie))[1]["csrf"]
        done = await here.delete(PATH, [ELSEWHERE, OURS, cookie, f"X-CSRF-Token: {csrf}"])
        assert (done.status, done.fields["set-cookie"].split("; ")[2]) == (204, "Max-Age=0")
        assert (await who(here, ELSEWHERE, cookie))[0] == 401


async def test_another_password_ends_the_sessions_of_the_old_one(tmp_path: Path) -> None:
    async with guarded(tmp_path) as here:
        teacher = cookie_of(await log_in(here))
        reader = cookie_of(await log_in(here, "only looking"))
        kept(tmp_path, "teacher", "another horse")
        here.listener.reload()
        assert (await who(here, ELSEWHERE, teacher))[0] == 401
        assert (await who(here, ELSEWHERE, reader))[0] == 200


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ([OURS, "X-CSRF-Token: {}"], 204),
        (["Origin: https://spamd.example", "X-CSRF-Token: {}"], 204),
        ([OURS], 403),
        ([OURS, "X-CSRF-Token: 0{}"], 403),
        ([OURS, "X-CSRF-Token: é"], 403),
        (["X-CSRF-Token: {}"], 403),
        (["Sec-Fetch-Site: cross-site", "X-CSRF-Token: {}"], 403),
        (["Origin: https://evil.example", "X-CSRF-Token: {}"], 403),
    ],
)
async def test_what_changes_something_comes_from_a_page_of_ours(
    fields: list[str], status: int, tmp_path: Path
) -> None:
    async with guarded(tmp_path) as here:
        cookie = cookie_of(await log_in(here))
        csrf = (await who(here, ELSEWHERE, cookie))[1]["csrf"]
        sent = [field.format(csrf).encode().decode("latin_1") for field in fields]
        assert (await here.delete(PATH, [ELSEWHERE, cookie, *sent])).status == status


async def test_what_a_form_carries_is_of_one_session(tmp_path: Path) -> None:
    async with guarded(tmp_path) as here:
        cookies = [cookie_of(await log_in(here)) for _ in range(2)]
        forms = {(await who(here, ELSEWHERE, cookie))[1]["csrf"] for cookie in cookies}
        assert len(forms) == 2


async def test_a_page_of_another_site_sees_nothing_but_links_to_us_work(tmp_path: Path) -> None:
    cross = [ELSEWHERE, "Sec-Fetch-Site: cross-site"]
    async with guarded(tmp_path) as here:
        cookie = cookie_of(await log_in(here))
        assert (await who(here, *cross, cookie, "Sec-Fetch-Mode: no-cors"))[0] == 403
        frame = ["Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"]
        assert (await who(here, *cross, cookie, *frame))[0] == 403
        link = ["Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"]
        assert (await who(here, *cross, cookie, *link))[0] == 200


@asynccontextmanager
async def behind_a_proxy(networks: tuple[str, ...], **web: Any) -> AsyncIterator[Running]:
    section = {"trusted_proxies": networks, "user_header": "Remote-User", "teachers": ("ann",)}
    async with running(web={**section, **web}) as here:
        yield here


async def test_a_trusted_proxy_names_who_has_logged_in_there() -> None:
    async with behind_a_proxy(("127.0.0.0/8",)) as here:
        _, ann = await who(here, ELSEWHERE, "Remote-User: ann", "X-Forwarded-For: 192.0.2.1")
        _, bob = await who(here, ELSEWHERE, "Remote-User: bob")
        assert (ann["name"], ann["role"], ann["way"]) == ("ann", "teacher", "proxy")
        assert (bob["name"], bob["role"]) == ("bob", "reader")
        assert ann["csrf"] != bob["csrf"]
        assert (await who(here, ELSEWHERE, "Remote-User: "))[0] == 401
        assert (await who(here, ELSEWHERE, "Remote-User: bob", "Remote-User: ann"))[0] == 401
        assert (await who(here, HERE))[0] == 401  # nor does this machine get in past it


async def test_nobody_else_gives_himself_a_name() -> None:
    async with behind_a_proxy(("192.0.2.0/24", "unix")) as here:
        assert (await who(here, HERE, "Remote-User: ann"))[0] == 401


async def test_at_a_unix_socket_a_proxy_is_believed_if_that_is_said(tmp_path: Path) -> None:
    async with running(
        address=f"unix:{tmp_path}/s",
        web={"trusted_proxies": ("unix",), "user_header": "Remote-User"},
    ) as here:
        _, found = await who(here, "Remote-User: ann", "Cookie: a=b")
        assert (found["name"], found["role"]) == ("ann", "reader")
        assert (await who(here, "Cookie: a=b"))[0] == 401


async def test_a_token_lets_a_program_in_from_anywhere_as_what_it_is(tmp_path: Path) -> None:
    lines = [str(Token.of("t0k3n", "graphs", Role.READER)), "# a remark", ""]
    file = written(tmp_path, "tokens", "\n".join(lines))
    async with running(web={"token_file": file}) as here:
        status, found = await who(here, ELSEWHERE, "Authorization: Bearer t0k3n")
        assert (status, found["name"], found["role"]) == (200, "graphs", "reader")
        assert (await here.delete(PATH, ["Authorization: bearer t0k3n"])).status == 204
        wrong = await here.get(PATH, [ELSEWHERE, "Authorization: Bearer other"])
        assert "invalid_token" in wrong.fields["www-authenticate"]
        evil = [ELSEWHERE, "Authorization: Bearer t0k3n", "Origin: https://evil.example"]
        assert (await who(here, *evil))[0] == 403
        rewrite(file, "graphs king 00\n")
        with pytest.raises(ConfigError, match=r"web\.token_file: .*spamd password --token"):
            here.listener.reload()
        assert (await who(here, ELSEWHERE, "Authorization: Bearer t0k3n"))[0] == 200
        rewrite(file, "")
        here.listener.reload()
        assert (await who(here, ELSEWHERE, "Authorization: Bearer t0k3n"))[0] == 401


async def test_every_answer_forbids_the_browser_what_is_not_ours() -> None:
    async with running() as here:
        for answer in (
            await here.get(PATH, [HERE]),
            await here.get(PATH, [ELSEWHERE]),
            await here.get("/api/nothing", [HERE]),
            await here.post(PATH, b"{}", [HERE]),
        ):
            assert {name: answer.fields[name] for name in SECURITY} == dict(SECURITY)


class AwaySessions(FakeSessions):
    """A database that is away."""

    async def open(self, session: StoredSession, **_: object) -> None:
        raise StorageUnavailable("away")

    async def find(self, digest: bytes) -> StoredSession | None:
        raise StorageUnavailable("away")


async def test_while_the_database_is_away_nobody_logs_in_and_tokens_still_do(
    tmp_path: Path,
) -> None:
    web = {
        "password_file": kept(tmp_path, "teacher", SECRET),
        "token_file": written(tmp_path, "tokens", str(Token.of("t0k3n", "x", Role.TEACHER))),
    }
    opened = office_of(AwaySessions())
    async with running(web=web, administration=opened) as here:
        assert (await log_in(here)).status == 503
        assert (await who(here, ELSEWHERE, f"Cookie: __Host-spamd={'A' * 43}"))[0] == 503
        assert (await who(here, ELSEWHERE, "Authorization: Bearer t0k3n"))[0] == 200


def token_of_the_printed_commands(folder: Path) -> str:
    """Run them with files in a folder; return the token that they show."""
    *commands, reload = COMMANDS.splitlines()
    assert reload == "systemctl reload spamd"
    passwords, shown = iter((SECRET, "only looking")), ""
    for command in commands:
        text = command.replace("/etc/spamd", str(folder))
        done = subprocess.run(
            text.replace("spamd password", f"{sys.executable} -m spamd password"),
            shell=True,
            input="" if "--token" in command else next(passwords),
            capture_output=True,
            text=True,
            check=True,
        )
        shown = done.stderr
    return shown.split()[-1]


async def test_the_printed_commands_and_settings_let_in_whom_they_name(tmp_path: Path) -> None:
    token = await asyncio.to_thread(token_of_the_printed_commands, tmp_path)
    web = tomllib.loads(FILES.replace("/etc/spamd", str(tmp_path)))["web"]
    del web["listen"]
    async with running(web=web) as here:
        assert (await log_in(here)).status == 201
        assert (await log_in(here, "only looking")).status == 201
        _, found = await who(here, ELSEWHERE, f"Authorization: Bearer {token}")
    assert (found["name"], found["role"]) == ("graphs", "reader")


async def test_the_printed_settings_let_a_proxy_say_who_has_logged_in() -> None:
    web = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in tomllib.loads(BEHIND)["web"].items()
    }
    async with running(web=web) as here:
        assert (await who(here, ELSEWHERE, "Remote-User: ann"))[1]["role"] == "teacher"
