"""Secrets in texts that are shown: URLs may hold a password before their host or in their query.

    postgresql://spamd:p@ss/word@db/spamd?password=x  →  postgresql://spamd:********@db/spamd?password=********

What stands between the first colon and the last @ counts as the password: rather too much is hidden
than too little.
"""

import re

HIDDEN = "********"

_PASSWORD = re.compile(r"""(?<=://)([^:\s"']*+):[^\s"']*@""")
_IN_QUERY = re.compile(
    r"""([?&][^=&\s"']*(?:pass|pwd|secret|token|key)[^=&\s"']*=)[^&\s"']+""", re.IGNORECASE
)


def masked_urls(text: str) -> str:
    """Return a text with the passwords of the URLs in it hidden."""
    if "://" not in text:
        return text
    return _IN_QUERY.sub(rf"\1{HIDDEN}", _PASSWORD.sub(rf"\1:{HIDDEN}@", text))
