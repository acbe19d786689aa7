"""The child of a hand-over: ``python -m kernelcast.hlo.handover_child DESCRIPTOR LIMIT CONVERSION``."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection

from kernelcast.errors import KernelcastError
from kernelcast.hlo.conversions import CONVERSIONS, Conversion


def _serve(descriptor: int, memory_bytes: int, convert: Callable[[bytes], bytes]) -> None:
    """Answers each message with ``+`` and the result or ``-`` and a reason, until the connection closes."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    with Connection(descriptor) as connection:
        while True:
            try:
                payload = connection.recv_bytes()
            except EOFError:
                return
            try:
                answer = b"+" + convert(payload)
            except (KernelcastError, UnicodeDecodeError) as error:
                answer = b"-" + str(error).encode()
            connection.send_bytes(answer)


if __name__ == "__main__":
    _serve(int(sys.argv[1]), int(sys.argv[2]), CONVERSIONS[Conversion(sys.argv[3])])
