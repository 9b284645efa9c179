"""What messages have in common: why something failed in words, strangers' text, secrets hidden.

URLs may hold a password before their host or in their query:

    postgresql://me:p@ss/word@host/db?password=x  →  postgresql://me:********@host/db?password=********

What stands between the first colon and the last @ counts as the password: rather too much is hidden
than too little.
"""

import re
import unicodedata
from errno import errorcode
from os import strerror

HIDDEN = "********"

_PASSWORD = re.compile(r"""(?<=://)([^:\s"']*+):[^\s"']*@""")
_IN_QUERY = re.compile(
    r"""([?&][^=&\s"']*(?:pass|pwd|secret|token|key)[^=&\s"']*=)[^&\s"']+""", re.IGNORECASE
)

TLS_REASONS = {
    "CERTIFICATE_VERIFY_FAILED": "the certificate of the other side is not accepted",
    "KEY_VALUES_MISMATCH": "the key does not belong to the certificate",
    "NO_CERTIFICATE_OR_CRL_FOUND": "the file holds no certificate",
    "NO_START_LINE": "the file holds no certificate",
    "PEM_LIB": "the file holds no certificate with its key in PEM format",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "no TLS version or cipher in common",
    "UNEXPECTED_EOF_WHILE_READING": "the other side closed the connection",
    "UNSUPPORTED_PROTOCOL": "no TLS version in common",
    "WRONG_VERSION_NUMBER": "the other side does not speak TLS there",
}
"""OpenSSL's names of what people meet with."""


UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Control and format characters (CR, LF, ESC, text direction), surrogates, line separators."""


def masked_urls(text: str) -> str:
    """Return a text with the passwords of the URLs in it hidden."""
    if "://" not in text:
        return text
    return _IN_QUERY.sub(rf"\1{HIDDEN}", _PASSWORD.sub(rf"\1:{HIDDEN}@", text))


def reason(error: BaseException) -> str:
    """Return why something failed, in words: no numbers, no names of libraries or classes."""
    match error:
        case UnicodeError():
            return "not UTF-8 text"
        case OSError() if isinstance(of_openssl := getattr(error, "reason", None), str):
            words = TLS_REASONS.get(of_openssl.upper().replace(" ", "_"))
            words = words or f"TLS failed: {of_openssl.replace('_', ' ').lower()}"
            verified = getattr(error, "verify_message", "")
            return f"{words}: {verified}" if verified else words
        case OSError(errno=int(number), strerror=str(text)) if number in errorcode:
            return strerror(number) if text.startswith("Connect call failed") else text
        case TimeoutError():
            return "no answer in time"
        case OSError() if "Multiple exceptions" in str(error):  # of asyncio, one for each address
            return "none of the host's addresses answers"
        case OSError():
            return error.strerror or str(error)
        case _:
            return str(error)


def printable(text: str, limit: int = 500) -> str:
    r"""Return text with each character that could steer a terminal as its escape (`\x1b`)."""
    if text.isascii() and text.isprintable() and len(text) <= limit:
        return text
    shown = "".join(
        char.encode("unicode_escape").decode("ascii")
        if unicodedata.category(char) in UNPRINTABLE
        else char
        for char in text[:limit]
    )
    return shown + "…" if len(text) > limit else shown


def counted(number: int, noun: str) -> str:
    """Return "1 message", "1,234 messages"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
