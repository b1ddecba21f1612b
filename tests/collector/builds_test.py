# SPDX-License-Identifier: MIT
"""A build server uploads programs with their symbols, and kits; testers download the kits and send numbers only."""
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import uuid

import push_test
from harness import Collector, build_id, cases, encode_run
from push_test import environment, hotfn

COMPILER = os.environ.get("CC", "gcc")
WINDOWS = "__declspec(noinline) int work(int x) { return x * 3; }\nint other(int x) { return work(x) + 1; }\n" \
          "int entry(void) { return other(5) - 16; }\n"


def form(**files):
    """The body of a form, as browsers and curl -F send it.  files: name=path, or name=(file name, bytes)."""
    boundary, out = f"--------{uuid.uuid4().hex}", b""
    for name, content in files.items():
        title, content = content if isinstance(content, tuple) else (pathlib.Path(content).name, pathlib.Path(content).read_bytes())
        out += (f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"; filename="{title}"\r\n'
                "Content-Type: application/octet-stream\r\n\r\n").encode() + content + b"\r\n"
    return out + f"--{boundary}--\r\n".encode()


def upload(c, body, status=201, method="POST", token="", **parameters):
    found, _, answer = c.request(method, "/api/v1/symbols", body, token=token, app="game", **parameters)
    assert found == status, (found, answer[:400])
    return json.loads(answer)


def build_stripped(place):
    program = push_test.build(place, ("-O1", f"-Wl,-Map={place}/game.map"))
    subprocess.run(["strip", "-o", place / "game", program], check=True)
    return program, place / "game"


def check_names(place, c, stripped):
    """The record of a stripped program has no names, so the collector shows those of the registered build."""
    hotfn("run", "-q", "-o", place / "r.hfr", "--", stripped, 21)
    err = hotfn("push", "--to", f"http://127.0.0.1:{c.port}", "--app", "game", "--app-version", "1.2", place / "r.hfr",
                env=environment(place, 0, c.token("write", "game")))
    assert "stored" in err and "names" not in err, err
    rows = {row["name"]: row["calls"] for row in c.get("hot", app="game", build="1.2")["rows"]}
    assert (rows["branch"], rows["leaf"]) == (21, 42), rows


def an_image_and_its_map_name_a_build(place):
    program, stripped = build_stripped(place)
    with Collector(place) as c:
        answer = upload(c, form(image=stripped, map=place / "game.map"), version="1.2")
        assert answer["names"] > 5, answer
        built = c.get("builds", app="game")["builds"]
        assert len(built) == 1 and built[0]["registered"] and (built[0]["version"], built[0]["file"]) == ("1.2", "game"), built
        check_names(place, c, stripped)


def an_image_alone_names_a_build(place):
    program, stripped = build_stripped(place)
    with Collector(place) as c:
        first = upload(c, program.read_bytes(), method="PUT", version="1.2", file="folder/game")
        again = upload(c, form(image=program, pdb=("", b"")), version="1.2")  # no file was chosen as PDB
        assert first["build"] == again["build"] and first["names"] == again["names"] > 5, (first, again)
        check_names(place, c, stripped)


