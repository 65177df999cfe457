"""Where a mirror directory keeps the body of a URL: a folder per host, then the path.

Knows the names that the course's `fetch.py` gives (`/` is `/index.html`, long targets are an md5) and those
of `wget -m` (`index.html`, `.html` appended, `@` for `?`, references rewritten to neighbouring files). Never
leaves the directory.
"""

from __future__ import annotations

import hashlib
import mimetypes
import os
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from urllib.parse import quote, unquote, urlsplit

from firstflight.errors import PageInputError
from firstflight.model.page import Kind, Spare
from firstflight.pages.bodies import MOST_TEXT_BYTES, BodyStore
from firstflight.pages.exchange import Exchange
from firstflight.pages.scheme import is_text
from firstflight.pages.urls import absolute_url, normal_url, usable_url

_HOST_FOLDER = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*([:+]\d{1,5})?", re.IGNORECASE)
MOST_SPARE = 2_000
# Where browsers look for the encoding that a document declares (HTML Standard, prescan a byte stream).
_DECLARED_WITHIN = 1_024
_DECLARED = re.compile(rb"<meta[^>]+charset\s*=|^\xef\xbb\xbf", re.IGNORECASE)
# A value that servers let differ (crates/lab, origin/answers): a time, a random number, an identifier.
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
        """The absolute URL that `reference` means in `base_url`, without fragment; '' if it means none.

        A reference that only answers as a path between files, as `wget -k` rewrites them, becomes the URL of
        that file.
        """
        url = absolute_url(reference, base_url)
        if not url or base_file is None or self.find(url):
            return url
        return self._neighbour(reference, base_file) or url

    def urls(self) -> dict[str, Path]:
        """Every file in a host folder by a URL that may mean it."""
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
    """Whether `path` is a regular file, or a link to one inside the mirror: no pipe, no loop, no way out."""
    try:
        return path.is_file() and (not path.is_symlink() or path.resolve().is_relative_to(inside))
    except (OSError, RuntimeError):
        return False


def _names(target: str, renames: dict[str, str]) -> list[str]:
    """File names under the host folder that may hold `target`, the likeliest first."""
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
    """As the URL Standard does: outer blanks, and tabs and newlines anywhere, go."""
    return re.sub(r"[\t\r\n]", "", reference.strip(" \t\r\n\f"))


def undeclared_charset(exchange: Exchange) -> str:
    """`utf-8` for a document in it that does not say so itself: its header did, which no mirror keeps."""
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
        """The file to be served for `file`: another one if its references lead nowhere."""
        if not is_text(mime) or file.stat().st_size > MOST_TEXT_BYTES:
            return file.absolute()
        body = file.read_bytes()
        served = _name_hosts(body, self._hosts)
        return file.absolute() if served == body else self._store.add([served], str(file))

    def spare(self, files: MirrorFiles, known: set[str]) -> tuple[Spare, ...]:
        """The files that none of the URLs in `known` means: by their names, and by what texts call them.

        Not those of other pages' visits to the same URL: with two answers the servers would give none.
        """
        urls = {url: path for url in self._written(files) if (path := files.find(url))} | files.urls()
        urls |= {f"{url}index.html": path for url, path in urls.items() if path.name == "index.html"}
        visited = {_without_varying(url) for url in known}
        spare = sorted(url for url in urls if usable_url(url) and _without_varying(url) not in visited)
        return tuple(self._spare(url, urls[url]) for url in spare[:MOST_SPARE])

    def _written(self, files: MirrorFiles) -> set[str]:
        """Every absolute URL in a text of the mirror, as HTML, style sheets and scripts write it."""
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
    """`body` with `//host/` for each path that climbs to the folder of one of `hosts`."""
    names = b"|".join(re.escape(host.encode()) for host in hosts)
    pattern = rb"(?<![\w./%%-])(?:\.\./)+(?=(?:%s)/)" % names
    return re.sub(pattern, lambda climb: b"//".rjust(len(climb[0])), body) if names else body


def mime_of(path: Path, kind: Kind) -> str:
    """The type of a file that is loaded as `kind`: by its first bytes, else by its name."""
    if kind in _MIME_OF_KIND:
        return _MIME_OF_KIND[kind]
    with path.open("rb") as file:
        start = file.read(4)
    for magic, mime in _MAGIC.items():
        if start.startswith(magic):
            return mime
    return mimetypes.guess_type(path.name)[0] or "application/octet-stream"
