"""For whom a mail is judged: a person, and what is known of their own.

A recipient without any of that is judged as the site, and costs nothing.
"""

from dataclasses import dataclass

from spamd.bayes.own import Layer, OwnWord, Trait, sketch
from spamd.bayes.wishes import NO_WISHES, Wishes
from spamd.message.features import Features
from spamd.message.tokens.origin import origin


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Whose filter judges.

    user      canonical name, such as "anna@example.org"; "" means the site
    wishes    what they, else their domain, wish to be done with spam
    layer     what was learned from them alone, None: nothing
    missing   what of their own could not be had in time, in one clause for the reason; "" nothing
    """

    user: str = ""
    wishes: Wishes = NO_WISHES
    layer: Layer | None = None
    missing: str = ""

    @property
    def differs(self) -> bool:
        """Tell whether it makes any verdict other than the site's; a layer does some only."""
        return bool(self.missing) or self.wishes != NO_WISHES


SITE = Person()


def trait(features: Features) -> Trait:
    """Return what a mail is held against a user's lessons by."""
    proof = features.proof
    return Trait(
        sketch=sketch(features.sample),
        origin=origin(features.texts.words),
        proven=bool(proof.by) and not proof.list_id,
    )


def own_word(person: Person, features: Features) -> OwnWord | None:
    """Return what a person's own lessons say of a mail, None when nothing."""
    return None if person.layer is None else person.layer.word_on(trait(features))
