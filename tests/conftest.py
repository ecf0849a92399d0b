import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("microveil", deadline=None)  # machines are noisy: no timed tests
settings.load_profile("microveil")


@pytest.fixture(scope="session")
def paper_data() -> Path:
    """The directory with the paper's data sets."""
    directory = os.environ.get("MICROVEIL_DATA")
    if not directory:
        pytest.skip("MICROVEIL_DATA does not name a directory with census.csv")
    return Path(directory)
