"""Uses: what a table is published for, from the original and from the release side by side."""

from collections.abc import Iterator

from microveil.compare.asked import Asked
from microveil.compare.estimates import Estimate
from microveil.compare.examined import Examined
from microveil.compare.figures import Fact, Figure, Items, NotComputed, Sample
from microveil.compare.use_columns import UseColumns
from microveil.errors import MicroveilError
from microveil.measures.learning import scikit_learn
from microveil.measures.use_estimates import SideBySide, side_by_side
from microveil.measures.use_models import held_out, model_scores
from microveil.plan.uses import Use

ESTIMATE, MODEL = USES = ("use.estimate", "use.model")


def uses_of(seen: Examined, asked: Asked) -> list[Use]:
    """Return the uses that the plan has, and those that were asked for."""
    planned = () if seen.plan is None else seen.plan.uses
    return list({str(use): use for use in (*planned, *asked.uses)}.values())


def use_figures(seen: Examined, asked: Asked) -> Items:
    """Compute every use from all records, where they can be read, or else from those drawn."""
    uses = uses_of(seen, asked)
    pair = seen.everyone or seen.given if uses else seen.given
    columns = UseColumns(pair)
    drawn = (len(pair.source), len(pair.released))
    whole = drawn[1] == seen.beside.records
    people = seen.records if seen.paired else seen.beside.originals
    times = (1.0, 1.0) if whole else (people / drawn[0], seen.records / drawn[1])
    sample = None if whole else Sample(drawn[1], seen.beside.records)
    for use in uses:
        if columns.lacks(use.columns):
            yield NotComputed(USES, "not_in_both_tables", str(use))
        elif use.kind != "predict":
            yield from _estimated(use, columns, times, sample)
    models = [use for use in uses if use.kind == "predict" and not columns.lacks(use.columns)]
    if models:
        yield from _modelled(models, seen, asked.seed)


def _estimated(
    use: Use, columns: UseColumns, times: tuple[float, float], sample: Sample | None
) -> Iterator[Figure | NotComputed]:
    found = side_by_side(use, columns, times)
    if isinstance(found, str):
        yield NotComputed((ESTIMATE,), found, str(use))
        return
    figures = [_figure(use, each, columns, sample) for each in found]
    yield from figures
    if not figures:
        yield NotComputed((ESTIMATE,), "groups_too_small", str(use))


def _figure(use: Use, each: SideBySide, columns: UseColumns, sample: Sample | None) -> Figure:
    about = f"{use}: {each.group}" if each.group else str(use)
    facts: dict[str, Fact] = {
        "use": str(use), "group": each.group, **_facts("original", each.original),
        **_facts("released", each.released), "overlap": each.overlap,
    }  # fmt: skip
    weighted = columns.pair.weights is not None
    return Figure(ESTIMATE, about, each.moved, facts, sample, weighted=weighted)


def _facts(table: str, found: Estimate | None) -> dict[str, Fact]:
    """Return an estimate and the ends of its interval, by names that say of which table."""
    value, (low, high) = found or (None, (None, None))
    return {table: value, f"{table}_low": low, f"{table}_high": high}


def _modelled(models: list[Use], seen: Examined, seed: int) -> Items:
    reason = _no_models(seen)
    held = None if reason else held_out(seen, seed)
    for use in models:
        if held is None:
            yield NotComputed((MODEL,), reason or "too_few_to_protect_anew", str(use))
            continue
        found = model_scores(use, held)
        if isinstance(found, str):
            yield NotComputed((MODEL,), found, str(use))
            continue
        facts: dict[str, Fact] = {"use": str(use), **found._asdict()}
        sample = Sample(len(held.trains), seen.records, anew=1.0)
        lost = max(0.0, found.original - found.released)
        yield Figure(MODEL, str(use), lost, facts, sample)


def _no_models(seen: Examined) -> str | None:
    """Return the reason why no model can be trained, if there is one."""
    try:
        scikit_learn()
    except MicroveilError:
        return "needs_scikit_learn"
    return "no_plan" if seen.plan is None else None
