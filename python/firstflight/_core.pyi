from typing import final

__all__ = [
    "PageError",
    "Simulator",
    "check_page",
    "in_the_clear",
    "over_tls",
    "page_schema",
    "synthesize",
    "unplaced",
]

class PageError(ValueError):
    at: str
    problem: str
    hint: str

@final
class Simulator:
    def __new__(cls, text: str) -> Simulator: ...
    def load(self, job: str) -> str: ...
    def trace(self, job: str) -> tuple[str, list[str]]: ...

def check_page(text: str) -> str: ...
def in_the_clear(text: str) -> str: ...
def over_tls(text: str) -> str: ...
def page_schema() -> str: ...
def synthesize(text: str, index: int) -> bytes: ...
def unplaced(text: str, index: int) -> list[int]: ...
