"""How loops are compiled: once for all runs where a cache can be written, otherwise in every run.

numba keeps what it compiled beside the package or in the user's cache. A service account or a
locked container may have neither.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numba

Loop = TypeVar("Loop", bound=Callable[..., Any])


def compiled(**options: Any) -> Callable[[Loop], Loop]:  # noqa: ANN401 - those of numba.njit
    """Compile a loop that needs no lock."""

    def compile_it(loop: Loop) -> Any:  # noqa: ANN401 - of numba
        try:
            return numba.njit(loop, cache=True, nogil=True, **options)
        except RuntimeError:  # no directory for a cache can be written
            return numba.njit(loop, nogil=True, **options)

    return compile_it
