"""`python -m engramfs` is the command `engramfs`."""

from engramfs.cli.main import main

main()
