import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelcast.core.timing import Failure, Reason
from kernelcast.errors import TargetError
from kernelcast.targets.worker import Worker

sys.path.insert(0, str(Path(__file__).parent))
from worker_requests import Append, Boot, Die, Eat, Fail, Raise, Sleep, Where

CPU = max(os.sched_getaffinity(0))
HERE = str(Path(__file__).parent)


def new_worker(boot: Boot | None = None) -> Worker[list[int]]:
    return Worker(
        boot or Boot(),
        cpu=CPU,
        memory_limit_bytes=1 << 30,
        environment={"KERNELCAST_TEST": "set", "PYTHONPATH": HERE},
    )


@pytest.fixture
def worker() -> Iterator[Worker[list[int]]]:
    with new_worker() as made:
        yield made


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def ask_where(worker: Worker[list[int]]) -> int:
    answer = worker.ask(Where(), limit_s=10)
    assert not isinstance(answer, Failure)
    return answer[0]


def await_end(process: int) -> None:
    """Returns when a child has ended whole; its leader is a zombie before its other threads are gone."""
    os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)


def failure(answer: object) -> Failure:
    assert isinstance(answer, Failure)
    return answer


def test_child_keeps_its_state_between_requests(worker: Worker[list[int]]) -> None:
    assert worker.ask(Append(1), limit_s=10) == (1,)
    assert worker.ask(Append(2), limit_s=10) == (1, 2)
    assert worker.generation == 0


def test_child_is_pinned_and_gets_its_variables(worker: Worker[list[int]]) -> None:
    answer = worker.ask(Where(), limit_s=10)
    assert not isinstance(answer, Failure)
    process, cpus, variable = answer
    assert process != os.getpid()
    assert cpus == {CPU}
    assert variable == "set"


def test_abort_costs_one_request_and_the_state(worker: Worker[list[int]]) -> None:
    worker.ask(Append(1), limit_s=10)
    died = failure(worker.ask(Die(), limit_s=10))
    assert worker.generation == 1
    assert died.reason is Reason.CRASH
    assert "SIGABRT" in died.message
    assert "the last words" in died.message
    assert worker.ask(Append(2), limit_s=10) == (2,)
    assert worker.generation == 1


def test_the_line_that_tells_is_found_in_a_long_log(worker: Worker[list[int]]) -> None:
    line = "F0101 12:00:00.000000    42 fusion_util.cc:7] Check failed: the reason"
    died = failure(worker.ask(Die(words=f"{line}\n{'stack frame' * 1000}"), limit_s=10))
    assert died.message == "the worker died of SIGABRT: Check failed: the reason"


def test_child_killed_from_outside_counts_as_out_of_memory(worker: Worker[list[int]]) -> None:
    assert failure(worker.ask(Die(signal.SIGKILL), limit_s=10)).reason is Reason.MEMORY


def test_idle_child_that_dies_is_noticed_before_the_next_request(worker: Worker[list[int]]) -> None:
    process = ask_where(worker)
    assert worker.generation == 0
    os.kill(process, signal.SIGKILL)
    await_end(process)
    assert worker.generation == 1
    assert worker.ask(Append(1), limit_s=10) == (1,)


def test_child_that_dies_just_before_a_request_costs_that_request(worker: Worker[list[int]]) -> None:
    process = ask_where(worker)
    os.kill(process, signal.SIGKILL)
    await_end(process)
    assert failure(worker.ask(Append(1), limit_s=10)).reason is Reason.MEMORY
    assert worker.ask(Append(1), limit_s=10) == (1,)


def test_hang_ends_at_the_limit(worker: Worker[list[int]]) -> None:
    worker.ask(Append(1), limit_s=10)
    begin = time.monotonic()
    answer = failure(worker.ask(Sleep(60), limit_s=0.5))
    assert time.monotonic() - begin < 5
    assert (answer.reason, answer.message) == (Reason.TIMEOUT, "no answer within 0.5 s")
    assert worker.ask(Append(2), limit_s=10) == (2,)


def test_memory_overrun_ends_the_child(worker: Worker[list[int]]) -> None:
    answer = failure(worker.ask(Eat(2 << 30), limit_s=30))
    assert answer.reason is Reason.MEMORY
    assert "over its limit of 1024 MiB" in answer.message


def test_exceptions_become_failures_and_cost_no_state(worker: Worker[list[int]]) -> None:
    worker.ask(Append(1), limit_s=10)
    assert failure(worker.ask(Fail(), limit_s=10)) == Failure(
        reason=Reason.NOT_AS_ASKED, message="another module"
    )
    assert str(failure(worker.ask(Raise("bad"), limit_s=10))) == "run: RuntimeError: bad"
    assert failure(worker.ask(Raise("RESOURCE_EXHAUSTED: 9 GB"), limit_s=10)).reason is Reason.MEMORY
    assert worker.ask(Append(2), limit_s=10) == (1, 2)


def test_busy_seconds_count_failed_requests_too(worker: Worker[list[int]]) -> None:
    worker.ask(Append(1), limit_s=10)
    before = worker.busy_s
    worker.ask(Sleep(0.3), limit_s=10)
    worker.ask(Sleep(60), limit_s=0.3)
    assert 0.6 <= worker.busy_s - before < 3


def test_close_ends_the_child() -> None:
    with new_worker() as worker:
        answer = worker.ask(Where(), limit_s=10)
        assert not isinstance(answer, Failure)
        process = answer[0]
    assert not is_running(process)


def test_child_that_cannot_start() -> None:
    with (
        new_worker(Boot(is_broken=True)) as worker,
        pytest.raises(TargetError, match=r"did not start.*no device"),
    ):
        worker.ask(Append(1), limit_s=10)


def test_no_orphan_when_the_parent_is_killed() -> None:
    script = textwrap.dedent(f"""
        import sys, time
        sys.path.insert(0, {HERE!r})
        from worker_requests import Boot, Where
        from kernelcast.targets.worker import Worker
        worker = Worker(Boot(), cpu={CPU}, memory_limit_bytes=1 << 30, environment={{"PYTHONPATH": {HERE!r}}})
        print(worker.ask(Where(), limit_s=20)[0], flush=True)
        time.sleep(60)
    """)
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert is_running(child)
        parent.kill()
    for _ in range(50):
        if not is_running(child):
            return
        time.sleep(0.1)
    os.kill(child, signal.SIGKILL)
    pytest.fail("the worker outlived its parent")
