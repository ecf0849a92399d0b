"""Files that count as larger than memory, from the command line."""

from pathlib import Path

import polars as pl
import pytest

from microveil.formats import read_table
from tests.conftest import Run


@pytest.mark.parametrize("source", ["PEOPLE.CSV", "People.Parquet"])
@pytest.mark.parametrize("output", ["OUT.CSV", "Out.Parquet"])
def test_endings_may_be_of_upper_case(
    source: str, output: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = pl.DataFrame({"name": list("abcdefgh"), "x": range(8)})
    people.write_csv(source) if source.endswith("CSV") else people.write_parquet(source)
    monkeypatch.setattr("microveil.release.protect_file.available_memory", lambda: 32)
    monkeypatch.delattr("microveil.cli.job.load_table")  # which would read it whole
    flags = "--epsilon 1 --k 3 --anonymity 0 --keep name --detail"
    code, out, err = run(f"protect {source} -o {output} {flags}")
    assert (code, err.count("\n")) == (4, 1)
    assert "does not pass" in out
    assert "100% of released rows have a combination of kept columns" in " ".join(out.split())
    released = read_table(Path(output))
    assert sorted(released["name"]) == list("abcdefgh")
    assert released.schema["x"] == pl.Int64
    code, out, _ = run(f"certificate {Path(output).stem}.certificate.json")
    assert (code, f"{output}: matches the certificate" in out) == (0, True)
    assert run(f"evaluate {source} {output}")[0] == 0
