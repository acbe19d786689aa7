"""The child's side of a hand-over: ``python -m kernelcast.hlo.handover_child DESCRIPTOR MEMORY_BYTES``."""

from __future__ import annotations

import resource
import sys
from multiprocessing.connection import Connection

from kernelcast.errors import HloError
from kernelcast.hlo.xla import text_to_proto


def _serve(descriptor: int, memory_bytes: int) -> None:
    """Answers each text with ``+`` and its proto or ``-`` and a reason, until the connection closes."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    with Connection(descriptor) as connection:
        while True:
            try:
                text = connection.recv_bytes().decode()
            except EOFError:
                return
            except UnicodeDecodeError as error:
                connection.send_bytes(b"-" + str(error).encode())
                continue
            try:
                answer = b"+" + text_to_proto(text)
            except HloError as error:
                answer = b"-" + str(error).encode()
            connection.send_bytes(answer)


if __name__ == "__main__":
    _serve(int(sys.argv[1]), int(sys.argv[2]))
