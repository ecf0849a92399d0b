"""Tables of the user's kind, opened once their columns are known to have names of their own."""

from typing import TYPE_CHECKING, Any

from microveil.errors import DataError
from microveil.types import UserTable

if TYPE_CHECKING:
    import narwhals as nw

_VIEWS = ("string_view", "binary_view")  # of which PyArrow picks no records


def opened(data: UserTable) -> "nw.DataFrame[Any]":
    """Open a Polars or pandas DataFrame or a PyArrow Table; a `TypeError` says that it is none."""
    import narwhals as nw

    try:
        frame = nw.from_native(data, eager_only=True)
    except nw.exceptions.DuplicateError:
        raise DataError("column names must differ, found the same name twice; rename one") from None
    if not all(isinstance(name, str) for name in frame.columns):
        raise DataError("column names must be text, found other types; rename the columns")
    return _without_views(frame) if frame.implementation.is_pyarrow() else frame


def _without_views(frame: "nw.DataFrame[Any]") -> "nw.DataFrame[Any]":
    """Give PyArrow's views of text and bytes the plain type."""
    import narwhals as nw

    types = {field.name: str(field.type) for field in frame.to_native().schema}
    views = {name: type_ for name, type_ in types.items() if type_ in _VIEWS}
    plain = {"string_view": nw.String, "binary_view": nw.Binary}
    return frame.with_columns(*(frame[name].cast(plain[view]) for name, view in views.items()))
