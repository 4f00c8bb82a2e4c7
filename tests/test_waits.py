"""No test waits for another process or thread without a limit of its own.

The time limit of a test ends the test, not what it has started: a process that waits for another
one would stay, and a helper outside of pytest has no limit at all.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
RUNS = {"run", "call", "check_call", "check_output"}
WAITED_FOR = {
    "Popen": {"wait", "communicate"},
    "Thread": {"join"},
    "Process": {"join"},
    "Event": {"wait"},
    "Barrier": {"wait"},
    "Condition": {"wait"},
    "Queue": {"get"},
    "SimpleQueue": {"get"},
    "socket": {"recv", "recv_into", "recvfrom", "accept"},
}
MAY_WAIT = RUNS.union(*WAITED_FOR.values())


def called(node: ast.expr | None) -> str:
    """Return the last name of what a call calls: ``Popen`` of ``subprocess.Popen(…)``."""
    if not isinstance(node, ast.Call):
        return ""
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def find_waits(text: str) -> list[tuple[int, str]]:
    """Return line and text of each call that may wait without end."""
    tree = ast.parse(text)
    kinds: dict[str, set[str]] = {}  # what names may be, by their text
    for node in ast.walk(tree):
        given: list[tuple[ast.expr | None, ast.expr | None]] = []
        if isinstance(node, ast.Assign):
            given = [(target, node.value) for target in node.targets]
        elif isinstance(node, ast.AnnAssign):
            given = [(node.target, node.value)]
        elif isinstance(node, ast.With):
            given = [(item.optional_vars, item.context_expr) for item in node.items]
        for target, value in given:
            if target is not None and called(value) in WAITED_FOR:
                kinds.setdefault(ast.unparse(target), set()).add(called(value))
    found = []
    receives = WAITED_FOR["socket"]
    limited = "settimeout(" in text or "setblocking(False)" in text or "select." in text
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        name = node.func.attr
        if name not in MAY_WAIT:
            continue
        on = ast.unparse(node.func.value)
        words = {word.arg for word in node.keywords}
        has_limit = bool(words & {"timeout", None})
        waits = {method for kind in kinds.get(on, ()) for method in WAITED_FOR[kind]}
        if (
            (on == "subprocess" and name in RUNS and not has_limit)
            or (name == "communicate" and not has_limit)
            or (name in waits and name not in receives and not has_limit and not node.args)
            or (name in waits & receives and not limited)
        ):
            found.append((node.lineno, ast.unparse(node)))
    return found


FILES = [
    path
    for path in sorted(FOLDER.rglob("*.py"))
    if path.name != Path(__file__).name and path.parent.name != "mutation"  # a command, for hours
]


def test_every_wait_has_a_limit():
    found = [
        f"{path.relative_to(FOLDER)}:{line}: {text}"
        for path in FILES
        for line, text in find_waits(path.read_text(encoding="utf-8"))
    ]
    assert not found, "give these a timeout:\n" + "\n".join(found)


@pytest.mark.parametrize(
    "line",
    [
        "subprocess.run(['true'], check=True)",
        "p = subprocess.Popen(['true'])\np.wait()",
        "with subprocess.Popen(['true']) as p:\n    p.communicate()",
        "self.t = threading.Thread()\nself.t.join()",
        "e = threading.Event()\ne.wait()",
        "q: Queue = Queue()\nq.get()",
        "s = socket.socket()\ns.recv(1)",
    ],
)
def test_a_wait_without_a_limit_is_found(line):
    assert find_waits(line)
    for method in ("wait", "join", "get"):
        bounded = line.replace(f".{method}()", f".{method}(timeout=1)")
        if bounded != line:
            assert not find_waits(bounded)
