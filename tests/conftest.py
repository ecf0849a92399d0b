import os
from pathlib import Path

import pytest


@pytest.fixture
def paper_data() -> Path:
    """The directory with the paper's data sets."""
    directory = os.environ.get("MICROVEIL_DATA")
    if not directory:
        pytest.skip("MICROVEIL_DATA does not name a directory with census.csv")
    return Path(directory)
