# SPDX-License-Identifier: MIT
"""Messages of Objective-C programs (`hotfn run --runtime objc`): generated programs count the calls of their own methods,
and hotfn's counts equal theirs; GNUstep's tools print the same with hooks as without.

HOTFN names the program.  HOTFN_SEEDS is the number of generated programs [4].  HOTFN_LIBOBJC2 is a folder in which
libobjc2 is installed (include/objc, lib/libobjc.so; its programs are compiled by clang)."""
import json
import os
import pathlib
import random
import re
import subprocess
import sys

import attach_test as base
import cases
import switch_test
from cases import Skipped

HOTFN = os.environ["HOTFN"]
SEEDS = int(os.environ.get("HOTFN_SEEDS", "4"))
MODES = ([], ["--mode", "time"], ["--mode", "time", "--clock", "cpu"], ["--mode", "time", "--module", "*"])
HEAD = r"""
#import <objc/objc.h>
#import <objc/runtime.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
typedef struct { double x, y; } Pair;
typedef struct { long a[6]; } Big;
static long counts[COUNT];
static __thread unsigned long sum;
static void note(int method, unsigned long value) { __sync_fetch_and_add(&counts[method], 1); sum = sum * 31 + value; }
@interface Root { Class isa; }
+ (id)make;
@end
@implementation Root
+ (id)make { __sync_fetch_and_add(&counts[0], 1); return class_createInstance(self, 0); }
@end
"""
# Declaration, body, and send of each kind of method; {n} is its number.
KINDS = [
    ("- (int)m{n}:(int)a", "note({n}, a); return a * 3 + 1;", "sum += [o m{n}:7];"),
    ("- (double)m{n}:(double)a with:(float)b and:(int)c", "note({n}, (unsigned long)(a * b) + c); return a + b * c;",
     "sum += (unsigned long)[o m{n}:1.5 with:2.25f and:4];"),
    ("- (Pair)m{n}:(Pair)p", "note({n}, (unsigned long)p.y); p.x += p.y; return p;",
     "sum += (unsigned long)[o m{n}:(Pair){{ 2.5, 8 }}].x;"),
    ("- (Big)m{n}:(Big)b by:(long)f", "note({n}, b.a[5]); for (int i = 0; i < 6; i++) b.a[i] *= f; return b;",
     "sum += [o m{n}:(Big){{ {{ 1, 2, 3, 4, 5, 6 }} }} by:3].a[5];"),
    ("- (long)m{n}:(long)a b:(long)b c:(long)c d:(long)d e:(long)e f:(long)f",
     "note({n}, a ^ f); return a - b + c - d + e * f;", "sum += [o m{n}:1 b:2 c:3 d:4 e:5 f:6];"),
    ("- (double)m{n}:(int)n, ...",
     "va_list v; double s = 0; va_start(v, n); while (n--) s += va_arg(v, double); va_end(v);"
     " note({n}, (unsigned long)s); return s;", "sum += (unsigned long)[o m{n}:4, 1.0, 2.0, 3.5, 4.5];"),
    ("+ (int)m{n}", "note({n}, 5); return 9;", "sum += [[o classOf] m{n}];"),
    ("- (int)m{n}", "note({n}, 6); @throw self; return 1;", "@try {{ [o m{n}]; }} @catch (id e) {{ sum += e == o; }}"),
    ("- (long double)m{n}:(long double)a", "note({n}, (unsigned long)a); return a / 2;",
     "sum += (unsigned long)[o m{n}:100.0L];"),
    ("- (_Complex double)m{n}:(_Complex double)a", "note({n}, (unsigned long)__real__ a); return a * a;",
     "sum += (unsigned long)__real__ [o m{n}:3.0 + 1.0i];"),
]


