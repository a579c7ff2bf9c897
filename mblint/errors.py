"""Mistakes that the user can mend: one line that says what, where and how."""

from __future__ import annotations


class UserError(Exception):
    """Ends the run with one line on standard error, never with a traceback.

    `message` names the thing and the place, `hint` the remedy; `exit_code` is 2 (usage or settings)
    unless the run found nothing to work on (4).
    """

    def __init__(self, message: str, hint: str = "", exit_code: int = 2) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.exit_code = exit_code

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


class SettingsError(UserError):
    """A settings file that cannot be read, or a key or value in it that is wrong."""
