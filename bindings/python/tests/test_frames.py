# SPDX-License-Identifier: MIT
"""Frames by thread, the call tree by name, and its drawing, of a program whose calls are known."""
import subprocess
import sys

import pytest
from test_times import tool  # noqa: F401  (fixture)

import hotfn
from hotfn import columns as _columns
from hotfn import tree as _tree

numpy = pytest.importorskip("numpy")
pandas = pytest.importorskip("pandas")

SOURCE = """
#include <pthread.h>
#define OWN __attribute__((noinline, noclone))
volatile long sink;
static pthread_barrier_t both;     /* no thread uses the row of an ended one */
OWN void leaf(long n) { for (long i = 0; i < n; i++) __atomic_fetch_add(&sink, i, __ATOMIC_RELAXED); }
OWN void twice(long n) { sink = n; leaf(n); leaf(n); sink++; }
OWN void *work(void *times)
{
    pthread_barrier_wait(&both);
    for (long i = 0; i < (long)times; i++)
        twice(20000);
    leaf(10000);
    return times;
}
int main(void)
{
    pthread_t threads[2];
    pthread_barrier_init(&both, 0, 2);
    pthread_create(&threads[0], 0, work, (void *)3L);
    pthread_create(&threads[1], 0, work, (void *)5L);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    twice(20000);
    return 0;
}
"""
CALLS = [{"work": 1, "twice": 3, "leaf": 7}, {"work": 1, "twice": 5, "leaf": 11}, {"twice": 1, "leaf": 2}]


@pytest.fixture(scope="module")
def program(compiler, tmp_path_factory):
    folder = tmp_path_factory.mktemp("frames")
    (folder / "threads.c").write_text(SOURCE)
    subprocess.run([compiler, "-O2", "-pthread", "-fno-optimize-sibling-calls", folder / "threads.c",
                    "-o", folder / "threads"], check=True)
    return folder / "threads"


def run(tool, program, *options):  # noqa: F811
    path = program.parent / f"run{len(list(program.parent.iterdir()))}.hfr"
    subprocess.run([tool, "run", "-q", "--no-cache", *options, "-o", path, "--", program], check=True)
    return path


@pytest.fixture(scope="module")
def timed_path(tool, program):  # noqa: F811
    return run(tool, program, "--mode", "time", "--clock", "cpu")


@pytest.fixture(scope="module")
def counted_path(tool, program):  # noqa: F811
    return run(tool, program)


@pytest.fixture
def record(timed_path):
    with hotfn.open(timed_path) as opened:
        yield opened


@pytest.fixture
def counted_record(counted_path):
    with hotfn.open(counted_path) as opened:
        yield opened


def known_calls(frame):
    """{function: calls} of each thread, of the functions of the program's source."""
    own = frame[frame.name.isin(["work", "twice", "leaf"])]
    return [dict(zip(rows.name, rows.calls)) for _, rows in own.groupby("thread")]


def in_order(calls):
    return sorted(calls, key=lambda row: row["leaf"])


@pytest.mark.parametrize("kind", ["record", "counted_record"])
def test_each_thread_has_its_own_calls(kind, request):
    assert in_order(known_calls(request.getfixturevalue(kind).to_pandas(by="thread"))) == in_order(CALLS)


def test_functions_of_threads_add_up(record):
    functions, by_thread = record.to_pandas(), record.to_pandas(by="thread")
    sums = by_thread.groupby("function")[["calls", "timed_calls", "total_ns", "self_ns"]].sum()
    called = functions[functions.calls > 0]
    assert list(sums.index) == list(called.index)
    assert list(sums.calls) == list(called.calls)
    assert list(sums.timed_calls) == list(called.timed_calls)
    timed = called[called.self_ns > 0].index
    # ticks are converted to ns for each thread
    assert ((sums.self_ns - called.self_ns).abs()[timed] <= len(record.threads)).all()
    assert (by_thread.name == functions.name.loc[by_thread.function].values).all()
    assert (by_thread.module == functions.module.loc[by_thread.function].values).all()


def test_times_of_a_thread_equal_those_of_the_chosen_thread(record):
    by_thread = record.to_pandas(by="thread")
    for index, thread in enumerate(record.threads):
        record.choose_thread(thread.tid)
        alone = record.to_pandas()
        rows = by_thread[by_thread.thread == index]
        for name in ("calls", "timed_calls", "timing", *_columns.TIMES):
            assert rows[name].equals(alone[name].loc[rows.function].set_axis(rows.index).astype(rows[name].dtype)), name
        record.choose_thread(None)


