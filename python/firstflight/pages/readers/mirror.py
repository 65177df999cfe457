"""Mirror directories: a folder per host, as the course's `fetch.py` and `wget -m` make them.

Next to the directory `Paper` there may be `Paper.fetchlog/`, the browser's log of each page. Then the page is
what the browser requested. Without it the page is what the files refer to.

Servers send the mirror's files. `wget -k` turns references to other hosts into paths between folders
(`../static.example/a.css`). A browser that has an own address for every host cannot resolve them. So the
served files name the host again (`//static.example/a.css`), with leading blanks that keep the body's length:
URLs lose leading blanks.

The body of a URL is in the folder of its host, under its path. The names of the course's `fetch.py` are known
(`/` is `/index.html`, long targets are an md5), and so are those of `wget -m` (`index.html`, `.html`
appended, `@` for `?`, references rewritten to neighbouring files). No file outside the directory is read.
"""

from __future__ import annotations

import hashlib
import mimetypes
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from html import unescape
from pathlib import Path, PurePosixPath
from urllib.parse import quote, unquote, urlsplit

from firstflight.errors import PageInputError
from firstflight.model.page import Kind, LoadedPage, Spare
from firstflight.pages.assemble import make_page
from firstflight.pages.bodies import MOST_TEXT_BYTES, BodyStore, scannable
from firstflight.pages.discovery import Discovery, discover
from firstflight.pages.exchange import HTML, Exchange, Timing
from firstflight.pages.fields import TYPICAL_HEADER, request_sizes
from firstflight.pages.mentions import collect_mentions
from firstflight.pages.readers.fetchlog import FetchLog, Response, Transaction, read_fetchlog
from firstflight.pages.scheme import is_text
from firstflight.pages.times import Times, derive_times
from firstflight.pages.urls import absolute_url, normal_url, page_name, shorten, usable_url
from firstflight.pages.walk import Walk