class Generated:
    """A program of random classes; methods send to methods with smaller numbers."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.names, self.methods = ["+[Root make]"], []
        self.classes, text = [], []
        for number in range(self.random.randint(3, 8)):
            text.append(self.write_class(number))
        self.text = HEAD.replace("COUNT", str(len(self.names))) + "".join(text) + self.write_main()

    def send(self, target):
        kind, owner, number = target
        users = [c for c in self.classes if owner in self.ancestors(c)]
        chosen = self.random.choice(users)
        body = KINDS[kind][2].format(n=number)
        body = body.replace("[o classOf]", f"C{chosen}")
        return f"{{ id o = [C{chosen} make]; (void)o; {self.typed(body, chosen)} free(o); }}\n"

    @staticmethod
    def typed(body, chosen):
        return body.replace("[o ", f"[(C{chosen} *)o ")

    def ancestors(self, number):
        found = [number]
        while self.parents[found[-1]] is not None:
            found.append(self.parents[found[-1]])
        return found

    parents = None

    def write_class(self, number):
        self.parents = self.parents or {}
        parent = self.random.choice([None, *self.classes]) if self.classes else None
        self.parents[number] = parent
        above = "Root" if parent is None else f"C{parent}"
        declared, bodies = [], []
        for _ in range(self.random.randint(2, 6)):
            kind = self.random.randrange(len(KINDS))
            method = len(self.names)
            head, body, _ = KINDS[kind]
            head = head.format(n=method)
            sends = "".join(self.send(self.random.choice(self.methods))
                            for _ in range(self.random.randint(0, 2)) if self.methods)
            declared.append(head + ";")
            bodies.append(f"{head} {{ {sends} {body.format(n=method)} }}")
            self.names.append(self.name(f"C{number}", head))
            self.new = (kind, number, method)
            self.pending = getattr(self, "pending", []) + [self.new]
        # A method that overrides one of the parent's and calls it, and a method for +initialize.
        shared = len(self.names)
        up = "[super shared];" if parent is not None else ""
        declared.append("- (void)shared;")
        bodies.append(f"- (void)shared {{ {up} note({shared}, 1); }}")
        self.names.append(f"-[C{number} shared]")
        begun = len(self.names)
        declared.append("+ (void)begun;")
        bodies.append(f"+ (void)begun {{ __sync_fetch_and_add(&counts[{begun}], 1); }}")
        self.names.append(f"+[C{number} begun]")
        bodies.append(f"+ (void)initialize {{ if (self == objc_getClass(\"C{number}\")) [self begun]; }}")
        self.classes.append(number)
        self.methods += self.pending
        self.pending = []
        return (f"@interface C{number} : {above}\n" + "\n".join(declared) + f"\n@end\n@implementation C{number}\n" +
                "\n".join(bodies) + "\n@end\n")

    @staticmethod
    def name(owner, head):
        selector = "".join(re.findall(r"\w*:", head.replace(", ...", ""))) or head.split(")")[1]
        return f"{head[0]}[{owner} {selector}]"

    def write_main(self):
        work = "".join(self.send(m) * self.random.randint(1, 3) for m in self.methods)
        work += "".join(f"{{ id o = [C{c} make]; [(C{c} *)o shared]; [(C{c} *)nil shared]; free(o); }}\n"
                        for c in self.classes)
        names = ", ".join(f'"{name}"' for name in self.names)
        return f"""
