# SPDX-License-Identifier: MIT
# Completion of hotfn for bash.  Commands and options are read from the program's own help.

_hotfn()
{
    local hotfn=${COMP_WORDS[0]} current=${COMP_WORDS[COMP_CWORD]} i
    COMPREPLY=()
    for ((i = 2; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} == -- ]]; then # the program to run, and its arguments
            if ((COMP_CWORD == i + 1)); then
                mapfile -t COMPREPLY < <(compgen -c -- "$current"; compgen -f -- "$current")
            fi
            return
        fi
    done
    if ((COMP_CWORD == 1)); then
        mapfile -t COMPREPLY < <(compgen -W "$("$hotfn" --help 2>/dev/null |
            sed -n 's/^  \([a-z]\{2,\}\)  .*/\1/p')" -- "$current")
    elif [[ $current == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$("$hotfn" "${COMP_WORDS[1]}" --help 2>/dev/null |
            grep '^ *-' | grep -oE '(^|[ ,])--?[a-z][a-z0-9-]*' | tr -d ' ,' | sort -u)" -- "$current")
    fi
}
complete -o default -F _hotfn hotfn
