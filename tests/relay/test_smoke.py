from tests.relay.peers import LETTER, ScriptedNextHop, relay


async def test_a_mail_goes_through_with_fields_on_top() -> None:
    async with ScriptedNextHop() as hop, relay(hop.url) as running:
        talk = await running.talk()
        assert await talk.deliver() == b"250 2.0.0 queued as ABC123\r\n"
        print(hop.commands, hop.messages, running.observer.faults)
        assert hop.messages[0].endswith(LETTER)
        assert await talk.deliver(hello=b"") == b"250 2.0.0 queued as ABC123\r\n"
        assert (await talk.say(b"QUIT")).startswith(b"221")
        assert hop.connections == 1
