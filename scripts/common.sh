# SPDX-License-Identifier: MIT
# Read by the scripts beside it (`source`): where things are, and how a build folder is configured.

root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
build=${HOTFN_BUILD:-$root/build}
# Debian's own: the one that the packages of scripts/setup belong to, which a fresh machine has after it.
python=/usr/bin/python3
if ! command -v apt-get >/dev/null && [ ! -x "$python" ]; then
    python=$(command -v python3 || true)
fi
export LC_ALL=C.UTF-8

die() {
    echo "${0##*/}: $*" >&2
    exit 1
}

# configure FOLDER [meson options]: set up or update a build folder; a broken one is made anew.
# CC and CXX choose the compiler when the folder is made.
configure() {
    local folder=$1
    shift
    if [ -f "$folder/build.ninja" ] && meson setup --reconfigure "$folder" "$root" "$@"; then
        return
    fi
    rm -rf "$folder"
    meson setup "$folder" "$root" "$@"
}

# Real files made by others, which some tests compare with where they are (say 'skipped' elsewhere).
if [ -z "${HOTFN_SAMPLES:-}" ] && [ -d "$root/../shared/data" ]; then
    HOTFN_SAMPLES=$(readlink -f "$root/../shared/data")
    export HOTFN_SAMPLES
fi
