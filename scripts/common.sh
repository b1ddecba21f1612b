# SPDX-License-Identifier: MIT
# Sourced by the other scripts in this folder: paths, help, and the function that configures a build folder.

root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
build=${HOTFN_BUILD:-$root/build}
# Debian's Python, for which scripts/setup installs packages; elsewhere the first Python in PATH.
python=/usr/bin/python3
if ! command -v apt-get >/dev/null && [ ! -x "$python" ]; then
    python=$(command -v python3 || true)
fi
export LC_ALL=C.UTF-8

# --help prints the comment at the top of a script, unless the script has a help of its own.
case " $* " in
    *" --help "* | *" -h "*)
        if [ -z "${own_help:-}" ]; then
            sed -n '3,/^[^#]/s/^# \{0,1\}//p' "$0"
            exit 0
        fi ;;
esac

die() {
    echo "${0##*/}: $*" >&2
    exit 1
}

# take_picture PAGE PICTURE WIDTH,HEIGHT FOLDER: a headless Chromium shows the page; FOLDER is for its files.
take_picture() {
    local page=$1 picture=$2 size=$3 folder=$4
    chromium --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking \
        --disable-component-update --disable-sync --hide-scrollbars --user-data-dir="$folder/profile" \
        --window-size="$size" --screenshot="$picture" "file://$page" >"$folder/chromium.log" 2>&1
}

# configure FOLDER [meson options]: set up or update a build folder; a broken one is recreated.
# CC and CXX choose the compiler when the folder is created.
configure() {
    local folder=$1
    shift
    if [ -f "$folder/build.ninja" ] && meson setup --reconfigure "$folder" "$root" "$@"; then
        return
    fi
    rm -rf "$folder"
    meson setup "$folder" "$root" "$@"
}

# Real files from other sources that some tests use for comparison; without them those tests are skipped.
if [ -z "${HOTFN_SAMPLES:-}" ] && [ -d "$root/../shared/data" ]; then
    HOTFN_SAMPLES=$(readlink -f "$root/../shared/data")
    export HOTFN_SAMPLES
fi
