"""What was assumed of a table that was protected without a plan, in sentences."""

from microveil.release.assumptions import Assumption, AssumptionKind

_ASSUMED: dict[AssumptionKind, str] = {
    "privacy": "A privacy budget of ε = {epsilon:g} for each person or unit, and each row hidden "
    "among those of {people} or more.",
    "one-record-each": "Every record is another person's. If not, name the column that says whose "
    "records they are: unit.",
    "unit": "Records with the same {names} belong together, {people} at most; they are protected "
    "as one.",
    "dropped": "Left out, since they may tell who people are: {names}.",
    "kept": "Published unchanged, since it is the same in every record: {names}.",
    "weights": "Sampling weights, published unchanged: {names}.",
    "derived": "Computed again from masked values: {names}.",
    "rules": "Kept in every row, since every record keeps them: {names}.",
    "ranges": "Values beyond those that occur are not expected: {names}. Declare lower and "
    "upper from what you know without the data.",
    "read-from-data": "Read from the data, which ε does not cover: {names}.",
}


def assumption_statement(assumption: Assumption) -> str:
    """Say what was assumed.

    Examples
    --------
    >>> assumption_statement(Assumption("dropped", ("name", "email")))
    'Left out, since they may tell who people are: name, email.'
    """
    return _ASSUMED[assumption.kind].format(
        names=", ".join(assumption.names), epsilon=assumption.epsilon, people=assumption.people
    )
