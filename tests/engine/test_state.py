"""The words users type and the numbers the core reads belong together."""

from yardmaster.engine import state
from yardmaster.schedulers.language import DISCIPLINES, PLACEMENTS


def test_every_discipline_and_placement_has_a_name():
    """What the core can do can be asked for, and nothing else can."""
    assert {member.name.lower() for member in state.Discipline} == set(DISCIPLINES)
    placements = {member.name.lower() for member in state.Placement}
    assert placements | {"milp"} == set(PLACEMENTS)  # which decides outside of the core
