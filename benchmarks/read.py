"""How fast HLO text is read, beside Python's ``json.loads`` on the same words.

Run: ``python benchmarks/read.py [program/variant]``.
"""

from __future__ import annotations

import json
import sys

from kernelcast.hlo.format import format_program
from kernelcast.hlo.text import parse
from programs import TRAINING_STEP, final_text
from rounds import cpu_seconds, print_result, rate, ratio


def main() -> None:
    text = final_text(sys.argv[1] if len(sys.argv) > 1 else TRAINING_STEP)
    program = parse(text)
    # The same bytes as lines of words: as many strings as an HLO reader has tokens to make.
    words = json.dumps([line.split() for line in text.splitlines()])
    seconds = cpu_seconds(
        parse=lambda: parse(text), json=lambda: json.loads(words), format=lambda: format_program(program)
    )
    print_result(
        instructions=program.instruction_count,
        bytes=len(text),
        instructions_per_cpu_s=rate(program.instruction_count, seconds["parse"]),
        parse_over_json=ratio(seconds["parse"], seconds["json"]),
        format_over_parse=ratio(seconds["format"], seconds["parse"]),
    )


if __name__ == "__main__":
    main()