static void *work(void *rounds)
{{
    for (long i = 0; i < (long)rounds; i++) {{ {work} }}
    return (void *)sum;
}}
int main(void)
{{
    static const char *const names[] = {{ {names} }};
    pthread_t threads[3];
    void *result;
    for (long i = 0; i < 3; i++) pthread_create(&threads[i], NULL, work, (void *)(30 + i));
    for (int i = 0; i < 3; i++) {{ pthread_join(threads[i], &result); printf("sum %lx\\n", (unsigned long)result); }}
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++) printf("%s\\t%ld\\n", names[i], (long)counts[i]);
}}
"""


# ---- Running.

def build(folder, text, *options, compiler="gcc"):
    source, program = folder / "program.m", folder / "program"
    source.write_text(text)
    done = subprocess.run([compiler, "-std=gnu11", "-O2", "-w", "-fobjc-exceptions", "-pthread", "-o", program, source, *options, "-lobjc"],
                          capture_output=True, text=True)
    if "cannot execute" in done.stderr or "not installed" in done.stderr:
        raise Skipped("gcc has no Objective-C (package gobjc)")
    assert done.returncode == 0, done.stderr
    return program


def hook(folder, *words, options=(), status=0, **others):
    record = folder / "objc.hfr"
    done = subprocess.run([HOTFN, "run", "--runtime", "objc", *options, "-o", record, "--", *words],
                          capture_output=True, encoding="latin-1", timeout=300, **others)
    assert done.returncode == status, done
    shown = subprocess.run([HOTFN, "report", "--json", "-n", "0", record], capture_output=True, text=True, check=True)
    return done, {f["name"]: f for f in json.loads(shown.stdout)["functions"] if f["calls"] is not None}


def run_bare(*words, **others):
    return subprocess.run(words, capture_output=True, text=True, check=True, **others).stdout


def counts_equal_those_of_generated_programs(folder):
    check_generated_programs(folder, lambda text: build(folder, text))


def counts_equal_those_of_programs_of_libobjc2(folder):
    """The real one."""
    prefix = os.environ.get("HOTFN_LIBOBJC2")
    if not prefix:
        raise Skipped("HOTFN_LIBOBJC2 names no installed libobjc2")
    options = ["-fobjc-runtime=gnustep-2.0", f"-I{prefix}/include", f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib"]
    check_generated_programs(folder, lambda text: build(folder, text.replace("free(o)", "object_dispose(o)"), *options,
                                                        compiler="clang"))


def counts_equal_those_of_the_standin_for_libobjc2(folder):
    program = build_standin(folder, "g++")
    for mode in MODES:
        done, functions = hook(folder, program, options=mode)
        check_standin(run_bare(program), done, functions)
        if mode:
            assert functions["-[A throw]"]["timed_calls"] == functions["-[A throw]"]["calls"], functions


def check_generated_programs(folder, make):
    for seed in range(SEEDS):
        program = make(Generated(seed).text)
        expected = {name: int(calls) for name, calls in re.findall(r"(.*)\t(\d+)", run_bare(program))}
        assert sum(expected.values()) > 1000, expected
        for mode in MODES:
            done, functions = hook(folder, program, options=mode)
            assert done.stdout == run_bare(program) and "not counted" not in done.stderr, (seed, mode, done)
            found = {name: functions.get(name, {"calls": 0})["calls"] for name in expected}
            wrong = {name: (calls, found[name]) for name, calls in expected.items() if calls != found[name]}
            assert not wrong, (seed, mode, wrong)
            if mode and seed == 0:
                assert any(f.get("timed_calls") for name, f in functions.items() if name in expected), mode


def build_standin(folder, compiler, *options):
    """The stand-in has the name of libobjc2's library."""
    source = pathlib.Path(__file__).parent / "src/objc_standin.cc"
    command = [compiler, "-O2", "-Wall", "-Wextra", "-Werror", "-Wno-cast-function-type", "-pthread", *options]
    library, program = folder / "libobjc.so.4.6", folder / "standin"
    subprocess.run([*command, "-fvisibility=hidden", "-DLIBRARY", "-shared", "-fPIC", "-o", library, source], check=True)
    subprocess.run([*command, "-o", program, source, library, f"-Wl,-rpath,{folder}"], check=True)
    return program


def check_standin(bare, done, functions):
    expected = {name: int(calls) for name, calls in re.findall(r"(.*)\t(\d+)", bare)}
    assert len(expected) == 11 and sum(expected.values()) == 18401, expected
    assert done.stdout == bare and "not counted" not in done.stderr, done
    assert {name: functions[name]["calls"] for name in expected} == expected, functions


def a_class_at_the_address_of_a_disposed_one_has_its_own_methods(folder):
    program = build_standin(folder, "g++")
    for mode in MODES:
        done, functions = hook(folder, program, "dispose", options=mode)
        assert done.stdout == run_bare(program, "dispose"), done
        calls = {name: f["calls"] for name, f in functions.items() if name.startswith("-[")}
        assert calls == {"-[First add:to:]": 10, "-[Second add:to:]": 10}, (mode, calls)


def methods_are_selected_by_name(folder):
    program = build(folder, Generated(1).text)
    _, functions = hook(folder, program, options=["-f", "-?C0 *"])
    called = [name for name, f in functions.items() if f["calls"]]
    assert called and all(name.startswith("-[C0 ") for name in called), called


SWIZZLED = HEAD.replace("COUNT", "4") + r"""
#include <sys/wait.h>
#include <unistd.h>
@interface A : Root
- (int)one;
- (int)two;
@end
@implementation A
- (int)one { return 1; }
- (int)two { return 2; }
@end
int main(void)
{
    A *a = [A make];
    int sum = 0;
    for (int i = 0; i < 10; i++) sum += [a one];
    method_exchangeImplementations(class_getInstanceMethod([a class_], @selector(one)),
                                   class_getInstanceMethod([a class_], @selector(two)));
    for (int i = 0; i < 5; i++) sum += [a one];
    if (fork() == 0) {
        for (int i = 0; i < 100; i++) sum += [a two];
        _exit(sum == 120 ? 0 : 1);
    }
    int status;
    wait(&status);
    printf("%d %d\n", sum, status);
    return 0;
}
"""