def test_threads_have_their_processor_time(record):
    threads, by_thread = record.threads_to_pandas(), record.to_pandas(by="thread")
    assert list(threads.name) == [thread.name for thread in record.threads] and len(threads) == 3
    assert list(threads.calls) == [thread.calls for thread in record.threads]
    for index, thread in enumerate(record.threads):
        assert threads.cpu_ns[index] == thread.cpu_ns or (thread.cpu_ns is None and numpy.isnan(threads.cpu_ns[index]))
        rows = by_thread[by_thread.thread == index]
        assert rows.calls.sum() == thread.calls and set(rows.tid) == {thread.tid}
        assert rows.thread_cpu_ns.equals(pandas.Series([threads.cpu_ns[index]] * len(rows), index=rows.index,
                                                       name="thread_cpu_ns"))
    assert (threads.cpu_ns > 0).any()


def test_an_unknown_group_is_refused(record):
    with pytest.raises(ValueError, match="'luck' is not a group of columns; choose one of function, thread"):
        record.to_pandas(by="luck")


def test_edges_have_names(record):
    edges = record.edges_to_pandas().set_index(["caller", "callee"])
    assert edges.calls["work", "twice"] == 8 and edges.calls["twice", "leaf"] == 18
    assert edges.callee_module["work", "twice"] == "threads"
    outside = record.edges_to_pandas().caller.isna()
    assert sorted(edge.callee for edge in record.edges if edge.caller is None) == sorted(
        record.to_pandas().index[record.to_pandas().name == name][0] for name in record.edges_to_pandas()[outside].callee)


def test_tree_frame_is_that_of_the_nodes(record):
    frame, nodes = record.tree_to_pandas(), record.nodes
    assert len(frame) == len(nodes)
    for row, node in zip(frame.itertuples(), nodes):
        assert (row.parent, row.name, row.thread, row.calls, row.total_ns, row.self_ns) == (
            -1 if node.parent is None else node.parent, record.functions[node.function].display, node.thread,
            node.calls, node.total_ns, node.self_ns)
        assert row.depth == (0 if node.parent is None else frame.depth[node.parent] + 1)
        assert row.thread_name == record.threads[row.thread].name


def test_tree_frame_of_a_chosen_thread(record):
    by_thread = record.to_pandas(by="thread")
    five = by_thread[(by_thread.name == "leaf") & (by_thread.calls == 11)].iloc[0]
    record.choose_thread(int(five.tid))
    frame = record.tree_to_pandas()
    assert set(frame.thread) == {0} and set(frame.thread_name) == {five.thread_name}
    assert frame[frame.name == "leaf"].calls.sum() == 11
    leaf = frame[(frame.name == "leaf") & (frame.calls == 10)].iloc[0]
    assert frame.name[leaf.parent] == "twice" and frame.name[frame.parent[leaf.parent]] == "work"
    assert record.tree()["work"]["twice"].calls == 5


def test_tree_by_name_has_the_calls_of_all_threads(record):
    tree = record.tree()
    assert tree["work"].calls == 2 and tree["work"]["twice"].calls == 8
    assert tree["work"]["twice"]["leaf"].calls == 16 and tree["work"]["leaf"].calls == 2
    assert tree["main"]["twice"]["leaf"].calls == 2
    frame = record.tree_to_pandas()
    for name in ("calls", "total_ns"):
        assert getattr(tree, name) == frame[frame.depth == 0][name].sum()
        assert sum(getattr(node, name) for _, node in tree.walk()) == frame[name].sum()
    assert [child.total_ns for child in tree.children] == sorted((c.total_ns for c in tree.children), reverse=True)
    with pytest.raises(KeyError, match="twice calls no 'work'; it calls leaf"):
        tree["work"]["twice"]["work"]


def test_tree_is_printed_with_names_and_shares(record):
    assert str(record.tree()) == record.tree().to_text(min_share=0.01)
    lines = record.tree().to_text(min_share=0).splitlines()
    assert lines[0].split() == ["total", "self", "calls", "function"]
    indents = {line.split()[-1]: len(line) - len(line.split()[-1]) for line in reversed(lines[1:])}
    assert indents["twice"] > min(indents["work"], indents["main"])
    assert float(lines[1].split("%")[0]) <= 100
    only_roots = record.tree().to_text(min_share=0.999999).splitlines()
    assert only_roots[-1].startswith("... and ") and only_roots[-1].endswith(" nodes below 99.9999 %")


def test_tree_of_a_part(record):
    twice = record.tree()["work"]["twice"]
    assert [(depth, node.name, node.calls) for depth, node in twice.walk()] == [(0, "leaf", 16)]
    assert [node.name for _, node in twice.walk(min_share=1.1)] == []


