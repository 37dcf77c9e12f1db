"""What a command says when it cannot go on. Light, because `main` imports it."""

FAILED = 1
MISUSED = 2


class Problem(Exception):
    """One line for the person at the terminal, and the exit code.

    Args:
        message: what is wrong and the way out.
        exit_code: 1 when the work failed, 2 when the command was given wrongly.
    """

    def __init__(self, message: str, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.exit_code = exit_code