def exchanged_methods_and_forked_children_are_counted(folder):
    text = SWIZZLED.replace("[a class_]", 'objc_getClass("A")')
    done, functions = hook(folder, build(folder, text))
    assert done.stdout == "20 0\n", done
    calls = {name: f["calls"] for name, f in functions.items() if name.startswith("-[A ")}
    assert sum(calls.values()) == 115 and calls["-[A one]"] == 10, calls


COMPARED = HEAD.replace("COUNT", "1") + r"""
#import <objc/message.h>
@interface A : Root
- (int)one;
- (int)two;
@end
@implementation A
- (int)one { return 1; }
- (int)two { return 2; }
@end
int main(void)
{
    A *a = [A make];
    Class class = objc_getClass("A");
    IMP found = (IMP)objc_msg_lookup(a, @selector(one));
    int sum = 0;
    printf("same %d\n", found == class_getMethodImplementation(class, @selector(one)));
    method_setImplementation(class_getInstanceMethod(class, @selector(two)), found);
    for (int i = 0; i < 10; i++) sum += [a two];
    printf("sum %d\n", sum);
    return 0;
}
"""


def functions_of_methods_can_be_compared_and_set(folder):
    """GNUstep compares them to learn whether a class overrides a method."""
    done, functions = hook(folder, build(folder, COMPARED))
    assert done.stdout == "same 1\nsum 10\n", done
    calls = {name: f["calls"] for name, f in functions.items() if name.startswith("-[A ")}
    assert calls == {"-[A one]": 10}, calls


SENT = HEAD.replace("COUNT", "1") + r"""
@interface A : Root
- (int)one;
- (int)two;
@end
@implementation A
- (int)one { return 1; }
- (int)two { return 2; }
@end
@interface B : A
- (int)two;
@end
@implementation B
- (int)two { return [super two]; }
@end
@interface Late : A
- (int)one;
@end
@implementation Late
- (int)one { return 3; }
@end
int main(void)
{
    char line[16];
    id a = [A make], b = [B make], late = [Late make];
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        for (int i = 0; i < 1000; i++) {
            [(A *)a one], [(B *)b two];
            if (line[0] == 'l') [(Late *)late one];
        }
        puts("done");
        fflush(stdout);
    }
    return 0;
}
"""


def methods_are_switched_and_the_dispatcher_gets_its_bytes_back(folder):
    check_switching(folder, build(folder, SENT), "/libobjc.so.4")


def check_switching(folder, program, library):
    """Off, in part on again, with a method that is sent for the first time while it is off, and on."""
    for mode in ("count", "time"):
        with Switched(folder, [program], "--runtime", "objc", "--mode", mode) as target:
            hooked = target.read_differences(library)
            assert hooked
            target.send("c")
            target.ctl("--mode", "off")
            assert not target.read_differences(library)
            target.send("l")
            target.ctl("--mode", mode, "-f", "-?Late *")
            assert target.read_differences(library) == hooked
            target.send("l")
            target.ctl("--mode", "off", "-f", "-?Late *")
            target.ctl("--mode", mode, "-f", "-?A two?", "-x", "-?A one?")
            target.send("l")
            target.ctl("--mode", "off")
            assert not target.read_differences(library)
            target.ctl("--mode", mode)
            target.send("l")
            target.ctl("--mode", "off")
            assert not target.read_differences(library)
            found = target.finish()
        calls = {name: found[name]["calls"] for name in ("-[A one]", "-[A two]", "-[B two]", "-[Late one]")}
        assert calls == {"-[A one]": 2000, "-[A two]": 3000, "-[B two]": 2000, "-[Late one]": 2000}, calls


def methods_that_are_sent_later_obey_the_latest_order(folder):
    """In a timed run they are counted, timed, or off, as those that were sent before."""
    program = build(folder, SENT)
    for globs in ((), ("-f", "-?*")):
        with Switched(folder, [program], "--runtime", "objc", "--mode", "time") as target:
            target.ctl("--mode", "count", *globs)
            target.send("l")
            target.ctl("--mode", "time", "-f", "-?Late *")
            target.send("l")
            target.ctl("--mode", "count", "-f", "-?Late *")
            target.ctl("--mode", "time", "-f", "-?A *")
            target.send("l")
            found = target.finish()
        calls = {name: (f["calls"], f["timed_calls"]) for name, f in found.items() if name.startswith("-[")}
        assert calls == {"-[A one]": (3000, 1000), "-[A two]": (3000, 1000), "-[B two]": (3000, 0),
                         "-[Late one]": (3000, 1000)}, (globs, calls)


