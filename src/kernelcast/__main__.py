"""``python -m kernelcast``: the command line where no script is on the path."""

from kernelcast.cli import main

if __name__ == "__main__":
    main()
