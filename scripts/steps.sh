# SPDX-License-Identifier: MIT
# Functions that run steps, keep their logs and print the totals.  scripts/test and scripts/soak source this file
# after common.sh.  If a step fails, the run continues, and the totals include the failure.

# start_steps FOLDER: set the folder for builds, logs and results of this run.
start_steps() {
    steps=$1
    mkdir -p "$steps/logs"
    rm -f "$steps/logs/"* "$steps/results.tsv"
    : >"$steps/results.tsv"
}

# step NAME COMMAND...: run a command.  If it fails, print the end of its log and count one failed test.  If it
# passes, the totals have the lines of its log that begin with `skipped`.
step() {
    local name=$1
    shift
    run_logged "$name" "$@"
    if [ "$last_status" -eq 0 ]; then
        touch "$steps/logs/$name.passed"
        printf '%s\tpassed\t%s\n' "$name" "$steps/logs/$name.log" >>"$steps/results.tsv"
    else
        printf '%s\t%s\t-\n' "$name" "$last_status" >>"$steps/results.tsv"
    fi
}

# has_passed NAME: whether this run has a step of this name that passed.
has_passed() {
    [ -e "$steps/logs/$1.passed" ]
}

# run_logged NAME COMMAND...: run a command with its output in a log, and set last_status.
run_logged() {
    local name=$1 begin=$SECONDS log=$steps/logs/$1.log
    shift
    echo "$name: running"
    last_status=0
    # No `if` or `||` around the command itself: bash would disable `set -e` inside it.
    set +e
    (set -e; "$@") >"$log" 2>&1 </dev/null
    last_status=$?
    set -e
    if [ "$last_status" -eq 0 ]; then
        echo "$name: ok ($((SECONDS - begin)) s)"
    else
        tail -n 60 "$log"
        echo "$name: FAILED with status $last_status ($((SECONDS - begin)) s), log: $log"
    fi
}

# side_by_side FUNCTION...: run these functions at the same time.  A step that fails does not end its function; if
# the function itself fails, that counts as one failed test.
side_by_side() {
    local name number=0
    children=()
    set -m # each gets a process group: bash's background jobs ignore an interrupt, and this ends the groups
    trap 'kill -- "${children[@]/#/-}" 2>/dev/null; exit 130' INT TERM
    for name in "$@"; do
        "$name" &
        children+=($!)
    done
    set +m
    for name in "$@"; do
        wait "${children[number]}" || printf '%s\t1\t-\n' "$name" >>"$steps/results.tsv"
        number=$((number + 1))
    done
    trap - INT TERM
}

# build_folder FOLDER [meson options]: configure and build it.
build_folder() {
    local folder=$1
    shift
    configure "$steps/$folder" "$@"
    meson compile -C "$steps/$folder"
}

# meson_step NAME FOLDER [meson test options]: run meson's tests and count each of them.  Time limits are only for
# tests that hang; they are four times meson's, so that tests pass on busy machines.  malloc fills memory with the
# same byte in each run (meson would choose a random one), unless the caller sets MALLOC_PERTURB_.
meson_step() {
    local name=$1 folder=$steps/$2 log
    shift 2
    log=$folder/meson-logs/testlog.json
    rm -f "$log"
    run_logged "$name" env "MALLOC_PERTURB_=${MALLOC_PERTURB_:-165}" meson test -C "$folder" --print-errorlogs --timeout-multiplier 4 \
        --num-processes $(($(nproc) + 1)) "$@" # one more: some tests mostly wait
    printf '%s\t%s\t%s\n' "$name" "$last_status" "$log" >>"$steps/results.tsv"
}

# skip_tests NAME FOLDER [meson test options]: count the tests that meson would run as skipped, with their names.
skip_tests() {
    local name=$1 folder=$steps/$2
    shift 2
    meson test -C "$folder" --list "$@" 2>/dev/null | sed -n 's/^.* \/ //p' >"$steps/$name.skipped"
    printf '%s\tskipped\t%s\n' "$name" "$steps/$name.skipped" >>"$steps/results.tsv"
}

