"""For whom a mail is judged: a person, and what is known of their own.

A recipient without any of that is judged as the site, and costs nothing.
"""

from dataclasses import dataclass

from spamd.bayes.wishes import NO_WISHES, Wishes


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Whose filter judges.

    user      canonical name, such as "anna@example.org"; "" means the site
    wishes    what they, else their domain, wish to be done with spam
    missing   what of their own could not be had in time, in one clause for the reason; "" nothing
    """

    user: str = ""
    wishes: Wishes = NO_WISHES
    missing: str = ""

    @property
    def differs(self) -> bool:
        """Tell whether anything of it can make a verdict other than the site's."""
        return bool(self.missing) or self.wishes != NO_WISHES


SITE = Person()
