"""One name for one thing: no public name or file name occurs twice, and imports have no knots."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp

SOURCE = Path(__file__).parent.parent / "src" / "microveil"
MODULES = sorted(SOURCE.rglob("*.py"))


def public_names(module: Path) -> Iterator[str]:
    """Name what a module defines without a leading underscore; `__all__` and such have two."""
    for node in ast.parse(module.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names = [node.name]
        elif isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names = [node.target.id]
        else:
            continue
        yield from (name for name in names if not name.startswith("_"))


def twice(homes: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: found for name, found in homes.items() if len(found) > 1}


def test_no_public_name_means_two_things() -> None:
    homes = defaultdict(list)
    for module in MODULES:
        for name in public_names(module):
            homes[name].append(module.relative_to(SOURCE).as_posix())
    assert len(homes) > 500  # or nothing would be found at all
    assert not twice(homes)


def test_no_file_name_means_two_things() -> None:
    homes = defaultdict(list)
    for module in MODULES:
        if module.name != "__init__.py":
            homes[module.stem].append(module.relative_to(SOURCE).as_posix())
    assert len(homes) > 100
    assert not twice(homes)


def test_imports_have_no_knots() -> None:
    """Lazy and type-only imports count; the package itself may import whatever it exports."""
    graph = grimp.build_graph("microveil", cache_dir=None)
    imports = {
        module: graph.find_modules_directly_imported_by(module) - {"microveil"}
        for module in graph.modules - {"microveil"}
    }
    assert len(imports) > 200
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        raise AssertionError(f"a knot of imports: {' -> '.join(error.args[1])}") from None
