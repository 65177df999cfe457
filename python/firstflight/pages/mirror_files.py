"""Where a mirror directory keeps the body of a URL: a folder per host, then the path.

Knows the names that the course's `fetch.py` gives (`/` is `/index.html`, long targets are an md5) and those
of `wget -m` (`index.html`, `.html` appended, `@` for `?`, references rewritten to neighbouring files). Never
leaves the directory.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path, PurePosixPath
from urllib.parse import quote, unquote, urlsplit

from firstflight.errors import PageInputError
from firstflight.pages.archives.urls import absolute_url, normal_url

_HOST_FOLDER = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*([:+]\d{1,5})?", re.IGNORECASE)


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


def host_folders(root: Path) -> list[str]:
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
    for host in host_folders(root):
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
