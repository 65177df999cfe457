__all__ = ["PageError", "check_page", "page_schema", "synthesize"]

class PageError(ValueError):
    at: str
    problem: str
    hint: str

def check_page(text: str) -> str: ...
def page_schema() -> str: ...
def synthesize(text: str, index: int) -> bytes: ...
