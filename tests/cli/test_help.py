"""Help: what every option says of itself."""

from __future__ import annotations

from collections.abc import Iterator

from cyclopts import App

from yardmaster.cli.app import app


def leaves(parent: App) -> Iterator[App]:
    """Every command that does something, however deep."""
    for name in parent:
        if name.startswith("-"):
            continue
        child = parent[name]
        yield from leaves(child) if child.default_command is None else [child]


def test_every_option_has_text():
    """No option or argument of any command is left unexplained, and each command has a sentence."""
    commands = list(leaves(app))
    assert len(commands) > 30
    for command in commands:
        assert command.help
        for argument in command.assemble_argument_collection():
            is_group = argument.name == "*"  # of options that stand for themselves
            assert is_group or argument.parameter.help, (
                f"{command.name}: {argument.name} says nothing"
            )


def test_options_are_words():
    """No option is a choice of coded integers: choices have names."""
    for command in leaves(app):
        for argument in command.assemble_argument_collection():
            for choice in argument.get_choices() or ():
                assert not choice.isdecimal(), f"{command.name}: {argument.name} {choice}"
