"""The command line: one file per group of commands, thin over ``kernelcast.jobs``."""

from kernelcast.cli.app import main as main
