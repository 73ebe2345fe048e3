"""Why a request gets no answer, as a sentence and an HTTP status."""

from __future__ import annotations

from yardmaster.errors import YardmasterError


class Refusal(YardmasterError):  # noqa: N818  (an answer, not only an error)
    """A request that is not answered: `raise Refusal(404, "There is no run named 'x'.")`."""

    def __init__(self, status: int, sentence: str) -> None:
        self.status = status
        super().__init__(sentence)
