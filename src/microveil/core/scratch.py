"""Names of directories for temporary files, which tell what process made them."""

import os
import re
import secrets
import socket


def start_of_scratch() -> str:
    """Return how such names begin on this machine; the number of the process comes next."""
    host = re.sub(r"\W", "_", socket.gethostname())
    return f".microveil-{host}-"


def name_of_scratch() -> str:
    """Return an unused name that says which process made it."""
    return f"{start_of_scratch()}{os.getpid()}-{secrets.token_hex(8)}"
