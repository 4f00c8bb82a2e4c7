"""Hashes of the code that a plan runs besides the engine: FMUs and Python blocks.

A log names the hashes of the run; a replay compares them with those of the diagram that the user
gives. Code is never loaded by a name in a log.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import textwrap
from collections.abc import Mapping
from typing import Any

from ....errors import BiellaError
from ...compile.plan._plan import Plan
from ...devices._registry import is_own_driver


def hash_code(plan: Plan) -> dict[str, str]:
    """Return the SHA-256 of the code of each FMU and Python block, by path.

    That of a Python block is of the syntax trees of its methods or its function: comments do not
    count.
    It is empty if there is no source, as at a prompt.
    """
    blocks: dict[int, Any] = {**plan.python_blocks, **plan.external}
    return {
        plan.blocks[number].path: _hash_block(blocks[number])
        for number in sorted(blocks)
    }  # fmt: skip


def _hash_block(block: Any) -> str:
    if digest := getattr(block, "code_digest", ""):
        return str(digest)
    function = getattr(block, "function", None)
    functions = [function] if inspect.isfunction(function) else _list_methods(type(block))
    found = hashlib.sha256()
    try:
        for each in functions:
            tree = ast.parse(textwrap.dedent(inspect.getsource(each)))
            found.update(ast.dump(tree).encode())
    except (OSError, TypeError, SyntaxError):
        return ""
    return found.hexdigest() if functions else ""


def _list_methods(kind: type) -> list[Any]:
    """Return the functions of a class and its bases, without those of biella."""
    package = __name__.partition(".")[0]
    return [
        member
        for base in kind.__mro__
        if base.__module__.partition(".")[0] not in (package, "builtins", "abc")
        for _, member in sorted(vars(base).items())
        if inspect.isfunction(member)
    ]


def check_code(plan: Plan, recorded: Mapping[str, str]) -> None:
    """Raise an error if the code of a plan is not that of the run.

    Parameters
    ----------
    recorded
        What `hash_code` returned for the run.
    """
    changed = [
        f"`{path}` ran code with SHA-256 {recorded[path][:16]}…, and has {digest[:16]}…"
        for path, digest in hash_code(plan).items()
        if recorded.get(path) and digest and recorded[path] != digest
    ]
    if changed:
        raise BiellaError(
            f"the code of the run has changed, so that its log cannot be replayed bit for bit: "
            f"{'; '.join(changed)}. Give the FMU or the block that was run, or replay with "
            f"allow_changed_code=True (--allow-changed-code)."
        )


def check_table(table: Mapping[str, Any]) -> None:
    """Raise an error if the binding in a log names code: FMUs, or drivers of other packages."""
    named = [f"the FMU `{name}`" for name in _find_fmus(table.get("blocks"))]
    devices = table.get("devices")
    for entry in devices.values() if isinstance(devices, Mapping) else ():
        driver = entry.get("driver") if isinstance(entry, Mapping) else None
        if isinstance(driver, str) and not is_own_driver(driver):
            named.append(f"the driver `{driver}`")
    if named:
        raise BiellaError(
            f"the binding in the log names {', '.join(dict.fromkeys(named))}. Code is not loaded "
            f"by a name in a log: pass the binding, bind='rig.toml' (--bind)."
        )


def _find_fmus(item: Any) -> list[str]:
    if not isinstance(item, Mapping):
        return []
    own = [item["fmu"]] if isinstance(item.get("fmu"), str) else []
    return own + [name for inner in item.values() for name in _find_fmus(inner)]
