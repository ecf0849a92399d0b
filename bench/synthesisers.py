"""MST, a differentially private synthesiser, on the same data: what attacks gain, what is learned.

No row of a synthetic table belongs to a person, so there is neither an error by record nor a row to
link, and no place on the map: attribute inference, singling out and linkability are tried, and
models are trained on a release of one half of the people and tested on the other half. Needs an
environment of its own: `python -m venv mst && mst/bin/pip install "opendp[mbi]" pandas`, then
`python -m bench.synthesisers mst/bin/python`. Writes docs/findings/synthesisers.parquet. Half a
minute of processor time for each of four releases.

McKenna, Miklau and Sheldon (2021), "Winning the NIST contest"; OpenDP's version, ε-DP by adding or
removing a record, 20 bins of equal width over each domain. In OpenDP 0.16 it fails by a rounding of
the last digit ("insufficient budget for query") unless ε and the splits of the budget are powers of
two, and on some numbers of attributes even then: such releases are left out.
"""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

EPSILONS = (0.125, 1.0)
BINS, CLASS, SEED = 20, "class", 0


def synthesise(source: str, epsilon: str, out: str) -> None:
    """Make a synthetic table; runs in the environment that has OpenDP with mbi."""
    import opendp.prelude as dp
    from opendp.extras.mbi import MST

    dp.enable_features("contrib")
    table = pl.read_parquet(source)
    tops = table.select(pl.all().max()).row(0, named=True)  # the last row has the domains' ends
    table = table.head(table.height - 1)
    cuts = {name: [top * cut / BINS for cut in range(1, BINS)] for name, top in tops.items()}
    cuts[CLASS] = [0.5]
    context = dp.Context.compositor(
        data=table.lazy(),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=float(epsilon)),
    )
    algorithm = MST(measure_split=0.5, oneway_split=0.5)
    query = context.query(epsilon=float(epsilon)).select(*table.columns)
    query.contingency_table(cuts=cuts, algorithm=algorithm).release().synthesize().select(
        table.columns
    ).write_parquet(out)


def main(python: str) -> None:
    """Release, attack and learn; print and write what was found."""
    from bench.map import FINDINGS
    from microveil.lab.benchmark.benchmark_data import KNOWN

    rows = [
        row for name in KNOWN for epsilon in EPSILONS for row in _measure(name, epsilon, python)
    ]
    path = FINDINGS / "synthesisers.parquet"
    pl.DataFrame(rows).write_parquet(path)
    print(f"wrote {path}")


def _measure(name: str, epsilon: float, python: str) -> list[dict[str, object]]:
    import numpy as np

    from microveil.attacks.attack_rows import ATTACKS
    from microveil.attacks.subject import ReleasedRows, Subject
    from microveil.lab.benchmark import RECORDS
    from microveil.lab.benchmark.benchmark_data import open_data

    data = open_data(name).some(RECORDS)
    people, classes = data.table.to_numpy().astype(np.float64), data.classes
    assert classes is not None  # noqa: S101 - the paper's data sets have classes
    half = np.random.default_rng(SEED).permutation(len(people))[: len(people) // 2]
    uppers = [float(str(a.upper)) for a in data.plan.confidential.values()]
    ends = pl.DataFrame([[*uppers, 1.0]], schema=[*data.table.columns, CLASS], orient="row")
    given = data.table.cast(pl.Float64).with_columns(pl.Series(CLASS, classes * 1.0))
    outside = np.setdiff1d(np.arange(len(people)), half)
    one, other = (_in_other_environment(pl.concat([given[each], ends]), epsilon, python)
                  for each in (half, outside))  # fmt: skip
    if one is None or other is None:
        print(f"{data.name}, ε = {epsilon:g}: failed, as said above")
        return []
    rows = [each.drop(CLASS).to_numpy() for each in (one, other)]
    subject = Subject(people, (), lambda chosen, _: ReleasedRows(rows[int(chosen[0] in outside)]))
    learned = _learned(one, people[outside], classes[outside])
    found = []
    for id_ in ("risk.inference", "risk.singling_out", "risk.linkability"):
        attack = ATTACKS[id_]
        outcome = attack.with_control(subject, SEED) if attack.with_control else None
        assert outcome is not None  # noqa: S101 - there are several attributes
        found.append({
            "data": data.name, "method": "MST", "epsilon": epsilon, "seed": SEED,
            "attack": attack.label, "rate": outcome.rate, "control": outcome.control,
            "risk": outcome.risk, "high": outcome.high, **learned,
        })  # fmt: skip
        print(found[-1], flush=True)
    return found


def _in_other_environment(table: pl.DataFrame, epsilon: float, python: str) -> pl.DataFrame | None:
    with TemporaryDirectory() as directory:
        source, out = (str(Path(directory) / name) for name in ("in.parquet", "out.parquet"))
        table.write_parquet(source)
        done = subprocess.run([python, __file__, source, str(epsilon), out], check=False)
        return None if done.returncode else pl.read_parquet(out)


def _learned(made: pl.DataFrame, original: object, classes: object) -> dict[str, float]:
    import numpy as np
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.metrics import roc_auc_score

    label = made[CLASS].to_numpy() > 0.5
    models = {
        "forest": RandomForestClassifier(random_state=SEED, n_jobs=1),
        "boosting": HistGradientBoostingClassifier(random_state=SEED),
    }
    trained = {n: m.fit(made.drop(CLASS).to_numpy(), label) for n, m in models.items()}
    return {
        f"auc_{name}": float(
            roc_auc_score(np.asarray(classes), model.predict_proba(original)[:, 1])
        )
        if len(model.classes_) == 2
        else 0.5
        for name, model in trained.items()
    }


if __name__ == "__main__":
    if len(sys.argv) == 4:
        synthesise(*sys.argv[1:])
    else:
        main(sys.argv[1])
