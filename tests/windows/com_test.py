#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Methods of COM objects (`hotfn run --runtime com`) under wine: a server and a client with known calls, and components
of wine.

    com_test.py BUILD HOTFN [CASE ...]     as windows_test.py

HOTFN_COM_OBJECTS is how many objects one case creates and releases [2000]."""
import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import windows_test
from windows_test import BUILD, ROOT, TOOL, cases, execute, read_record, run_windows

OBJECTS = int(os.environ.get("HOTFN_COM_OBJECTS", "2000"))
SUM, MISSING, REFUSING, PAGED, SINGLE = (f"{{5D1B6F1{n}-1234-4321-0102-030405060708}}" for n in range(5))
FACTORY = "{00000001-0000-0000-C000-000000000046}"
ISUM, ISCALE = (f"{{5D1B6F2{n}-1234-4321-0102-030405060708}}" for n in range(2))
WMI = "{4590F811-1D3A-11D0-891F-00AA004B2E24}"
holder = tempfile.TemporaryDirectory(prefix="hotfn_com_")
built = pathlib.Path(holder.name)
LINK, XML = "{00021401-0000-0000-C000-000000000046}", "{F5078F32-C551-11D3-89B9-0000F81FE221}"


def name_edges(report):
    names = [f["display"].split("(")[0] for f in report["functions"]]
    return [e | {"caller": names[e["caller"]], "callee": names[e["callee"]]} for e in report["edges"]
            if e["caller"] is not None]


def build_client(folder):
    """The client, whose server is registered in the prefix of wine.  Both are built once, in `built`."""
    if not (built / "client.exe").is_file():
        build_both(built)
    shutil.copy(built / "client.exe", folder)


def build_both(folder):
    source = ROOT / "tests/windows/com_work.cpp"
    command = ["x86_64-w64-mingw32-g++", "-O1", "-static", "-Wall", "-Wextra", "-Werror", source, "-lole32", "-luuid"]
    for options in (["-DSERVER", "-shared", "-o", "server.dll"], ["-o", "client.exe", "-ladvapi32", "-loleaut32", "-lpsapi", "-lwbemuuid"]):
        built = execute(folder, *command, *options)
        assert built.returncode == 0, built.stderr
    done = run_windows(folder, "client.exe", "register", *("Z:" + str(folder / name).replace("/", "\\")
                                                                for name in ("server.dll", "sums.tlb")))
    assert done.returncode == 0, done


def run_client(folder, *arguments, options=()):
    """The calls of methods, as hotfn counts them, of a run that prints the same as one without hooks."""
    bare = run_windows(folder, "client.exe", *arguments)
    hooked = run_windows(folder, TOOL, "run", "--no-cache", "--runtime", "com", *options, "--", "client.exe", *arguments)
    assert bare.returncode == hooked.returncode == 0 and bare.stdout and bare.stdout == hooked.stdout, (bare, hooked)
    counts = {f["name"]: f["calls"] for f in read_record(folder)["functions"] if f["calls"]}
    return {name: calls for name, calls in counts.items() if name.startswith("{")}, hooked.stderr.decode()


def split_memory(counts):
    """Calls of methods, and the creations and releases by their bytes."""
    memory = {name: calls for name, calls in counts.items() if " memory: " in name}
    return {name: calls for name, calls in counts.items() if name not in memory}, memory


def calls_failures_and_leaks_are_exact(folder):
    build_client(folder)
    counts, messages = run_client(folder, "work")
    counts, memory = split_memory(counts)
    # Of each object the server allocates 48 bytes; the first creation loads the server, too.
    created = {name: calls for name, calls in memory.items() if name.endswith("by creation")}
    assert created[f"{SUM} memory: 48 bytes allocated by creation"] >= 14 and sum(created.values()) == 16, memory
    assert memory[f"{SUM} memory: 48 bytes freed by release"] == 13, memory
    assert counts == {
        f"{SUM}::{ISUM}::method 3": 1000, f"{SUM}::{ISUM}::method 4": 20,
        # The name is in a type library that the registry names.
        f"{SUM}::IScale::Scale": 10, f"{SUM}::IScale::QueryInterface": 10, f"{SUM}::IScale::Release": 11,
        # Of each of ten objects three interfaces are asked for, and CoCreateInstanceEx asks for one.
        f"{SUM}::{ISUM}::QueryInterface": 31, f"{SUM}::{ISUM}::QueryInterface failed: 0x80004002": 10,
        f"{SUM}::{ISUM}::Release": 33,
        # The class object is known from CoGetClassObject on; both classes have the same table.
        f"{SUM}::IClassFactory::CreateInstance": 8, f"{SUM}::IClassFactory::QueryInterface": 2,
        f"{SUM}::IClassFactory::CreateInstance failed: 0x80040110": 1,
        f"{SUM}::IClassFactory::CreateInstance failed: 0x8007000e": 1, f"{SUM}::IClassFactory::Release": 2,
        f"{SUM} created": 16, f"{SUM} released": 13,
        f"{SUM} failed: 0x80040110 (IClassFactory::CreateInstance)": 1,
        f"{MISSING} failed: 0x80040154 (CoCreateInstance)": 4,
        f"{REFUSING} failed: 0x8007000e (CoCreateInstance)": 1,
    }, counts
    assert f"3 objects of the class {SUM} were not released" in messages, messages


def interfaces_that_methods_return_are_counted(folder):
    """The type library says which arguments are places for interfaces."""
    build_client(folder)
    for mode in ("count", "time"):
        counts, _ = run_client(folder, "make", options=["--mode", mode])
        counts, _ = split_memory(counts)
        wanted = {f"{SUM}::IMaker::Make": 12, f"{SUM}::IMaker::Make failed: 0x80004003": 1,
                  f"{SUM}::IPart::Count": 30, f"{SUM}::IPart::Release": 10, f"{SUM} created": 1, f"{SUM} released": 1}
        assert {name: counts.get(name) for name in wanted} == wanted, (mode, counts)


def methods_are_timed_where_their_arguments_are_known(folder):
    """Those of a known type, and those whose code is proven to have few arguments."""
    build_client(folder)
    counts, _ = run_client(folder, "work", options=["--mode", "time", "--module", "client.exe", "--module", "server.dll"])
    assert counts[f"{SUM}::{ISUM}::method 4 failed: 0x80004003"] == 10, counts
    shown = execute(folder, windows_test.NATIVE, "report", "--json", "--edges", "hotfn.hfr")
    report = json.loads(shown.stdout)
    assert all(f["state"] == "hooked" for f in report["functions"] if f["calls"]), report  # also when the process ends
    timed = {f["name"]: f["timed_calls"] for f in report["functions"] if f["timing"] == "full"}
    for name in (f"{ISUM}::method 3", f"{ISUM}::method 4", f"{ISUM}::QueryInterface", f"{ISUM}::Release",
                 "IScale::Scale", "IScale::Release", "IClassFactory::CreateInstance"):
        assert timed[f"{SUM}::{name}"] == counts[f"{SUM}::{name}"] > 0, (name, timed)
    calls = {(e["caller"], e["callee"]): e["calls"] for e in name_edges(report)}
    assert calls[f"{SUM}::{ISUM}::method 3", "Sum::Add"] == 1000, calls
    assert calls[f"{SUM}::IClassFactory::CreateInstance", "Factory::CreateInstance"] == 18, calls


def modules_that_are_selected_are_asked_for_class_objects(folder):
    build_client(folder)
    counts, _ = run_client(folder, "work", options=["--module", "client.exe", "--module", "server.dll"])
    # DllGetClassObject is the first call that sees the class object.
    assert counts[f"{SUM}::IClassFactory::CreateInstance"] == 18, counts
    assert counts[f"{SUM}::{ISUM}::method 3"] == 1000 and counts[f"{SUM} created"] == 16, counts


def harsh_programs_behave_as_without_hooks(folder):
    """Exceptions pass, copied tables and objects that go during a call are no obstacle, and proxies are left alone."""
    build_client(folder)
    for options in ([], ["--mode", "time"], ["-f", "*::Make"], ["-x", "*::AddRef"]):
        counts, messages = run_client(folder, "harsh", options=options)
        assert counts[f"{SUM}::IMaker::Make"] == 11 and "not released" not in messages, (options, counts, messages)
        if not options:
            wanted = {f"{SUM}::{ISUM}::method 3": 2, f"{SUM}::{ISUM}::AddRef": 4, f"{PAGED}::IPart::Count": 1,
                      f"{PAGED} released": 1,
                      f"{SINGLE}::{FACTORY} is left alone: its functions are not in the module of its table": 1}
            assert {name: counts.get(name) for name in wanted} == wanted, counts


def interfaces_are_named_by_the_users_list(folder):
    build_client(folder)
    listed, path = folder / "interfaces.txt", "Z:" + str(folder / "interfaces.txt").replace("/", "\\")
    listed.write_text(f"# of the server\n{ISUM.lower()} ISum Add Get\n")
    os.environ["HOTFN_COM_INTERFACES"] = path
    try:
        counts, _ = run_client(folder, "work")
        assert counts[f"{SUM}::ISum::Add"] == 1000 and counts[f"{SUM}::ISum::Get"] == 20, counts
        listed.write_text("ISum Add Get\n")
        counts, messages = run_client(folder, "work")
        assert counts[f"{SUM}::{ISUM}::method 3"] == 1000 and "interfaces.txt, line 1: " in messages, messages
        listed.unlink()
        _, messages = run_client(folder, "work")
        assert "interfaces.txt, the list of COM interfaces in HOTFN_COM_INTERFACES, cannot be read" in messages, messages
    finally:
        del os.environ["HOTFN_COM_INTERFACES"]


def methods_are_selected_by_name(folder):
    build_client(folder)
    counts, _ = run_client(folder, "work", options=["-f", "*::method 3"])
    assert counts == {f"{SUM}::{ISUM}::method 3": 1000}, counts


def components_of_the_system_print_the_same(folder):
    build_client(folder)
    counts, _ = run_client(folder, "system")
    wanted = {f"{LINK}::IShellLinkW::SetPath": 20, f"{LINK}::IShellLinkW::GetPath": 20, f"{LINK}::IPersistFile::IsDirty": 1,
              f"{LINK} created": 1, f"{LINK} released": 1, f"{XML}::IDispatch::Invoke": 2,
              f"{XML}::IDispatch::GetIDsOfNames": 2, f"{XML} created": 1, f"{XML} released": 1,
              # By the type library of msxml, which calls its methods by the table in Invoke.
              f"{XML}::IXMLDOMDocument3::get_xml": 2, f"{XML}::IXMLDOMDocument3::loadXML": 4,
              # Nodes are returned by methods, and never asked for by QueryInterface.
              f"{XML}::IXMLDOMElement::get_tagName": 5, f"{XML}::IXMLDOMElement::get_nodeName": 1,
              f"{WMI}::IWbemLocator::ConnectServer": 4, f"{WMI}::IWbemLocator::ConnectServer failed: 0x8004100e": 3,
              f"{WMI} created": 1, f"{WMI} released": 1}
    assert {name: counts.get(name) for name in wanted} == wanted, counts


def listen_to_client(folder, *options):
    """The calls of the methods, and what a listener of Linux shows of them."""
    build_client(folder)
    listener = subprocess.Popen([windows_test.NATIVE, "listen", *options, "udp:0"], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)
    port = listener.stderr.readline().split(":")[-1].strip()
    counts, _ = run_client(folder, "work", options=["--send", f"udp:127.0.0.1:{port}"])
    out, errors = listener.communicate(timeout=60)
    assert listener.returncode == 0, errors
    return counts, out.splitlines()


def events_of_objects_are_sent(folder):
    """Creations, releases and failures are events of their own, between begin and end of calls."""
    counts, lines = listen_to_client(folder, "--json")
    events = collections.Counter((event["event"], event.get("function")) for event in map(json.loads, lines))
    assert json.loads(lines[-1])["lost_datagrams"] == 0, lines[-1]
    assert events["created", f"{SUM} created"] == counts[f"{SUM} created"] == 16, events
    assert events["released", f"{SUM} released"] == 13, events
    for name in (f"{MISSING} failed: 0x80040154 (CoCreateInstance)", f"{SUM}::{ISUM}::QueryInterface failed: 0x80004002"):
        assert events["failed", name] == counts[name] > 0, events
    for kind in "entry", "exit":
        assert events[kind, f"{SUM}::IScale::Scale"] == 10, events
    assert not events["exit", f"{SUM} created"], events
    _, lines = listen_to_client(folder)
    for mark, event, count in ("+", "created", 16), ("-", "released", 13), ("!", "failed: 0x80040110 (IClassFactory::CreateInstance)", 1):
        assert sum(line.endswith(f" {mark} {SUM} {event}") for line in lines) == count, lines


def many_objects_come_and_go(folder):
    build_client(folder)
    assert run_windows(folder, "client.exe", "many", OBJECTS).stdout.strip() == b"done, not grown"
    counts, messages = run_client(folder, "many", OBJECTS)
    counts, memory = split_memory(counts)
    assert memory[f"{SUM} memory: 48 bytes freed by release"] == OBJECTS, memory
    assert counts == {f"{SUM} created": OBJECTS, f"{SUM} released": OBJECTS, f"{SUM}::{ISUM}::Release": OBJECTS}, counts
    assert "not released" not in messages, messages


def a_program_without_com_runs_and_is_reported(folder):
    windows_test.build_work(folder, "work.exe")
    done = run_windows(folder, TOOL, "run", "--no-cache", "--runtime", "com", "--", "work.exe", "x", "3")
    assert done.returncode == 3 and b"COM objects" in done.stderr, done
    assert (BUILD / "src/agent/hotfn-methods.dll").is_file()


if __name__ == "__main__":
    sys.exit(cases.run([calls_failures_and_leaks_are_exact, interfaces_that_methods_return_are_counted, methods_are_timed_where_their_arguments_are_known,
                        modules_that_are_selected_are_asked_for_class_objects,
                        interfaces_are_named_by_the_users_list, methods_are_selected_by_name, components_of_the_system_print_the_same, events_of_objects_are_sent,
                        harsh_programs_behave_as_without_hooks,
                        many_objects_come_and_go,
                        a_program_without_com_runs_and_is_reported], needs=("wine", "x86_64-w64-mingw32-g++")))
