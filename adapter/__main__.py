"""`python -m adapter` is `backlog-adapter`."""

from adapter.cli import main

if __name__ == "__main__":
    main()
