#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests of the oracles: they accept correct results and find every injected fault.

    oracle_test.py FOLDER        FOLDER: output of build_programs

pretend_hotfn.py replaces hotfn and reports callgrind's counts.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import breakpoints
import callgrind_file
import elf_tables

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = HERE.parent / "programs"
FOLDER = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else "/nonexistent")
LAYOUT_DEPENDENT = """
#include <stdint.h>
#include <stdlib.h>
__attribute__((noipa)) void by_heap(void) { __asm__ volatile(""); }
__attribute__((noipa)) void by_stack(void) { __asm__ volatile(""); }
__attribute__((noipa)) void by_image(void) { __asm__ volatile(""); }
__attribute__((noipa)) void fixed(void) { __asm__ volatile(""); }
int main(void)
{
    for (uintptr_t n = (uintptr_t)malloc(1) / 16 % 61; n > 0; n--) by_heap();
    for (uintptr_t n = (uintptr_t)&n / 16 % 61; n > 0; n--) by_stack();
    for (uintptr_t n = (uintptr_t)main / 4096 % 61; n > 0; n--) by_image();
    for (int n = 0; n < 100; n++) fixed();
    return 0;
}
"""
BEGINS_IN_FRAME = """
__asm__(".globl in_frame\\n.type in_frame, @function\\nin_frame: .cfi_startproc\\n"
        ".cfi_def_cfa_offset 24\\nret\\n.cfi_endproc\\n.size in_frame, . - in_frame\\n"
        ".globl plain\\n.type plain, @function\\nplain: .cfi_startproc\\n"
        "ret\\n.cfi_endproc\\n.size plain, . - plain\\n"
        ".globl plain.__part.7\\n.type plain.__part.7, @function\\nplain.__part.7: .cfi_startproc\\n"
        "ret\\n.cfi_endproc\\n.size plain.__part.7, . - plain.__part.7\\n");
void in_frame(void), plain(void), block(void) __asm__("plain.__part.7");
static void (*volatile indirectly[])(void) = { in_frame, plain, block };
int main(void)
{
    for (int n = 0; n < 9; n++) indirectly[n % 3]();
    return 0;
}
"""
OTHER_UNDER_VALGRIND = """
#include <stdlib.h>
#include <string.h>
__attribute__((noipa)) void only_native(void) { __asm__ volatile(""); }
__attribute__((noipa)) void always(void) { __asm__ volatile(""); }
int main(int argc, char **argv)
{
    for (int n = 0; n < argc + (int)strlen(argv[2]); n++) always();
    if (!strstr(getenv("LD_PRELOAD"), "vgpreload"))
        for (int n = 0; n < 5; n++) only_native();
    return 0;
}
"""

PRINTS_ADDRESSES = """
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    printf("%p %p %p %p", (void *)main, (void *)argv[0], (void *)&argc, malloc(1));
    return 0;
}
"""


def run(*command):
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, timeout=300)
    return done.returncode, done.stdout


class OracleTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="hotfn_oracle_test_")
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def pretend(self, faults=""):
        """A command that replaces hotfn, with faults."""
        path = self.folder / "hotfn"
        path.write_text(f"#!/bin/sh\nexport PRETEND_FAULTS='{faults}'\n"
                        f'exec {HERE}/pretend_hotfn.py "$@"\n')
        path.chmod(0o755)
        return path

    def built(self, name):
        status, text = run(PROGRAMS / "build_programs", FOLDER, name, "--compiler=gcc")
        self.assertEqual(status, 0, text)
        return FOLDER / "gcc" / name

    def expect(self, wanted_status, wanted_text, *command):
        status, text = run(*command)
        self.assertEqual(status, wanted_status, text)
        self.assertIn(wanted_text, text)