def a_pdb_names_a_build_with_and_without_its_image(place):
    clang, linker = shutil.which("clang"), shutil.which("lld-link")
    if not clang or not linker:
        raise cases.Skipped("clang or lld-link is not installed")
    for name, source in (("one", WINDOWS), ("two", WINDOWS.replace("* 3", "* 5"))):
        (place / f"{name}.c").write_text(source)
        subprocess.run([clang, "--driver-mode=cl", "--target=x86_64-pc-windows-msvc", "/O1", "/Z7", "/GS-", "/c", f"{name}.c"],
                       cwd=place, check=True)
        subprocess.run([linker, "/debug", f"/pdb:{name}.pdb", "/nodefaultlib", "/subsystem:console", "/entry:entry",
                        f"/out:{name}.exe", f"{name}.obj"], cwd=place, check=True)
    with Collector(place) as c:
        alone = upload(c, (place / "one.pdb").read_bytes(), version="7")
        both = upload(c, form(image=place / "one.exe", pdb=place / "one.pdb"), version="7")
        assert alone["build"] == both["build"] and alone["names"] >= 3, (alone, both)
        listed = json.loads(hotfn("list", "--json", "--pdb", place / "one.pdb", place / "one.exe"))["functions"]
        work = next(f for f in listed if "work" in f["names"])
        run = uuid.uuid4()  # the run of a Windows client; only the image id and the RVA matter
        body = encode_run(run, "one", {int(work["rva"], 16) if isinstance(work["rva"], str) else work["rva"]: 9})
        kind, _, digits = alone["build"].partition("-")
        head = bytes([1, 20]) + build_id("one")
        assert body.count(head) == 1
        identity = bytes([int(kind), len(digits) // 2]) + bytes.fromhex(digits)
        c.put(run, body.replace(head, identity), version="7")
        assert [(row["name"], row["calls"]) for row in c.get("hot", app="game")["rows"]] == [("work", 9)]
        error = upload(c, form(image=place / "one.exe", pdb=place / "two.pdb"), status=422)["error"]
        assert "another build" in error or "not the PDB" in error or "belongs" in error, error


def bad_uploads_are_refused_with_one_sentence(place):
    program, stripped = build_stripped(place)
    other = push_test.build(place, ("-O0",))
    with Collector(place, "--max-build", "200000") as c:
        whole = form(image=stripped, map=place / "game.map")
        assert "send the image" in upload(c, form(map=place / "game.map"), status=422)["error"]
        assert "cut off" in upload(c, whole[:-30], status=400)["error"]
        assert "cut off" in upload(c, b"--x", status=400)["error"]
        assert "cannot be read" in upload(c, form(image=("game", b"text")), status=422)["error"]
        assert "cannot be read" in upload(c, b"Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0" + bytes(100), status=422)["error"]
        assert "bytes" in upload(c, form(image=("game", bytes(200001))), status=413)["error"]
        assert "admin" in upload(c, whole, status=403, token=c.token("write", "game"))["error"]
        assert c.get("apps")["apps"] == []
        upload(c, whole, version="1.2")
        assert "1.2" in upload(c, form(image=other), status=409, version="1.2")["error"]
        assert len(c.get("builds", app="game")["builds"]) == 1


def testers_download_the_kit_of_a_build(place):
    program, stripped = build_stripped(place)
    assert "need --push" in hotfn("kit", "--app", "x", "-o", place / "kit", stripped, status=2)
    other = push_test.build(place, ("-O0",))
    with Collector(place) as c:
        url, admin, writer = f"http://127.0.0.1:{c.port}", environment(place, 0, c.admin), c.token("write", "game")
        (place / "token").write_text(writer + "\n")
        hotfn("kit", "--map", place / "game.map", "--push", url, "--app", "game", "--app-version", "it's 1.2", "--token-file",
              place / "token", "-o", place / "kit", stripped)
        common = ("push", "--to", url, "--app", "game", "--app-version", "it's 1.2", "--map", place / "game.map", "--build", stripped)
        assert "needs --build" in hotfn("push", "--to", url, "--kit", place / "kit", env=admin, status=2)
        assert "is not a kit" in hotfn(*common, "--kit", place, env=admin, status=1)
        found, _, body = c.request("GET", "/api/v1/kit", token=writer, app="game")
        assert found == 404 and b"has no kit" in body, body
        assert "and its kit" in hotfn(*common, "--kit", place / "kit", env=admin)
        assert "another build" in hotfn("push", "--to", url, "--app", "game", "--kit", place / "kit", "--build", other, env=admin,
                                        status=1)
        assert [b["kit"] for b in c.get("builds", app="game")["builds"] if b["version"] == "it's 1.2"] == [True]
        # A tester downloads it, counts, and sends the numbers.
        assert c.request("GET", "/api/v1/kit", token=c.token("write", "else"), app="game")[0] == 403
        found, headers, body = c.request("GET", "/api/v1/kit", token=writer, app="game", build="it's 1.2")
        assert found == 200 and "hotfn-kit.tar.gz" in headers["Content-Disposition"], headers
        machine = place / "machine"
        with tarfile.open(fileobj=io.BytesIO(body)) as archive:
            archive.extractall(machine)
        assert (machine / "token").stat().st_mode & 0o77 == 0
        subprocess.run([machine / "count", "-q", "-o", place / "k.hfr", "--", stripped, "30"], check=True,
                       env=environment(place, 1, ""))
        rows = {row["name"]: row["calls"] for row in c.get("hot", app="game", build="it's 1.2")["rows"]}
        assert (rows["branch"], rows["leaf"]) == (30, 60), rows
        # Bad kits.
        build = c.get("builds", app="game")["builds"][0]["build"]
        for status, content, image in ((422, b"no archive", build), (404, body, "1-00"), (403, body, build)):
            found = c.request("PUT", "/api/v1/kit", content, token=writer if status == 403 else "", app="game", build=image)
            assert found[0] == status, found
        c.stop()
        c.command_output("prune", "--app", "game", "--build", build)
        c.start()


CASES = [an_image_and_its_map_name_a_build, an_image_alone_names_a_build, a_pdb_names_a_build_with_and_without_its_image,
         bad_uploads_are_refused_with_one_sentence, testers_download_the_kit_of_a_build]

if __name__ == "__main__":
    sys.exit(cases.run(CASES, needs=[COMPILER, "strip", "tar"]))
