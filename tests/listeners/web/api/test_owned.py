"""Lists and wishes by the API."""

from pathlib import Path

from tests.listeners.web.api.asking import api
from tests.listeners.web.api.test_table import check


async def test_entries_are_added_listed_and_removed_and_users_stay_unnamed(tmp_path: Path) -> None:
    async with api(tmp_path) as there:
        document = await there.get("/api/openapi.json")
        body = {"effect": "deny", "name": "Shop.Example"}
        site = await there.ask("POST", "/api/lists", body=body)
        check(document, "/api/lists", site.json, "post")
        assert (site.json["name"], site.json["source"]) == ("shop.example", "api")
        await there.ask("POST", "/api/lists", body={**body, "user": "Anna+x@example.org"})
        found = await there.get("/api/lists", effect="deny")
        check(document, "/api/lists", found)
        assert ([each["owner"] for each in found["entries"]], found["left_out"]) == ([""], 1)
        named = await there.get("/api/lists", user="anna@example.org")
        assert [each["owner"] for each in named["entries"]] == ["anna@example.org"]
        gone = await there.ask("DELETE", "/api/lists", body)
        assert (gone.status, gone.json["left_out"]) == (200, 1)
        assert (await there.ask("DELETE", "/api/lists", body)).status == 404
        wrong = {"effect": "allow", "name": "\x1b[31m\u202e"}
        answer = await there.ask("POST", "/api/lists", body=wrong)
        assert (answer.status, answer.body.isascii()) == (400, True)
        both = await there.ask("GET", "/api/lists", {"user": "a@x.test", "domain": "x.test"})
        assert both.status == 400


async def test_wishes_are_wished_shown_and_taken_back(tmp_path: Path) -> None:
    async with api(tmp_path) as there:
        document = await there.get("/api/openapi.json")
        body = {"domain": "example.org", "tag_from": 1.0, "reject": False}
        wished = await there.ask("PUT", "/api/wishes", body=body)
        check(document, "/api/wishes", wished.json, "put")
        assert wished.json["owner"] == "@example.org"
        assert (wished.json["wishes"]["tag_from"], wished.json["wishes"]["reject"]) == (1.0, False)
        await there.ask("PUT", "/api/wishes", body={"user": "anna@example.org", "tag": False})
        found = await there.get("/api/wishes")
        check(document, "/api/wishes", found)
        assert ([each["owner"] for each in found["wishes"]], found["left_out"]) == (
            ["@example.org"],
            1,
        )
        gone = await there.ask("DELETE", "/api/wishes", {"domain": "example.org"})
        assert gone.json["wishes"]["tag_from"] is None
        nobody = await there.ask("PUT", "/api/wishes", body={"tag": True})
        assert nobody.status == 400
        low = {"domain": "example.org", "tag_from": 0.9, "reject_from": 0.5}
        assert (await there.ask("PUT", "/api/wishes", body=low)).status == 400