@pytest.mark.parametrize("use", [lambda r: r.tree(), lambda r: r.tree_to_pandas(), lambda r: r.plot.flame()])
def test_run_without_a_tree_is_refused(counted_record, use):
    pytest.importorskip("matplotlib")
    with pytest.raises(hotfn.UnsupportedError, match=r"no call tree \(hotfn run --mode time, without --flat\)"):
        use(counted_record)


@pytest.mark.parametrize("ns,text", [(0, "0 ns"), (999, "999 ns"), (1500, "1.5 us"), (12345678, "12.3 ms"),
                                     (61e9, "61 s")])
def test_times_have_units(ns, text):
    assert _tree.format_ns(ns) == text


# ---- Drawings.

@pytest.fixture
def pyplot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot
    yield pyplot
    pyplot.close("all")


def get_boxes(axes):
    """[(left, right, bottom)] of the boxes that were drawn."""
    return sorted((path.get_extents().x0, path.get_extents().x1, path.get_extents().y0)
                  for collection in axes.collections for path in collection.get_paths())


def test_flame_graph_has_a_box_for_each_node(record, pyplot):
    axes = record.plot.flame(min_share=0)
    tree = record.tree()
    assert len(get_boxes(axes)) == sum(1 for _ in tree.walk())
    roots = [box for box in get_boxes(axes) if box[2] == 0]
    widths = sorted(right - left for left, right, _ in roots)
    assert widths == pytest.approx(sorted(float(child.total_ns) for child in tree.children))
    assert roots[0][0] == 0 and roots[-1][1] == pytest.approx(axes.get_xlim()[1])
    assert tree.children[0].name in {text.get_text() for text in axes.texts}


def test_boxes_are_above_their_callers(record, pyplot):
    boxes = get_boxes(record.plot.flame(min_share=0))
    for left, right, bottom in boxes:
        slack = 1e-9 * right
        assert bottom == 0 or any(other[2] == bottom - 1 and other[0] <= left + slack and right <= other[1] + slack
                                  for other in boxes)


def test_flame_graph_is_saved_as_a_picture(record, pyplot, tmp_path):
    record.plot.flame().figure.savefig(tmp_path / "flame.png")
    assert (tmp_path / "flame.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "flame.png").stat().st_size > 5000


def test_flame_graph_of_a_part_and_in_given_axes(record, pyplot):
    _, axes = pyplot.subplots()
    assert hotfn.plot.flame(record.tree()["work"], ax=axes) is axes
    assert axes.get_title() == "work"
    assert len(get_boxes(axes)) == 3    # twice, its leaf, and leaf
    small = get_boxes(hotfn.plot.flame(record, min_share=1.1))
    assert small == []


WITHOUT = """
import sys
sys.modules[sys.argv[1]] = None
import hotfn
record = hotfn.open(sys.argv[2])
try:
    record.plot.flame() if sys.argv[1] == "matplotlib" else record.to_pandas()
except ImportError as problem:
    print(problem)
print(record.tree()["work"].calls, len(record.hot(2)), "<table>" in record._repr_html_())
"""


@pytest.mark.parametrize("package,need", [("matplotlib", "a flame graph needs"), ("pandas", "data frames need"),
                                          ("numpy", "columns and graphs of records need")])
def test_missing_package_is_named_in_one_sentence(timed_path, package, need):
    done = subprocess.run([sys.executable, "-c", WITHOUT, package, timed_path], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        f"{need} {package}, which {sys.executable} does not have (Debian's /usr/bin/python3: python3-{package}; "
        f"otherwise: pip install {package})", "2 2 True"]


# ---- Names.

def test_long_names_are_read_in_pieces(record, monkeypatch):
    whole = record.columns()
    monkeypatch.setattr(_columns, "NAMES_BYTES", 65536 + 100)
    monkeypatch.setattr(_columns, "PIECE", 3)
    pieces = record.columns()
    for name, values in whole.items():
        assert list(map(repr, pieces[name])) == list(map(repr, values)), name
    assert len(_columns.read_names(record._open_handle, _columns.READABLE, record.info.function_count)) < 65536


def test_buffer_grows_for_a_long_name(record, monkeypatch):
    count = record.info.function_count
    whole = _columns.read_names(record._open_handle, _columns.LINKER, count)
    monkeypatch.setattr(_columns, "NAMES_BYTES", 1)
    assert _columns.read_names(record._open_handle, _columns.LINKER, count) == whole
    assert _columns.split_names(whole) == [function.name for function in record.functions]
