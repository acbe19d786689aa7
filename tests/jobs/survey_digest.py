"""Prints a digest of all that a survey of some zoo variants finds. Usage: survey_digest.py VARIANT…"""

import hashlib
import sys

from kernelcast import zoo
from kernelcast.core.timing import Failure
from kernelcast.jobs.collection.zoo_source import ZooSource
from kernelcast.targets.pjrt.xla_cpu import XlaCpu

with XlaCpu() as target:
    found = hashlib.blake2b()
    for name in sys.argv[1:]:
        survey = ZooSource(zoo.find(name), target).survey(seed=5, random_plans=4)
        assert not isinstance(survey, Failure), survey
        found.update(repr(survey).encode())
    print(found.hexdigest())
