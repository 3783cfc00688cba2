"""`python -m memoranda` is the `memoranda` command."""

from memoranda.cli.main import main

if __name__ == "__main__":
    main()