# pytest_step NAME TESTS BUILD_FOLDER: run pytest and count each of its tests.
pytest_step() {
    local name=$1 tests=$2 folder=$3 log=$steps/pytest.xml
    rm -f "$log"
    run_logged "$name" env "PYTHONPATH=$root/bindings/python" PYTHONDONTWRITEBYTECODE=1 \
        "HOTFN_LIBRARY=$folder/src/libhotfn.so" "HOTFN=$folder/tools/hotfn/hotfn" \
        "HOTFN_BUILD_ROOT=$folder" "HOTFN_SOURCE_ROOT=$root" \
        "$python" -m pytest -q -p no:cacheprovider --junitxml="$log" "$tests"
    printf '%s\t%s\t%s\n' "$name" "$last_status" "$log" >>"$steps/results.tsv"
}

# build_windows: build the libraries for Windows, then hotfn in the folder `windows`, and set last_status.
build_windows() {
    step windows-libraries "$root/scripts/cross/windows" "$steps/windows-libraries" x86_64
    if [ "$last_status" -eq 0 ]; then
        step windows-build build_folder windows -Dwerror=true --cross-file "$root/scripts/cross/x86_64-w64-mingw32.ini" \
            --cross-file "$steps/windows-libraries/libraries.ini"
    fi
}

# use_wine32: let `wine` be a 32-bit wine, if this machine can have one.
use_wine32() {
    if "$root/scripts/cross/wine32" "$steps/wine32" >"$steps/logs/wine32.log" 2>&1; then
        export PATH=$steps/wine32/bin:$PATH WINEPREFIX=$steps/wine32-prefix WINEDEBUG=-all WINEDLLOVERRIDES=winedbg.exe=d
    fi
}

# build_windows_x86: build the library, the tool and the agent for 32-bit Windows.  In a subshell, like its tests: the
# settings of 32-bit wine are not those of the other wine.
build_windows_x86() (
    step windows-x86-libraries "$root/scripts/cross/windows" "$steps/windows-x86-libraries" i686
    [ "$last_status" -eq 0 ] || return 0
    use_wine32
    step windows-x86-build build_folder windows-x86 -Dwerror=true --cross-file "$root/scripts/cross/i686-w64-mingw32.ini" \
        --cross-file "$steps/windows-x86-libraries/libraries.ini"
)

# test_windows_x86 HOTFN: test it under a 32-bit wine where one can be had; elsewhere the tests are skipped.
test_windows_x86() (
    use_wine32
    if [ ! -x "$steps/wine32/bin/wine" ]; then
        skip_tests windows-x86 windows-x86 --suite wine
        echo windows-x86-programs >>"$steps/windows-x86.skipped"
        return
    fi
    step windows-x86-prefix timeout 180 wine wineboot -i
    meson_step windows-x86 windows-x86 --suite wine
    step windows-x86-programs timeout 900 /usr/bin/python3 "$root/tests/windows/windows_test.py" "$steps/windows-x86" "$1"
    timeout 60 wineserver -k || true
)

# test_windows HOTFN: test the Windows build in a new wine prefix; HOTFN is the native program that reads the
# records.  The time limits are only for programs that hang.
test_windows() {
    export WINEPREFIX=$steps/wine WINEDEBUG=-all
    step windows-prefix timeout 180 wine wineboot -i
    meson_step windows windows --suite wine
    step windows-programs timeout 900 /usr/bin/python3 "$root/tests/windows/windows_test.py" "$steps/windows" "$1"
    step windows-kit timeout 900 /usr/bin/python3 "$root/tests/windows/kit_test.py" "$steps/windows" "$1"
    step windows-live timeout 900 /usr/bin/python3 "$root/tests/windows/live_test.py" "$steps/windows" "$1"
    step windows-com timeout 900 /usr/bin/python3 "$root/tests/windows/com_test.py" "$steps/windows" "$1"
    step windows-push timeout 900 /usr/bin/python3 "$root/tests/windows/push_test.py" "$steps/windows" "$1" \
        "${1%/hotfn/hotfn}/collector/hotfn-collector"
    timeout 60 wineserver -k || true
}

# sum_up: print the totals, and return the status of the whole run.
sum_up() {
    "$python" "$root/scripts/sum_tests.py" "$steps/results.tsv"
}
