"""A listener over a store that has learned a little, and what a program asks it."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from spamd.admin.roles import Role
from spamd.listeners.web.access.tokens import Token
from tests.admin.office import Office, office
from tests.listeners.web.clients import Answer, Running, answers, request, running

ELSEWHERE = "Host: spamd.example"
TOKENS = {role: f"token of {role}".replace(" ", "-") for role in (Role.READER, Role.TEACHER)}


@dataclass(kw_only=True)
class Api:
    """A program that talks to it."""

    here: Running
    office: Office
    role: Role = Role.TEACHER

    async def ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, object] | None = None,
        *,
        body: object = None,
        mail: bytes | None = None,
        role: Role | None = None,
    ) -> Answer:
        """Send a request with a token, or without one."""
        role = role or self.role
        fields = [ELSEWHERE]
        if role is not Role.NOBODY:
            fields.append(f"Authorization: Bearer {TOKENS[role]}")
        content = mail
        if body is not None:
            content = json.dumps(body).encode()
        if content is not None:
            fields.append(f"Content-Type: {'application/json' if mail is None else MAIL}")
        whole = f"{path}?{urlencode(query)}" if query else path
        raw = await self.here.ask(request(whole, content, fields, method=method))
        (answer,) = answers(raw)
        return answer

    async def get(self, path: str, **query: object) -> Any:
        """Return what is answered."""
        answer = await self.ask("GET", path, query)
        assert answer.status == 200, answer.body
        return answer.json


MAIL = "message/rfc822"


def token_file(folder: Path) -> str:
    """Write a file with a token of each role."""
    lines = [str(Token.of(secret, str(role), role)) for role, secret in TOKENS.items()]
    (folder / "tokens").write_text("\n".join(lines))
    return str(folder / "tokens")


@asynccontextmanager
async def api(folder: Path, *, full: bool = False, learned: int = 12) -> AsyncIterator[Api]:
    """Give a program that may teach."""
    async with (
        office(folder, full=full, learned=learned) as there,
        running(
            administration=there.found,
            web={"token_file": token_file(folder), "local_role": Role.NOBODY},
        ) as here,
    ):
        yield Api(here=here, office=there)
