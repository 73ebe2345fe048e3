"""`yardmaster completion`: let the shell complete commands and options."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from yardmaster.cli.console import say


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="The shell to write for.")],
    /,
) -> None:
    """Print a script that lets a shell complete commands, options and choices.

    Put it where the shell looks, such as ~/.local/share/bash-completion/completions/yardmaster,
    ~/.zfunc/_yardmaster or ~/.config/fish/completions/yardmaster.fish.
    """
    from yardmaster.cli.app import app

    say(app.generate_completion(shell=shell))
