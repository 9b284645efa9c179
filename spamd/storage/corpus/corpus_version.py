"""Where the corpus stands: its row in the database, the totals and the revision they belong to."""

from dataclasses import dataclass

from spamd.bayes.counts import Totals


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusVersion:
    """Where the corpus stands: `revision` of `generation`, with these totals.

    grams_revision   when the gram table was written whole, 0: never
    """

    revision: int
    generation: int
    totals: Totals
    grams_revision: int

    @property
    def at(self) -> tuple[int, int]:
        """Generation and revision: equal only for the same content."""
        return self.generation, self.revision
