from hypothesis import given
from hypothesis import strategies as st

from spamd.message.features import extract
from spamd.message.identity import DIGEST_BYTES, genuine, new_id

KEY = b"k" * 32


@given(st.binary(min_size=4, max_size=16), st.binary(min_size=1, max_size=64))
def test_an_id_is_genuine_under_its_own_key_only(random: bytes, key: bytes) -> None:
    made = new_id(random, key)
    assert genuine(made, key)
    assert not genuine(made, bytes([key[0] ^ 1]) + key[1:])


@given(st.text(max_size=60))
def test_no_other_text_is_genuine(text: str) -> None:
    assert not genuine(text, KEY)


def test_an_id_survives_white_space_and_case() -> None:
    assert genuine(f"  {new_id(b'12345678', KEY).upper()} ", KEY)


def test_an_id_with_one_sign_changed_is_no_more_genuine() -> None:
    made = new_id(b"12345678", KEY)
    for at, sign in enumerate(made):
        changed = made[:at] + ("0" if sign != "0" else "1") + made[at + 1 :]
        assert not genuine(changed, KEY)


def test_the_digest_has_a_fixed_length_and_depends_on_content() -> None:
    one, other = extract(b"Subject: a\n\nx").digest, extract(b"Subject: a\n\ny").digest
    assert len(one) == len(other) == DIGEST_BYTES
    assert one != other


def test_moving_text_from_one_part_to_the_next_changes_the_digest() -> None:
    head = b"Content-Type: multipart/mixed; boundary=b\n\n"
    one = head + b"--b\n\nab\n--b\n\nc\n--b--\n"
    other = head + b"--b\n\na\n--b\n\nbc\n--b--\n"
    assert extract(one).digest != extract(other).digest
