"""``python -m turnwatch``: the command where the script is not on the path."""

from turnwatch.cli import main

if __name__ == "__main__":
    main()
