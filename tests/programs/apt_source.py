# SPDX-License-Identifier: MIT
"""Fetch and unpack the upstream tarball of a Debian source package.

apt runs with its own list of sources, index and cache below OUT/apt; the archive is the same
as that of the system's own apt.  Does not apply Debian's patches: the tests want upstream code.
"""
import pathlib
import subprocess

KEYRING = pathlib.Path("/usr/share/keyrings/debian-archive-keyring.gpg")


class Unavailable(Exception):
    """The source cannot be fetched; the text gives the reason."""


def apt(out, *arguments, cwd=None):
    folder = out / "apt"
    command = ["apt-get", "-q", "-o", f"Dir::Etc::sourcelist={folder}/sources.list",
               "-o", "Dir::Etc::sourceparts=/dev/null", "-o", f"Dir::State::lists={folder}/lists",
               "-o", f"Dir::Cache={folder}/cache", "-o", "APT::Sandbox::User=root", *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip() or "no message").splitlines()[-1]
        raise Unavailable(f"apt-get {arguments[0]}: {last}")


def source_lines():
    """deb-src lines for the archives that this system's apt takes Debian's packages from."""
    signed = f"[signed-by={KEYRING}] " if KEYRING.exists() else ""
    template = f"deb-src {signed}$(SITE) $(RELEASE) $(COMPONENT)"
    done = subprocess.run(["apt-get", "indextargets", "--format", template,
                           "Created-By: Packages", "Origin: Debian"],
                          capture_output=True, text=True)
    return sorted(set(done.stdout.splitlines()))


def prepare(out):
    """Create the private apt folder with its index, once."""
    folder = out / "apt"
    done = folder / "ready"
    if done.exists():
        return
    for name in ("lists/partial", "cache/archives/partial", "tarballs"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    lines = source_lines()
    if not lines:
        raise Unavailable("apt has no Debian archive (run 'apt-get update')")
    (folder / "sources.list").write_text("\n".join(lines) + "\n")
    apt(out, "update")
    done.touch()


def tarball(out, package):
    """The upstream tarball of a source package, downloaded if it is missing."""
    folder = out / "apt" / "tarballs" / package
    pattern = "*.orig.tar.*z"
    if not folder.exists():
        prepare(out)
        partial = folder.with_suffix(".partial")
        partial.mkdir(parents=True, exist_ok=True)
        apt(out, "source", "--download-only", "--tar-only", package, cwd=partial)
        partial.rename(folder)
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise Unavailable(f"source package {package}: {len(found)} upstream tarballs")
    return found[0]


def unpack(out, package, folder):
    """Unpack upstream's tree into folder, without its top folder."""
    folder.mkdir(parents=True)
    subprocess.run(["tar", "-xf", tarball(out, package), "--strip-components=1", "-C", folder],
                   check=True)
