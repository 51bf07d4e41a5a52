"""Reads single files out of packages of a Python package index, without installing or importing them.

A wheel is a zip file: its directory and the wanted members are read by ranges, a few hundred kilobytes instead of hundreds of megabytes. An
sdist is a compressed tar file: it is read from the start, and no further than the last wanted member.
"""

import fnmatch
import io
import json
import os
import subprocess
import sys
import tarfile
import urllib.parse
import urllib.request
import zipfile

TIMEOUT = 180  # seconds, for one request


def index_url():
    """The index that pip is set up for."""
    url = os.environ.get("PIP_INDEX_URL", "")
    if not url:
        got = subprocess.run([sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True, check=False)
        url = got.stdout.strip()
    return (url or "https://pypi.org/simple").rstrip("/")


def _open(url, **headers):
    return urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=TIMEOUT)


def releases(package):
    """The files of a package as the index lists them: [{filename, url, size, hashes}]."""
    base = f"{index_url()}/{package}/"
    with _open(base, Accept="application/vnd.pypi.simple.v1+json") as r:
        files = json.load(r)["files"]
    for f in files:
        f["url"] = urllib.parse.urljoin(base, f["url"])
    return files


class Ranges(io.RawIOBase):
    """A file behind a URL, read by ranges of at least 64 KiB."""

    def __init__(self, url, size):
        self.url, self.size, self.at = url, size, 0
        self.start, self.data = 0, b""

    def seekable(self):
        return True

    def readable(self):
        return True

    def tell(self):
        return self.at

    def seek(self, offset, whence=io.SEEK_SET):
        self.at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self.at, io.SEEK_END: self.size}[whence]
        return self.at

    def read(self, n=-1):
        n = self.size - self.at if n < 0 else min(n, self.size - self.at)
        if n <= 0:
            return b""
        if not (self.start <= self.at and self.at + n <= self.start + len(self.data)):
            end = min(self.size, self.at + max(n, 1 << 16))
            with _open(self.url, Range=f"bytes={self.at}-{end - 1}") as r:
                if r.status != 206:
                    raise OSError(f"{self.url}: the index does not serve ranges")
                self.data = r.read()
            self.start = self.at
        i = self.at - self.start
        self.at += n
        return self.data[i : i + n]


def _wanted(name, patterns):
    return any(fnmatch.fnmatchcase(name, p) for p in patterns)


def members(release, patterns, last=None):
    """The members of a release that match one of the patterns, as {name: text}.

    Of an sdist the leading folder of each name is cut off, and reading ends once `last` is there.
    """
    out = {}
    if release["filename"].endswith(".whl"):
        with zipfile.ZipFile(Ranges(release["url"], release["size"])) as z:
            for name in z.namelist():
                if _wanted(name, patterns):
                    out[name] = z.read(name).decode()  # zipfile compares the member's CRC
        return out
    with _open(release["url"]) as r, tarfile.open(fileobj=r, mode="r|gz") as t:
        for m in t:
            name = m.name.partition("/")[2]
            if m.isfile() and _wanted(name, patterns):
                out[name] = t.extractfile(m).read().decode()
                if name == last:
                    break
    return out
