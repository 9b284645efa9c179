"""Options that many commands have."""

from typing import Annotated

import typer

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
JsonLinesOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON object for each mail.")
]
