"""Results that show themselves: as a screen of text, in a notebook, and where there is one as SVG.

What a screen says belongs to `microveil.show`, which stands above all results. So that no result
imports it, the package itself says where the screen of each one is made: see `microveil.__init__`.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.console import RenderableType


class Screen(Protocol):
    """What people see of a result."""

    @property
    def text(self) -> str:
        """A screen of text."""

    @property
    def whole(self) -> "RenderableType":
        """All of it, as the command line prints it."""

    @property
    def printed(self) -> str:
        """The same as text, without colours."""

    @property
    def sections(self) -> dict[str, list[str]]:
        """All its sentences, by section."""

    @property
    def html(self) -> str:
        """A piece of HTML for notebooks."""

    @property
    def svg(self) -> str:
        """Its chart."""


class _Screens:
    """Makes the screen of a result; the package sets how."""

    make: Callable[[object], Screen]


def screens_by(make: Callable[[object], Screen]) -> None:
    """Say how the screen of a result is made."""
    _Screens.make = staticmethod(make)


class Shown:
    """A result that shows itself."""

    def __repr__(self) -> str:
        return _Screens.make(self).text

    def printed(self) -> str:
        """Return what the command line prints of it, without colours."""
        return _Screens.make(self).printed

    def sentences(self) -> dict[str, list[str]]:
        """Return what it says in sentences, by section."""
        return _Screens.make(self).sections

    def __rich__(self) -> "RenderableType":
        return _Screens.make(self).whole

    def _repr_html_(self) -> str:
        return _Screens.make(self).html

    def to_svg(self) -> str:
        """Draw its chart as SVG; needs ``microveil[report]``."""
        return _Screens.make(self).svg
