"""Ledgers that are spent from, withdrawn from, declared anew, damaged, and edited by hand."""

import json
from pathlib import Path
from random import Random

import polars as pl

from fuzz.checks import Broken, check_error
from fuzz.damage import damaged
from microveil import MicroveilError, Plan, protect
from microveil.errors import noted
from microveil.release.ledger import Ledger, declare, total, withdraw

_TABLE = pl.DataFrame({"x": range(30)})
_EDITS = ("budgets", "releases", "sha256", "ledger_version", "limits")
_WRONG: tuple[object, ...] = (None, [], {}, "1", -1, 1e400, "9" * 300, [{}], True)


def run(random: Random, folder: Path) -> str:
    """Spend from a ledger until something refuses; then damage it, which must be noticed."""
    path = folder / "people.json"
    ledger = declare(path, random.choice([0.3, 1.0, 2.5]))
    budgets, promised = [ledger.budget], 0.0
    with noted():
        for _ in range(random.randint(1, 4)):
            promised = _step(random, path, budgets, promised)
            _check_sums(path, budgets, promised)
    return _damage(random, path)


def _step(random: Random, path: Path, budgets: list[float], promised: float) -> float:
    """Do something with a ledger; return what releases spent after it."""
    epsilon = random.choice([0.1, 0.1, 0.2, 0.7, 1.0, 3.0])
    match random.choice(["release", "release", "release", "budget", "withdraw"]):
        case "budget":
            budgets.append(epsilon)
            declare(path, epsilon)
        case "withdraw":
            counted = Ledger.read(path).counted
            if counted:
                withdraw(path, counted[0].id)
                return total([promised, -counted[0].epsilon])
        case _:
            fits = total([promised, epsilon]) <= budgets[-1]
            plan = Plan.published(epsilon=epsilon, k=3, attributes={"x": "confidential"})
            try:
                protect(_TABLE, plan, ledger=path)
            except MicroveilError as error:
                check_error(error, set())
                if fits:
                    raise Broken("ledger", "refused what is left") from error
                return promised
            if not fits:
                raise Broken("ledger", "spent more than was left")
            return total([promised, epsilon])
    return promised


def _check_sums(path: Path, budgets: list[float], promised: float) -> None:
    ledger = Ledger.read(path)
    if (ledger.budget, ledger.spent) != (budgets[-1], promised):
        raise Broken("ledger", "another budget, or another sum")


def _damage(random: Random, path: Path) -> str:
    """Damage a ledger; it is refused, or says what it said."""
    before, content = Ledger.read(path), path.read_bytes()
    altered = damaged(random, content) if random.random() < 0.5 else _edited(random, content)
    path.write_bytes(altered)
    try:
        after = Ledger.read(path)
    except MicroveilError as error:
        check_error(error, set())
    else:
        if after != before:
            raise Broken("ledger", "one that was edited is read")
        return "spent from"
    try:
        protect(_TABLE, Plan(epsilon=0.1, attributes={"x": "confidential"}), ledger=path)
    except MicroveilError as error:
        check_error(error, set())
    else:
        raise Broken("ledger", "a damaged one is spent from")
    if path.read_bytes() != altered:
        raise Broken("ledger", "a damaged one is written to")
    return "damage refused"


def _edited(random: Random, content: bytes) -> bytes:
    entries = json.loads(content)
    match random.choice(["entry", "release", "none"]):
        case "entry":
            entries[random.choice(_EDITS)] = random.choice(_WRONG)
        case "release" if entries["releases"]:
            release = random.choice(entries["releases"])
            release[random.choice([*release])] = random.choice(_WRONG)
        case _:
            entries["releases"] = entries["releases"][1:]
    return json.dumps(entries).encode()
