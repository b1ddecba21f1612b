# SPDX-License-Identifier: MIT
# Completion of hotfn for fish.  Commands and options are read from the program's own help.

function __hotfn_list_commands
    set -l words (commandline -opc)
    $words[1] --help 2>/dev/null | string replace -rf '^  ([a-z]{2,})  +(.*)' '$1\t$2'
end

function __hotfn_list_options
    set -l words (commandline -opc)
    $words[1] $words[2] --help 2>/dev/null | string match -r '^ *-.*' |
        string match -ra -- '(?:^|[ ,])--?[a-z][a-z0-9-]*' | string trim -c ' ,' | sort -u
end

function __hotfn_is_option
    set -l words (commandline -opc)
    test (count $words) -ge 2; and not contains -- -- $words; and string match -q -- '-*' (commandline -ct)
end

complete -c hotfn -n 'test (count (commandline -opc)) -eq 1' -f -a '(__hotfn_list_commands)'
complete -c hotfn -n __hotfn_is_option -f -a '(__hotfn_list_options)'
