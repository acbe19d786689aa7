"""XLA's parser in a child process: whatever a text does to it, there is an answer."""

from collections.abc import Iterator

from kernelcast.hlo.handover import Accepted, Cause, Refused, hand_over
from kernelcast.hlo.proto import canonical_proto
from kernelcast.hlo.xla import proto_to_text, text_to_proto

GOOD = "HloModule m\nENTRY e {\n  ROOT a = f32[2]{0} parameter(0)\n}\n"
INVALID = "HloModule m\nENTRY e {\n  ROOT a = f32[2] add(b)\n}\n"
# Case 5: XLA's parser ends its process on it.
ABORTS = "HloModule m\nENTRY e { a = f32[4,8] parameter(0)\n ROOT r = f32[31] reshape(a) }\n"


def test_each_text_gets_its_answer_in_order() -> None:
    answers = list(hand_over([GOOD, INVALID, ABORTS, GOOD]))
    assert [type(answer) for answer in answers] == [Accepted, Refused, Refused, Accepted]
    first, invalid, aborted, last = answers
    assert isinstance(first, Accepted)
    assert isinstance(last, Accepted)
    assert (
        canonical_proto(first.result) == canonical_proto(last.result) == canonical_proto(text_to_proto(GOOD))
    )
    assert "a = f32[2]{0} parameter(0)" in proto_to_text(first.result)
    assert isinstance(invalid, Refused)
    assert invalid.cause is Cause.INVALID
    assert "instruction does not exist: b" in invalid.reason
    assert isinstance(aborted, Refused)
    assert aborted.cause is Cause.CRASH
    assert "Check failed" in aborted.reason


def test_texts_are_taken_one_at_a_time() -> None:
    taken: list[int] = []

    def texts() -> Iterator[str]:
        for number in range(3):
            taken.append(number)
            yield GOOD

    assert isinstance(next(hand_over(texts())), Accepted)
    assert taken == [0]


def test_memory_is_limited() -> None:
    """XLA's parser allocates a constant that was left out as if it were there (case 6)."""
    greedy = "HloModule m\nENTRY e {\n  ROOT c = f32[1073741824] constant({...})\n}\n"
    refused, accepted = hand_over([greedy, GOOD], memory_bytes=2 << 30)
    assert isinstance(refused, Refused)
    assert isinstance(accepted, Accepted)


def test_time_is_limited() -> None:
    slow = (
        "HloModule m\nENTRY e {\n" + "".join(f"  c{i} = f32[] constant(1)\n" for i in range(200_000)) + "}\n"
    )
    (answer,) = hand_over([slow], seconds_per_text=0.01)
    assert answer == Refused(cause=Cause.TIMEOUT, reason="no answer in 0.01 s")


def test_text_that_is_no_text() -> None:
    refused, accepted = hand_over(["HloModule \ud800", GOOD])
    assert isinstance(refused, Refused)
    assert refused.cause is Cause.INVALID
    assert isinstance(accepted, Accepted)


def test_no_texts_start_no_child() -> None:
    assert list(hand_over([])) == []
