"""CSS variables: `--name: value` and `var(--name, instead)` (CSS Custom Properties 1)."""

from spamd.message.css.declarations import Value, said

Variables = tuple[tuple[str, str], ...]
_VARIABLES_MAX = 100
_VALUE_CHARS = 400


def says_variables(said_of: dict[str, Value]) -> bool:
    """Tell whether something is said of variables, or by them."""
    for name, value in said_of.items():  # a loop: a generator takes three times as long
        if name[:2] == "--" or (isinstance(value, str) and "var(" in value):
            return True
    return False


def with_variables(
    above: tuple[tuple[str, str], ...], said_of: dict[str, Value]
) -> tuple[tuple[tuple[str, str], ...], dict[str, Value]]:
    """Return the variables inside an element, and what is said of it with them in their places."""
    variables = dict(above)
    for name, value in said_of.items():
        if name.startswith("--") and isinstance(value, str) and len(variables) < _VARIABLES_MAX:
            variables[name] = _filled(value, variables)
    found: dict[str, Value] = {}
    for name, value in said_of.items():
        if name.startswith("--"):
            continue
        if isinstance(value, str) and "var(" in value:
            found |= dict(said(name, _filled(value, variables).strip()))
        else:
            found[name] = value
    return tuple(variables.items()), found


def _filled(value: str, variables: dict[str, str]) -> str:
    """Return a value with its variables, or what stands for missing ones, in their places."""
    for _ in range(8):
        start = value.rfind("var(")
        if start < 0:
            break
        end = value.find(")", start)
        end = len(value) if end < 0 else end
        name, _, instead = value[start + 4 : end].partition(",")
        value = value[:start] + variables.get(name.strip(), instead.strip()) + value[end + 1 :]
        value = value[:_VALUE_CHARS]
    return value
