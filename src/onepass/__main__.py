"""``python -m onepass`` is the ``onepass`` command."""

from .cli import main

if __name__ == "__main__":
    main(prog_name="onepass")
