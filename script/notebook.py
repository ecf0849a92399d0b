"""Run the notebook of the documentation, and write it with its outputs: as .ipynb and as a page."""

import ast
import json
import os
import sys
import tempfile
import warnings
from html import escape
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).parent.parent / "docs" / "how-to" / "notebook.ipynb"
PAGE = NOTEBOOK.with_name("notebook-run.htm")
CELLS: tuple[tuple[str, str], ...] = (
    ("markdown", "# A table protected in two lines"),
    ("code", "import microveil\nfrom microveil.plan.sample import people\n\n"
             "table = people()\ntable.head(3)"),
    ("markdown", "No plan: microveil proposes one, protects the table, and says what it assumed."),
    ("code", "release = microveil.protect(table)\nrelease"),
    ("markdown", "What was assumed is a plan, and a plan can be changed. Declare what you know "
                 "without the data:"),
    ("code", "from microveil import Confidential\n\n"
             "known = {\"age\": Confidential(lower=18, upper=110)}\n"
             "plan = release.plan.replace(epsilon=2.0, attributes={**release.plan.attributes, "
             "**known})\nrelease.plan.diff(plan).splitlines()"),
    ("code", "again = microveil.protect(table, plan)\nagain.data.head(3)"),
    ("code", "again.write(\"protected.parquet\").protected"),
)  # fmt: skip
"""The kind of each cell, and what stands in it."""

_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:72em;margin:1em;color:#1c1c1c;background:"
    "#fff}pre{background:#f5f6f7;padding:.6em 1em;overflow:auto}.out{margin:0 0 1.5em 1em;"
    "overflow-x:auto}.warned{color:#7a4b00;white-space:pre-wrap}"
)
Output = dict[str, Any]


def run(cells: tuple[tuple[str, str], ...] = CELLS) -> list[list[Output]]:
    """Run the cells one after the other in a folder that goes; return what each of them shows."""
    names: dict[str, Any] = {"__name__": "__main__"}
    back = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            return [_run_cell(source, names) if kind == "code" else [] for kind, source in cells]
        finally:
            os.chdir(back)


def _run_cell(source: str, names: dict[str, Any]) -> list[Output]:
    """Run a cell: what it warns of, and its last expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(compile(tree, "cell", "exec"), names)  # noqa: S102 - the cells above
        code = None if last is None else compile(ast.Expression(last.value), "cell", "eval")
        value = None if code is None else eval(code, names)  # noqa: S307 - the same
    warned = [f"{one.category.__name__}: {one.message}\n" for one in caught]
    outputs = [{"output_type": "stream", "name": "stderr", "text": warned}] if warned else []
    return outputs if value is None else [*outputs, _shown(value)]


def _shown(value: object) -> Output:
    drawn = getattr(value, "_repr_html_", None)
    data = {"text/plain": repr(value)} | ({"text/html": drawn()} if drawn else {})
    return {"output_type": "execute_result", "data": data, "metadata": {}}


def as_notebook(outputs: list[list[Output]]) -> str:
    """Write cells and outputs in the format of Jupyter, version 4.5."""
    cells = []
    for number, ((kind, source), shown) in enumerate(zip(CELLS, outputs, strict=True), start=1):
        cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}}
        cell["source"] = source.splitlines(keepends=True)
        if kind == "code":
            numbered = [
                {**one, "execution_count": number} if "data" in one else one for one in shown
            ]
            cell |= {"execution_count": number, "outputs": numbered}
        cells.append(cell)
    about = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    whole = {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def as_page(outputs: list[list[Output]]) -> str:
    """Write cells and outputs as a page that needs nothing else."""
    parts = []
    for (kind, source), shown in zip(CELLS, outputs, strict=True):
        heading = source.startswith("# ")
        text = escape(source.removeprefix("# "))
        tag = "pre" if kind == "code" else "h1" if heading else "p"
        parts += [f"<{tag}>{text}</{tag}>", *map(_html_of, shown)]
    head = f'<meta charset="utf-8"><title>A notebook</title><style>{_STYLE}</style>'
    body = f"<body>{''.join(parts)}</body>"
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n{body}</html>\n'


def _html_of(output: Output) -> str:
    if "data" in output:
        told = (
            output["data"].get("text/html") or f"<pre>{escape(output['data']['text/plain'])}</pre>"
        )
        return f'<div class="out">{told}</div>'
    return f'<div class="out"><pre class="warned">{escape("".join(output["text"]))}</pre></div>'


if __name__ == "__main__":
    found = run()
    NOTEBOOK.write_text(as_notebook(found), encoding="utf-8")
    PAGE.write_text(as_page(found), encoding="utf-8")
    sys.stdout.write(f"{NOTEBOOK}\n{PAGE}\n")
