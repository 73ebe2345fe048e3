"""The words users type and the numbers the core reads belong together."""

from yardmaster.engine import state
from yardmaster.schedulers.language import DISCIPLINES, PLACEMENTS


def test_every_discipline_and_placement_has_a_name():
    """What the core can do can be asked for, and nothing else can."""
    assert {member.name.lower() for member in state.Discipline} == set(DISCIPLINES)
    assert {member.name.lower() for member in state.Placement} == set(PLACEMENTS)


def test_headers_hold_their_places():
    """No place lies outside the header it belongs to."""
    assert max(state.NOW, state.CLIP_LOW, state.CLIP_HIGH) < state.REALS_HEADER
    assert max(state.RECORD, state.SEGMENT_END, state.BUCKET_NEXT) < state.HEADER