class CallgrindCounts(OracleTest):
    def counts(self, status, text, faults="", program="cxx_exceptions"):
        self.expect(status, text, HERE / "callgrind_counts.py", "--hotfn", self.pretend(faults),
                    "--layouts", "1", "--", self.built(program))

    def test_accepts_equal_counts(self):
        self.counts(0, "unexplained: 0")

    def test_finds_one_call_too_many(self):
        self.counts(1, "UNEXPLAINED: dive at", "add:dive=1")

    def test_finds_one_lost_call(self):
        self.counts(1, "UNEXPLAINED: throw_text at", "add:throw_text=-1")

    def test_finds_calls_of_a_function_never_called(self):
        self.counts(1, "unexplained: 1", "add:measure.cold=3")

    def test_finds_a_function_that_is_not_listed(self):
        self.counts(1, "UNEXPLAINED: main at", "drop:main")

    def test_rejects_a_called_function_as_fragment(self):
        self.counts(1, "UNEXPLAINED: nest at", "state:nest=fragment")

    def test_accepts_a_cold_part_as_fragment(self):
        self.counts(0, "fragment (by jumps, landing pad, frame or name): keep_one.cold",
                    "state:keep_one.cold=fragment")

    def test_accepts_a_fragment_whose_unwind_data_begins_with_a_frame(self):
        source, program = self.folder / "frames.c", self.folder / "frames"
        source.write_text(BEGINS_IN_FRAME)
        subprocess.run(["gcc", "-O1", "-o", program, source], check=True)
        for faults, status in (("state:in_frame=fragment", 0), ("state:plain=fragment", 1),
                               ("state:plain.__part.7=fragment", 0)):
            self.expect(status, f"unexplained: {status}", HERE / "callgrind_counts.py",
                        "--layouts", "2", "--hotfn", self.pretend(faults), "--", program)

    def test_rejects_exclusion_of_ordinary_functions(self):
        self.counts(1, "UNEXPLAINED: reopen at", "state:reopen=excluded")

    def test_accepts_exclusion_of_start_up_code(self):
        self.counts(0, "zero-size or start-up symbol: _start", "state:_start=excluded")

    def test_prints_refused_functions(self):
        self.counts(0, "refused, reason in the report: nest", "state:nest=refused")

    def test_classifies_jumps_to_the_own_entry(self):
        self.counts(0, "jump to own entry, not counted by hotfn: spin_loop at",
                    "add:spin_loop=-5000", program="hazard_entry_loop")

    def test_finds_a_wrong_count_with_jumps_to_the_own_entry(self):
        self.counts(1, "UNEXPLAINED: spin_loop at", "add:spin_loop=-4999",
                    program="hazard_entry_loop")

    def test_finds_an_entry_loop_that_is_counted_but_not_flagged(self):
        self.counts(1, "UNEXPLAINED: spin_loop at", "unflag:spin_loop", program="hazard_entry_loop")

    def test_finds_a_changed_exit_status(self):
        self.counts(2, "output or status", "break:status")

    def test_finds_changed_output(self):
        self.counts(2, "output or status", "break:output")


class LayoutDependence(OracleTest):
    def counts(self, status, text, faults, options=()):
        source, program = self.folder / "layout.c", self.folder / "layout"
        source.write_text(LAYOUT_DEPENDENT)
        subprocess.run(["gcc", "-O1", "-o", program, source], check=True)
        self.expect(status, text, HERE / "callgrind_counts.py", *options, "--hotfn",
                    self.pretend(faults), "--", program)

    def test_detects_counts_that_depend_on_the_heap(self):
        self.counts(0, "depends on layout or time: by_heap", "add:by_heap=1")

    def test_detects_counts_that_depend_on_the_stack(self):
        self.counts(0, "depends on layout or time: by_stack", "add:by_stack=1")

    def test_detects_counts_that_depend_on_the_image(self):
        self.counts(0, "depends on layout or time: by_image", "add:by_image=1")

    def test_runs_more_layouts_if_the_first_do_not_differ(self):
        self.counts(0, "depends on layout or time: by_heap", "add:by_heap=1",
                    ["--layouts", "1", "--more-layouts", "3", "--witness-hits", "0"])

    def test_rejects_counts_far_outside_the_range(self):
        self.counts(1, "UNEXPLAINED: by_heap", "add:by_heap=1000")

    def test_rejects_differences_of_constant_counts(self):
        self.counts(1, "UNEXPLAINED: fixed", "add:fixed=1")