_MOST_SEARCHED = 2_000
"""Limit for documents whose links are followed; in a larger site the user has to name the start page."""
_MOST_NAMED = 5
_MARKUP = re.compile(rb"<!doctype\s+html|<html\b", re.IGNORECASE)
_STARTS_WITHIN = 1 << 16
_FRAME = re.compile(rb"<i?frame\b[^>]*\ssrc\s*=\s*[\"']?\s*([^\s\"'>]+)", re.IGNORECASE)
_LINK = re.compile(rb"\shref\s*=\s*[\"']?\s*([^\s\"'>]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Recording:
    """A mirrored page.

    Attributes:
        exchanges: Requests and responses, not encoded; an initiator comes before what it discovers.
        discovery: The initiator of each.
        times: Server, processing and waiting times.
        log: The browser's log; `None`: the mirror has none.
        cached: Number of bodies that the browser had in its cache and did not request.
    """

    exchanges: list[Exchange]
    discovery: Discovery
    times: Times
    log: FetchLog | None = None
    cached: int = 0


def open_mirror(root: Path, url: str = "") -> LoadedPage:
    """Reads the page at `url` from the mirror directory `root`, with its bodies as served: not encoded.

    Without `url` it reads the likeliest start page (`_start_url`).

    Raises:
        PageInputError: The mirror has no such page, or its log is damaged.
    """
    if not url:
        root, url = _start_url(root)
    try:
        recording, files = _read(root, url)
        exchanges = [_as_served(e, logged=recording.log is not None) for e in recording.exchanges]
        name, source = page_name(url), f"mirror {root.name}"
        page = make_page(exchanges, recording.discovery, recording.times, name=name, source=source)
    except OSError as error:
        problem = f"{error.filename or root}: {error.strerror or error}"
        raise PageInputError(problem, "check the mirror's files and their permissions") from None
    mirror = MirrorBodies(root)
    bodies = {index: mirror.serve(e.body, e.mime) for index, e in enumerate(exchanges) if e.body}
    spare = mirror.spare(files, {e.url for e in exchanges})
    return LoadedPage(page, bodies, _notes(recording), spare=spare)


def read_recording(root: Path, url: str) -> Recording:
    """Reads the page at `url` from `root`, with the browser's log if there is one, else by its references."""
    return _read(root, url)[0]


def _read(root: Path, url: str) -> tuple[Recording, MirrorFiles]:
    log_path = root.with_name(f"{root.name}.fetchlog") / log_name(url)
    log = read_fetchlog(log_path) if log_path.is_file() else None
    files = MirrorFiles(root, log.renames if log else None)
    if log is not None:
        return _by_log(files, log), files
    path = files.find(url)
    if path is None:
        raise PageInputError(f"{root}: no file for the start page {shorten(url)}", _start_hint(root))
    return _by_references(files, normal_url(url), path), files


def log_name(url: str) -> str:
    """The name that the course's `sanitize_file` gives the log of `url`."""
    return "".join(c for c in url if c.isascii() and (c.isalnum() or c in "-_.() "))


def _as_served(exchange: Exchange, *, logged: bool) -> Exchange:
    """Adds the charset to the type: that of the log, or what its bytes show. A file is served whole."""
    if exchange.body is None:
        return exchange
    charset = exchange.charset if logged else undeclared_charset(exchange)
    mime = f"{exchange.mime}; charset={charset}" if exchange.mime and charset else exchange.mime
    return replace(exchange, mime=mime, status=200 if exchange.status == 304 else exchange.status)


def _by_log(files: MirrorFiles, log: FetchLog) -> Recording:
    exchanges = exchanges_of_log(log, files)
    mentions = collect_mentions(exchanges, files)
    discovery = discover(exchanges, mentions, files)
    return Recording(exchanges, discovery, derive_times(exchanges, discovery, log), log, len(mentions.cached))


def _by_references(files: MirrorFiles, url: str, path: Path) -> Recording:
    """The page at `url`, whose document is the file `path`. Links to other pages are not followed."""
    walk = _MirrorWalk(files)
    walk.reach(_exchange(url, "text/html", path), None, "document")
    walk.run()
    exchanges = _with_requests(walk.exchanges)
    discovery = walk.discovery({exchange.url for exchange in exchanges})
    return Recording(exchanges, discovery, Times.none(len(exchanges)))


class _MirrorWalk(Walk):
    """Follows a page of a mirror. References lead to files, scripts to files with a telling suffix."""

    def __init__(self, files: MirrorFiles) -> None:
        super().__init__(files)
        self._mirror = files
        self._assets = {url: path for url, path in files.urls().items() if _is_asset(path)}

    def answers(self, url: str, kind: Kind | None) -> list[Exchange]:
        """The file of `url`, unless it is loaded already."""
        path = self._mirror.find(url) if kind else self._assets[url]
        if path is None or url in self.places:
            return []
        mime = mime_of(path, kind) if kind else mimetypes.guess_type(path.name)[0] or ""
        return [_exchange(url, mime, path)]

    def unreached(self) -> list[str]:
        """The URLs of files that are not loaded."""
        loaded = {exchange.body for exchange in self.exchanges}
        return [url for url, path in self._assets.items() if path not in loaded]


def _is_asset(path: Path) -> bool:
    """Whether a script may fetch the file: its suffix tells its type, and it is no other page of the site."""
    mime = mimetypes.guess_type(path.name)[0]
    return mime is not None and mime not in HTML


def _exchange(url: str, mime: str, file: Path | None) -> Exchange:
    """An exchange whose body is the mirror's file, without a content coding."""
    size = file.stat().st_size if file else 0
    return Exchange(url, mime=mime, header_bytes=TYPICAL_HEADER, body_bytes=size, body=file, text=file)


def _with_requests(exchanges: list[Exchange], total: int = 0) -> list[Exchange]:
    """The exchanges with the sizes of their requests, whose sum is `total` if that is known."""
    sizes = request_sizes([exchange.url for exchange in exchanges], total)
    return [replace(e, request_bytes=size) for e, size in zip(exchanges, sizes, strict=True)]


def _notes(recording: Recording) -> list[str]:
    exchanges, initiators = recording.exchanges, recording.discovery.initiators
    counts = {
        "answers 'Not Modified', whose files are served in full": sum(
            e.status == 304 and e.body is not None for e in exchanges
        ),
        "answers without a file, served empty": sum(
            e.body is None and e.status == 200 and not e.redirect for e in exchanges
        ),
        "files from the browser's cache, left out": recording.cached,
        "references without an answer, listed and not requested": len(recording.discovery.missing),
        "initiators inferred from times or from names in scripts": sum(
            bool(i and i.inferred) for i in initiators
        ),
    }
    return [f"{text}: {count}" for text, count in counts.items() if count]


def _start_url(root: Path) -> tuple[Path, str]:
    """The mirror directory and start page for a directory that the user named without a URL.

    A directory with an `index.html` of its own is the folder of a host. Otherwise the start page is the
    document `index.html` of a host or, if there is none, any document. If there are several, it is that of
    the host after which the directory is named. Else it is the only one that no other document shows in a
    frame, else the only one that no other links to.

    Raises:
        PageInputError: There is no such page, or more than one.
    """
    if (root / "index.html").is_file():
        return root.absolute().parent, f"http://{root.absolute().name.lower()}/"
    files = MirrorFiles(root)
    left = _likeliest(_starts(files), files)
    if not left:
        raise PageInputError(f"{root}: which page? no host folder has an HTML document", _start_hint(root))
    if len(left) > 1:
        raise PageInputError(f"{root}: which page? {len(left)} could be meant", _start_hint(root))
    return root, left[0]


def _start_hint(root: Path) -> str:
    """Tells how to name a start page of the mirror at `root`: the likeliest ones, ready to be pasted."""
    files = MirrorFiles(root)
    left = _likeliest(_starts(files), files)
    if not left:
        return f"name the start page as '{root}#http://host/path'"
    more = f" or one of {len(left) - _MOST_NAMED} more" if len(left) > _MOST_NAMED else ""
    named = ", ".join(f"'{root}#{url}'" for url in left[:_MOST_NAMED])
    return f"name one: {named}{more}"


def _starts(files: MirrorFiles) -> dict[str, Path]:
    """The documents that can be a start page, by URL."""
    documents = {url: path for url, path in sorted(files.urls().items()) if _is_document(path)}
    fronts = {url: path for url, path in documents.items() if _is_front(url, path)}
    return fronts or documents


def _is_front(url: str, path: Path) -> bool:
    parts = urlsplit(url)
    return (parts.path, parts.query) == ("/", "") and path.name == "index.html"


def _is_document(path: Path) -> bool:
    """Whether it is markup. `wget -E` and servers also give scripts and data the suffix `.html`."""
    mime = mimetypes.guess_type(path.name)[0]
    if mime not in (None, *HTML):
        return False
    with path.open("rb") as file:
        start = file.read(_STARTS_WITHIN).removeprefix(b"\xef\xbb\xbf").lstrip()
    return bool(_MARKUP.match(start)) if mime is None else start.startswith(b"<")


def _likeliest(starts: dict[str, Path], files: MirrorFiles) -> list[str]:
    """The remaining start pages after all rules; a rule that would leave none is skipped."""
    left = dict(starts)
    name = files.root.absolute().name.lower()
    rules: tuple[Callable[[], set[Path]], ...] = (
        lambda: {path for url, path in left.items() if urlsplit(url).hostname not in (name, f"www.{name}")},
        lambda: _named(_FRAME, left.items(), files),
        lambda: _named(_LINK, left.items(), files),
    )
    for rule in rules:
        if 1 < len(left) <= _MOST_SEARCHED:
            out = rule()
            left = {url: path for url, path in left.items() if path not in out} or left
    return list(left)


def _named(attribute: re.Pattern[bytes], starts: Iterable[tuple[str, Path]], files: MirrorFiles) -> set[Path]:
    """The files that `attribute` of another document in `starts` names."""
    found: set[Path] = set()
    for base, path in starts:
        references = {
            unescape(word.decode("utf-8", "replace")) for word in attribute.findall(scannable(path))
        }
        targets = {files.find(url) for word in references if (url := files.resolve(word, base, path))}
        found |= {target for target in targets if target is not None and target != path}
    return found


def exchanges_of_log(log: FetchLog, files: MirrorFiles) -> list[Exchange]:
    """The log's transactions in order of their start, each with its response and recorded body.

    The browser saves the body at the end of redirects under the URL that it requested first.
    """
    answers = _answers(log)
    order = sorted(range(len(log.transactions)), key=lambda index: log.transactions[index].start_ms)
    heads = {index: index for index in order}
    for index in order:
        if (target := _redirect_target(index, order, log.transactions, answers)) is not None:
            heads[target] = heads[index]
    exchanges = []
    for index in order:
        asked, answer = log.transactions[index], answers[index]
        head = log.transactions[heads[index]].url
        file = None if answer.redirect else files.find(head) or files.find(asked.url)
        exchanges.append(
            replace(
                _exchange(normal_url(asked.url), answer.mime.lower(), file),
                status=answer.status,
                redirect=normal_url(answer.redirect),
                charset=answer.charset.lower(),
                timing=Timing(asked.start_ms, asked.start_ms, asked.end_ms),
            )
        )
    return _with_requests(exchanges, log.stats.get("tcp.write_bytes", 0))


def _answers(log: FetchLog) -> list[Response]:
    """The response of each transaction: the next unused one of the same URL."""
    waiting: dict[str, list[Response]] = {}
    for response in log.responses:
        waiting.setdefault(response.url, []).append(response)
    nothing = Response(200, "", "", "", "")
    return [(waiting.get(entry.url) or [nothing]).pop(0) for entry in log.transactions]


def _redirect_target(
    index: int, order: list[int], entries: list[Transaction], answers: list[Response]
) -> int | None:
    target, end = normal_url(answers[index].redirect), entries[index].end_ms
    if not target:
        return None
    later = (other for other in order if entries[other].start_ms >= end - 1)
    return next((other for other in later if normal_url(entries[other].url) == target), None)


_HOST_FOLDER = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*([:+]\d{1,5})?", re.IGNORECASE)
MOST_SPARE = 2_000
# Where browsers look for a document's declared encoding (HTML Standard, prescan a byte stream).
_DECLARED_WITHIN = 1_024
_DECLARED = re.compile(rb"<meta[^>]+charset\s*=|^\xef\xbb\xbf", re.IGNORECASE)
# A value that servers need not match (crates/lab, origin/answers): a time, a random number, an identifier.
_VARYING = re.compile(
    r"(?<=[?&;=])(?:(?:[-.:_TZ+]*\d){8,}[-.:_TZ+]*|(?=[^&;]*\d)[0-9A-Fa-f-]{16,})(?=[&;]|$)"
)
_URL = re.compile(rb"https?:(?:\\?/){2}[^\s\"'<>()\x7f-\xff]{1,2000}")
_MIME_OF_KIND: dict[Kind, str] = {"style": "text/css", "script": "text/javascript", "frame": "text/html"}
_MAGIC = {b"\x89PNG": "image/png", b"GIF8": "image/gif", b"\xff\xd8\xff": "image/jpeg", b"wOFF": "font/woff"}


class MirrorFiles:
    """The files of one mirror directory, by URL.

    Args:
        root: The directory with a folder per host.
        renames: Request targets (path and query) and the file names that replace them, from the fetch log.

    Raises:
        PageInputError: `root` cannot be listed.
    """

    def __init__(self, root: Path, renames: dict[str, str] | None = None) -> None:
        self.root = root
        self._renames = renames or {}
        self._files = _list_files(root)

    def find(self, url: str) -> Path | None:
        """The file with the body of `url`, or None."""
        try:
            parts = urlsplit(url)
            host = parts.netloc.rpartition("@")[2].lower()
        except ValueError:
            return None
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        if parts.fragment and f"{target}#{parts.fragment}" in self._renames:
            target = f"{target}#{parts.fragment}"
        folders = (host, host.replace(":", "+"), host.removesuffix(":80").removesuffix(":443"))
        for folder in dict.fromkeys(folders):
            for name in _names(target, self._renames):
                if path := self._files.get(f"{folder}/{name}"):
                    return path
        return None

    def resolve(self, reference: str, base_url: str, base_file: Path | None = None) -> str:
        """The absolute URL of `reference` in `base_url`, without fragment; '' if it has none.

        A reference that is only valid as a path between files, as `wget -k` writes them, becomes the URL of
        that file.
        """
        url = absolute_url(reference, base_url)
        if not url or base_file is None or self.find(url):
            return url
        return self._neighbour(reference, base_file) or url

    def urls(self) -> dict[str, Path]:
        """Every file in a host folder by a URL that may refer to it."""
        plausible = {url: path for key, path in self._files.items() if (url := _url_of(key))}
        renamed = {name: target for target, name in self._renames.items()}
        logged = ((key.partition("/"), path) for key, path in self._files.items())
        return plausible | {
            f"http://{host.lower()}{renamed[name]}": path
            for (host, _, name), path in logged
            if name in renamed
        }

    def _neighbour(self, reference: str, base_file: Path) -> str:
        here = base_file.parent.relative_to(self.root).as_posix()
        path = unquote(_clean(reference).split("#")[0])
        key = os.path.normpath(f"{here}/{path}")
        return _url_of(key) if key in self._files else ""


def _host_folders(root: Path) -> list[str]:
    """Names of the folders in `root` that can be hosts, sorted."""
    try:
        entries = sorted(entry.name for entry in os.scandir(root) if entry.is_dir(follow_symlinks=False))
    except OSError as error:
        raise PageInputError(
            f"{root}: {error.strerror or error}", "give a directory with a folder per host"
        ) from None
    return [name for name in entries if _HOST_FOLDER.fullmatch(name)]


def _list_files(root: Path) -> dict[str, Path]:
    """Files under the host folders by their path below `root`; folders that are links are not entered."""
    inside = root.resolve()
    files: dict[str, Path] = {}
    for host in _host_folders(root):
        for folder, _, names in os.walk(root / host, followlinks=False):
            for name in names:
                path = Path(folder, name)
                if _is_own_file(path, inside):
                    files[path.relative_to(root).as_posix()] = path
    return files


def _is_own_file(path: Path, inside: Path) -> bool:
    """Whether `path` is a regular file, or a link to one inside the mirror; no pipe, loop or outside file."""
    try:
        return path.is_file() and (not path.is_symlink() or path.resolve().is_relative_to(inside))
    except (OSError, RuntimeError):
        return False


def _names(target: str, renames: dict[str, str]) -> list[str]:
    """Possible file names of `target` in its host's folder, the likeliest first."""
    path, _, query = target.partition("?")
    full = f"{path}index.html" if path.endswith("/") else path
    plain = [f"{full}?{query}", f"{full}@{query}", f"{full}_{query}"] if query else [full]
    md5 = hashlib.md5(target.encode(), usedforsecurity=False).hexdigest()
    names = [renames.get(target, md5), md5, *(name.lstrip("/") for name in plain)]
    names += [unquote(name) for name in names]
    adjusted = [f"{name}.{suffix}" for name in names for suffix in ("html", "css")]
    return [*names, *adjusted, f"{path.strip('/')}/index.html"]


def _url_of(key: str) -> str:
    host, _, path = PurePosixPath(key).as_posix().partition("/")
    if not path or not _HOST_FOLDER.fullmatch(host):
        return ""
    path = path.removesuffix("index.html") if path.split("/")[-1] == "index.html" else path
    return normal_url(f"http://{host.lower().replace('+', ':')}/{quote(path, safe='/?=&+,;:@%!$()*~-._')}")


def _clean(reference: str) -> str:
    """Removes outer blanks, tabs and newlines, as the URL Standard does."""
    return re.sub(r"[\t\r\n]", "", reference.strip(" \t\r\n\f"))


def undeclared_charset(exchange: Exchange) -> str:
    """`utf-8` for a UTF-8 document that does not declare it: its lost header did."""
    text = exchange.read() if exchange.text_as == "html" else b""
    if text.isascii() or _DECLARED.search(text[:_DECLARED_WITHIN]):
        return ""
    try:
        text.decode()
    except UnicodeDecodeError:
        return ""
    return "utf-8"


class MirrorBodies:
    """The files of a mirror as they are served.

    Args:
        root: The mirror directory.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._hosts = [host for host in _host_folders(root) if "." in host]
        self._store = BodyStore(str(root))

    def serve(self, file: Path, mime: str) -> Path:
        """The file to serve for `file`: another one if the browser could not resolve its references."""
        if not is_text(mime) or file.stat().st_size > MOST_TEXT_BYTES:
            return file.absolute()
        body = file.read_bytes()
        served = _name_hosts(body, self._hosts)
        return file.absolute() if served == body else self._store.add([served], str(file))

    def spare(self, files: MirrorFiles, known: set[str]) -> tuple[Spare, ...]:
        """The files that no URL in `known` refers to, by their own names and by the names that texts use.

        Files from other visits to the same URL are left out: with two responses for it servers would send
        none.
        """
        urls = {url: path for url in self._written(files) if (path := files.find(url))} | files.urls()
        urls |= {f"{url}index.html": path for url, path in urls.items() if path.name == "index.html"}
        visited = {_without_varying(url) for url in known}
        spare = sorted(url for url in urls if usable_url(url) and _without_varying(url) not in visited)
        return tuple(self._spare(url, urls[url]) for url in spare[:MOST_SPARE])

    def _written(self, files: MirrorFiles) -> set[str]:
        """Every absolute URL in a text of the mirror, in the notations of HTML, style sheets and scripts."""
        small = (file for file in set(files.urls().values()) if file.stat().st_size <= MOST_TEXT_BYTES)
        written = (found for file in small for found in _URL.findall(file.read_bytes()))
        return {normal_url(url.decode().replace("\\", "").replace("&amp;", "&")) for url in written}

    def _spare(self, url: str, path: Path) -> Spare:
        mime = mimetypes.guess_type(urlsplit(url).path)[0] or mime_of(path, "other")
        return Spare(url, mime, self.serve(path, mime))


def _without_varying(url: str) -> str:
    path, mark, query = url.partition("?")
    return path + _VARYING.sub("", mark + query)


def _name_hosts(body: bytes, hosts: Iterable[str]) -> bytes:
    """`body` with `//host/` in place of each path that leads up to the folder of one of `hosts`."""
    names = b"|".join(re.escape(host.encode()) for host in hosts)
    pattern = rb"(?<![\w./%%-])(?:\.\./)+(?=(?:%s)/)" % names
    return re.sub(pattern, lambda climb: b"//".rjust(len(climb[0])), body) if names else body


def mime_of(path: Path, kind: Kind) -> str:
    """The MIME type of a file that is loaded as `kind`: by its first bytes, else by its name."""
    if kind in _MIME_OF_KIND:
        return _MIME_OF_KIND[kind]
    with path.open("rb") as file:
        start = file.read(4)
    for magic, mime in _MAGIC.items():
        if start.startswith(magic):
            return mime
    return mimetypes.guess_type(path.name)[0] or "application/octet-stream"