def methods_of_the_standin_are_switched(folder):
    """objc_msgSend and its variants get their bytes back, too."""
    program = build_standin(folder, "g++")
    expected = {name: int(calls) for name, calls in re.findall(r"(.*)\t(\d+)", run_bare(program))}
    for mode in ("count", "time"):
        with Switched(folder, [program, "lines"], "--runtime", "objc", "--mode", mode) as target:
            hooked = target.read_differences("/libobjc.so.4.6")
            assert hooked
            for order in (mode, "off", mode, "off"):
                target.ctl("--mode", order)
                assert target.read_differences("/libobjc.so.4.6") == (set() if order == "off" else hooked), order
                target.send("c")
            found = target.finish()
        for name, calls in expected.items():  # of four rounds; a call of +initialize is made once
            assert found[name]["calls"] == (calls // 2 if calls % 4 == 0 else calls), (name, found[name], expected)


class Switched(switch_test.Counted):
    def __init__(self, folder, command, *options):
        super().__init__(folder, "run", *options, command=command)

    def read_differences(self, library):
        """Of the code of the library in memory from its file."""
        path = next(words[-1] for words in map(str.split, base.maps_of(self.pid)) if library in words[-1])
        return switch_test.differing_bytes(self.pid, path)


TOOLS = {
    "plparse": ["/usr/bin/plparse", "list.plist"],
    "pldes": ["/usr/bin/pldes", "list.plist"],
    "plser": ["/usr/bin/plser", "list.plist"],
    "sfparse": ["/usr/bin/sfparse", "texts.strings"],
    "cvtenc": ["/usr/bin/cvtenc", "-Unicode", "texts.strings"],
    "plutil": ["/usr/bin/plutil", "-lint", "list.plist"],
    "xmlparse": ["/usr/bin/xmlparse", "--help"],
    "defaults": ["/usr/bin/defaults", "domains"],
}


def tools_of_gnustep_print_the_same(folder):
    plist = "{ " + " ".join(f'"key{i}" = ( 1, "two {i}", <{i:04x}> );' for i in range(200)) + " }"
    (folder / "list.plist").write_text(plist)
    (folder / "texts.strings").write_text("".join(f'"text {i}" = "value {i}";\n' for i in range(100)))
    env = {**os.environ, "HOME": str(folder)}
    ran = 0
    for name, words in TOOLS.items():
        if not os.path.exists(words[0]):
            continue
        for mode in MODES[:2]:
            bare = subprocess.run(words, cwd=folder, env=env, capture_output=True, encoding="latin-1", timeout=60)
            done, functions = hook(folder, *words, options=mode, cwd=folder, env=env, status=bare.returncode)
            assert done.stdout == bare.stdout, (name, bare.stdout, done.stdout)
            sends = sum(f["calls"] for called, f in functions.items() if re.match(r"[-+]\[", called))
            assert sends > 100, (name, sends)
            ran += 1
    if not ran:
        raise Skipped("no GNUstep tools (package gnustep-base-runtime)")
    print("#", ran, "runs")


def a_program_without_the_runtime_runs_and_is_reported(folder):
    done, _ = hook(folder, "/bin/true")
    assert "Objective-C" in done.stderr, done


def a_runtime_with_another_dispatcher_is_reported(folder):
    library, program = folder / "libobjc.so", folder / "other"
    (folder / "objc.c").write_text("void *objc_msgSend(void *self, void *name) { (void)name; return self; }\n")
    (folder / "main.c").write_text("void *objc_msgSend(void *, void *);\n"
                                   "int main(void) { int x; return objc_msgSend(&x, 0) != &x; }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, folder / "objc.c"], check=True)
    subprocess.run(["gcc", "-o", program, folder / "main.c", library], check=True)
    done, _ = hook(folder, program)
    assert "objc_msgSend" in done.stderr, done


CASES = [
    counts_equal_those_of_generated_programs,
    counts_equal_those_of_the_standin_for_libobjc2,
    counts_equal_those_of_programs_of_libobjc2,
    a_class_at_the_address_of_a_disposed_one_has_its_own_methods,
    methods_are_selected_by_name,
    exchanged_methods_and_forked_children_are_counted,
    functions_of_methods_can_be_compared_and_set,
    methods_are_switched_and_the_dispatcher_gets_its_bytes_back,
    methods_that_are_sent_later_obey_the_latest_order,
    methods_of_the_standin_are_switched,
    tools_of_gnustep_print_the_same,
    a_program_without_the_runtime_runs_and_is_reported,
    a_runtime_with_another_dispatcher_is_reported,
]

if __name__ == "__main__":
    sys.exit(cases.run(CASES, needs=["gcc"]))