class Witness(OracleTest):
    """If a program behaves differently under valgrind, gdb's native count decides."""

    def counts(self, status, text, faults):
        source, program = self.folder / "native.c", self.folder / "native"
        source.write_text(OTHER_UNDER_VALGRIND)
        subprocess.run(["gcc", "-O1", "-o", program, source], check=True)
        self.expect(status, text, HERE / "callgrind_counts.py", "--layouts", "2", "--hotfn",
                    self.pretend(faults), "--", program, "with", "argu ments")

    def test_accepts_the_native_count(self):
        self.counts(0, "gdb's count is equal: only_native", "add:only_native=5")

    def test_rejects_another_count(self):
        self.counts(1, "UNEXPLAINED: only_native", "add:only_native=6")

    def library_counts(self, status, text, faults):
        source, program = self.folder / "native.c", self.folder / "host"
        source.write_text(OTHER_UNDER_VALGRIND.replace("main(", "work("))
        library = self.folder / "libnative.so"
        subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
        source.write_text("int work(int, char **);\n"
                          "int main(int argc, char **argv) { return work(argc, argv); }\n")
        subprocess.run(["gcc", "-O1", "-o", program, source, library], check=True)
        self.expect(status, text, HERE / "callgrind_counts.py", "--layouts", "2", "--module", "*",
                    "--hotfn", self.pretend(faults), "--", program, "with", "argu ments")

    def test_accepts_the_native_count_in_a_library(self):
        self.library_counts(0, "gdb's count is equal: only_native", "add:only_native=5")

    def test_rejects_another_count_in_a_library(self):
        self.library_counts(1, "UNEXPLAINED: only_native", "add:only_native=6")

    def test_rejects_a_count_of_neither_run(self):
        self.counts(1, "UNEXPLAINED: always", "add:always=-1")


    def test_native_run_has_the_memory_layout_of_the_counted_run(self):
        command = callgrind_file.without_randomisation()
        if not command or not shutil.which("gdb"):
            self.skipTest("no gdb, or no run without randomisation")
        source, program = self.folder / "where.c", self.folder / "where"
        source.write_text(PRINTS_ADDRESSES)
        subprocess.run(["gcc", "-O1", "-o", program, source], check=True)
        [main] = [address for address, symbol in elf_tables.own_text_symbols(program).items()
                  if symbol.name == "main"]
        for filler in 200, 3000:
            variables = callgrind_file.make_environment({}, self.folder, 0, callgrind_file.UNDER_HOTFN)
            wanted = subprocess.run([*command, program], env={**variables, "HOTFN_RUN": "x" * filler},
                                    capture_output=True, check=True).stdout
            place = callgrind_file.read_place(self.folder)
            variables = callgrind_file.make_environment({}, self.folder, 0, callgrind_file.NATIVE)
            hits = breakpoints.count({(str(program), main)}, [program], self.folder, variables, place=place)
            self.assertEqual(list(hits.values()), [1])
            self.assertEqual((self.folder / "witness.out").read_bytes(), wanted)


class KnownTotals(OracleTest):
    def totals(self, status, text, faults="", program="hazard_short"):
        self.expect(status, text, HERE / "known_totals.py", "--hotfn", self.pretend(faults), "--",
                    self.built(program))

    def test_agrees_with_callgrind(self):
        self.totals(0, "9 totals, 0 wrong")

    def test_finds_a_lost_call(self):
        self.totals(1, "WRONG  hazard_short:two_bytes 999, wanted 1000", "add:two_bytes=-1")

    def test_finds_a_loop_that_is_counted_but_not_flagged(self):
        self.totals(1, "WRONG  hazard_entry_loop:spin_loop 6000, wanted 1000 or 6000",
                    "unflag:spin_loop", "hazard_entry_loop")

    def test_accepts_refusal_of_an_optional_function(self):
        self.totals(0, "refused (made_up)", "state:one_byte=refused")

    def test_finds_a_missing_function(self):
        self.totals(1, "is not in the report", "drop:one_byte")


class Coverage(OracleTest):
    def coverage(self, status, text, faults=""):
        self.expect(status, text, HERE / "coverage.py", "--hotfn", self.pretend(faults),
                    self.built("cxx_exceptions_static"))

    def test_holds_when_all_is_hookable(self):
        self.coverage(0, "holds: 100.000 %")

    def test_finds_a_called_function_taken_for_a_fragment(self):
        self.coverage(1, "WRONG: called a fragment", "verdict:dive=fragment")

    def test_finds_a_refusal_without_reason(self):
        self.coverage(1, "WRONG: refused, no reason", "verdict:dive=refused")

    def test_finds_an_entry_that_is_not_listed(self):
        self.coverage(1, "MISSING: not listed", "drop:dive")

    def test_finds_hooks_inside_frames(self):
        self.coverage(1, "2 hooks inside frames", "inside:2")


class Survive(OracleTest):
    def survive(self, status, text, faults="", timeout=240):
        self.expect(status, text, PROGRAMS / "survive", "--hotfn", self.pretend(faults),
                    "--programs", FOLDER, "--timeout", str(timeout), "longjmp-gcc")

    def test_holds_when_nothing_changes(self):
        self.survive(0, "ok      longjmp-gcc")

    def test_finds_a_changed_status(self):
        self.survive(1, "status differs", "break:status")

    def test_finds_changed_output(self):
        self.survive(1, "+an extra line", "break:output")

    def test_finds_a_hang(self):
        self.survive(1, "still running after 6 s", "break:hang", 6)


if __name__ == "__main__":
    unittest.main(verbosity=2)  # names each test, and why one was skipped
