"""Facts about methods stand in their rows, and rows agree with what the functions do."""

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import microveil
from microveil.core.accounting import noise_scales, reclustered_bound, reclustered_loss
from microveil.core.choices import DEFAULT_METHOD, GuaranteeName, MethodName
from microveil.core.clusters import cluster_sizes, singletons, summarise
from microveil.core.methods import GUARANTEES, METHODS, methods_that
from microveil.core.sensitivity import DomainSteps

SOURCE = Path(microveil.__file__).parent
MOST_FILES = 7  # with its words in `show.words` and its label in `plan.settings`
DOMAIN = DomainSteps(0, 2**40)
AGREE = np.repeat([3 * 2**36, 5 * 2**36, 9 * 2**36], 4)
"""Three clusters of four equal values each: no record of a cluster moves it by staying in it."""


def test_names_and_rows_agree() -> None:
    assert set(METHODS) == set(get_args(MethodName))
    assert set(GUARANTEES) == set(get_args(GuaranteeName))
    assert next(iter(METHODS)) == DEFAULT_METHOD


def strings(path: Path) -> Iterator[str]:
    """Yield the strings of a source file that are not docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    bare = {
        id(statement.value)
        for node in ast.walk(tree)
        if isinstance(node, documented)
        for statement in node.body
        if isinstance(statement, ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
            yield node.value


def names_a_method(text: str) -> bool:
    """Whether a string is the name of a method, or a sentence with one that nothing else has."""
    longer = [name for name in METHODS if len(name) > 2]
    return text in METHODS or bool(re.search(rf"\b({'|'.join(longer)})\b", text))


def test_a_new_method_touches_few_files() -> None:
    naming = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if "paper" not in path.relative_to(SOURCE).parts  # whose experiments are about the four
        and any(map(names_a_method, strings(path)))
    }
    assert "core/methods.py" in naming  # or nothing would be found at all
    assert len(naming) <= MOST_FILES, sorted(naming)


def test_nothing_asks_for_a_promise_by_name() -> None:
    asked = re.compile(r"promise(\.name)? (==|!=|in)|method\.name (==|!=|in) ")
    found = [path for path in SOURCE.rglob("*.py") if asked.search(path.read_text("utf-8"))]
    assert not found


def test_methods_are_named_in_a_sentence() -> None:
    assert methods_that(lambda method: not method.needs_domain) == "iDP-CBLS"
    assert methods_that(lambda method: method.promise.survives_data) == "iDP-CBLS or iDP-LS"


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("name", METHODS)
def test_only_the_methods_that_say_so_publish_without_noise(
    name: MethodName, guarantee: GuaranteeName
) -> None:
    """Clusters that agree, and one of them beside a cluster that holds its own value too."""
    method = METHODS[name]
    seen = False
    for values in (AGREE, np.repeat(AGREE[:1], 12)):
        clusters = summarise(values, cluster_sizes(12, 4)) if method.clustered else None
        scales = noise_scales(method, clusters or singletons(values), DOMAIN, 1.0, guarantee)
        seen |= bool((scales == 0).any())
    assert seen == (guarantee in method.without_noise)


@pytest.mark.parametrize("name", METHODS)
def test_the_factor_bounds_what_published_noise_loses(name: MethodName) -> None:
    """The worst table: a record at one end passes every cluster. Half the factor is too little."""
    method, k = METHODS[name], 4
    worst = 0.0
    for values in (
        np.linspace(0, 2**40, 40).astype(np.int64),
        np.concatenate([np.full(20, 2**39 - 1), np.full(20, 2**39 + 1)]),
        np.arange(40) * 2**20,
    ):
        summary = (
            summarise(values, cluster_sizes(40, k)) if method.clustered else singletons(values)
        )
        scales = noise_scales(method, summary, DOMAIN, 1.0)
        loss = reclustered_loss(method, summary, DOMAIN, scales)
        bound = reclustered_bound(method, 1.0, clusters=10, records=40)
        assert loss <= bound
        worst = max(worst, loss)
    weaker = reclustered_bound(method, 0.5, clusters=10, records=40)
    assert worst > weaker


def test_the_row_decides_the_bound() -> None:
    method = replace(METHODS["iDP-LS"], reclustered_factor=7)
    case = {"clusters": 10, "records": 2**20}
    rounding = 1 + 2.0**-20
    assert reclustered_bound(method, 1.0, **case) == 7 * rounding
    per_cluster = replace(method, reclustered_factor=None)
    assert reclustered_bound(per_cluster, 1.0, **case) == 10
