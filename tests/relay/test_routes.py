"""Several next hops: fallback, and by recipient domain."""

from tests.relay.peers import QUEUED, Do, ScriptedNextHop, relay
from tests.servers.base import free_port


async def test_the_fallback_takes_over_when_the_first_is_down() -> None:
    async with ScriptedNextHop() as second:
        url = f"smtp://127.0.0.1:{free_port()}"
        async with relay(url, next_hop={"fallback": (second.url,)}) as running:
            assert await (await running.talk()).deliver() == QUEUED
            assert len(second.messages) == 1


async def test_the_fallback_takes_over_when_the_first_refuses_to_serve() -> None:
    first = ScriptedNextHop(answers={"": b"421 4.3.2 not now\r\n"})
    async with (
        first,
        ScriptedNextHop() as second,
        relay(first.url, next_hop={"fallback": (second.url,)}) as running,
    ):
        assert await (await running.talk()).deliver() == QUEUED


async def test_the_first_is_used_while_it_answers() -> None:
    async with (
        ScriptedNextHop() as first,
        ScriptedNextHop() as second,
        relay(first.url, next_hop={"fallback": (second.url,)}) as running,
    ):
        assert await (await running.talk()).deliver() == QUEUED
        assert (len(first.messages), second.connections) == (1, 0)


async def test_no_next_hop_at_all_is_421() -> None:
    urls = [f"smtp://127.0.0.1:{free_port()}" for _ in range(2)]
    async with relay(urls[0], next_hop={"fallback": (urls[1],)}) as running:
        assert (await (await running.talk()).say(b"EHLO c.test")).startswith(b"421 4.4.1 ")


async def test_mail_goes_where_its_recipient_belongs() -> None:
    async with ScriptedNextHop() as default, ScriptedNextHop(lmtp=True) as other:
        routes = {"other.test": other.url, ".wide.test": other.url}
        async with relay(default.url, next_hop={"routes": routes}) as running:
            talk = await running.talk()
            assert await talk.deliver(recipients=(b"<b@Other.TEST>",)) == QUEUED
            assert await talk.deliver(hello=b"", recipients=(b"<b@deep.wide.test>",)) == QUEUED
            assert await talk.deliver(hello=b"", recipients=(b"<b@wide.test>",)) == QUEUED
            assert [found for _, found in other.envelopes] == [
                [b"TO:<b@Other.TEST>"],
                [b"TO:<b@deep.wide.test>"],
            ]
            assert [found for _, found in default.envelopes] == [[b"TO:<b@wide.test>"]]
            assert other.connections == 1
            assert other.commands[0] == b"LHLO client.test"


async def test_recipients_of_two_next_hops_need_two_transactions() -> None:
    async with (
        ScriptedNextHop() as default,
        ScriptedNextHop() as other,
        relay(default.url, next_hop={"routes": {"other.test": other.url}}) as running,
    ):
        talk = await running.talk()
        await talk.say(b"EHLO c.test", b"MAIL FROM:<a@x.test>", b"RCPT TO:<b@other.test>")
        assert (await talk.say(b"RCPT TO:<b@y.test>")).startswith(b"452 4.5.3 ")
        assert (await talk.say(b"RCPT TO:<c@other.test>")).startswith(b"250 ")
        await talk.say(b"DATA")
        await talk.send(b"Subject: x\r\n\r\n.\r\n")
        assert await talk.reply() == QUEUED
        assert await talk.deliver(hello=b"") == QUEUED
        assert (len(other.messages), len(default.messages)) == (1, 1)


async def test_a_sender_refused_elsewhere_is_refused_at_the_recipient() -> None:
    other = ScriptedNextHop(answers={"MAIL": b"550 5.1.8 not you\r\n"})
    async with (
        ScriptedNextHop() as default,
        other,
        relay(default.url, next_hop={"routes": {"other.test": other.url}}) as running,
    ):
        talk = await running.talk()
        await talk.say(b"EHLO c.test", b"MAIL FROM:<a@x.test>")
        assert await talk.say(b"RCPT TO:<b@other.test>") == b"550 5.1.8 not you\r\n"
        assert (await talk.say(b"RCPT TO:<b@y.test>")).startswith(b"250 ")


async def test_a_route_that_is_down_defers_its_recipients_only() -> None:
    async with ScriptedNextHop() as default:
        routes = {"other.test": f"smtp://127.0.0.1:{free_port()}"}
        async with relay(default.url, next_hop={"routes": routes}) as running:
            talk = await running.talk()
            await talk.say(b"EHLO c.test", b"MAIL FROM:<a@x.test>")
            assert (await talk.say(b"RCPT TO:<b@other.test>")).startswith(b"451 4.4.1 ")
            assert (await talk.say(b"RCPT TO:<b@y.test>")).startswith(b"250 ")


async def test_a_route_that_is_lost_in_a_transaction_is_421_and_opened_anew_later() -> None:
    other = ScriptedNextHop(answers={"RCPT": [Do.CLOSE, b"250 ok\r\n"]})
    async with (
        ScriptedNextHop() as default,
        other,
        relay(default.url, next_hop={"routes": {"other.test": other.url}}) as running,
    ):
        talk = await running.talk()
        await talk.say(b"EHLO c.test", b"MAIL FROM:<a@x.test>")
        assert (await talk.say(b"RCPT TO:<b@other.test>")).startswith(b"421 4.4.2 ")
        talk = await running.talk()
        assert await talk.deliver(recipients=(b"<b@other.test>",)) == QUEUED
