"""How far a compiler has gone with a program."""

from enum import StrEnum


class Stage(StrEnum):
    """What a compiler has done with a program."""

    UNOPTIMISED = "unoptimised"  # as it was written or lowered
    OPTIMISED = "optimised"  # fused and mostly scheduled: what code is made from
