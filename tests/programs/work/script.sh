# SPDX-License-Identifier: MIT
# A run of bash: functions, arrays, subshells, pipes, traps, here-documents, arithmetic, patterns.
set -u
fib() { if (($1 < 2)); then echo "$1"; else echo $(($(fib $(($1 - 1))) + $(fib $(($1 - 2))))); fi; }
echo "fib $(fib 9)"

declare -A ages=([ann]=31 [bob]=27 [cyd]=44)
for name in $(printf '%s\n' "${!ages[@]}" | sort); do printf '%-5s %3d\n' "$name" "${ages[$name]}"; done

list=()
for ((i = 0; i < 400; i++)); do list+=($(((i * 7919) % 1009))); done
sorted=($(printf '%s\n' "${list[@]}" | sort -n))
echo "sorted ${sorted[0]} ${sorted[200]} ${sorted[-1]} of ${#sorted[@]}"

trap 'echo "exit trap $?"' EXIT
trap 'seen=$((seen + 1))' USR1
seen=0
for _ in 1 2 3 4 5; do kill -USR1 $$; done
echo "signals $seen"

text="The quick brown fox"
echo "${text^^} ${text//o/0} ${text#* } ${text%% *} ${#text}"
[[ $text =~ (q[a-z]+)\ (b[a-z]+) ]] && echo "${BASH_REMATCH[2]} ${BASH_REMATCH[1]}"
case $text in *brown*) echo matched ;; *) echo missed ;; esac

while read -r line; do echo "<$line>"; done <<'END'
one
two  three
END
(exit 3); echo "subshell $?"
false | true; echo "pipe ${PIPESTATUS[*]}"
sleep 0.01 & wait $!; echo "waited $?"
eval 'echo "evaluated $((2 ** 20))"'
printf '%q %x %s\n' "a b" 255 "$(seq 1 300 | paste -sd+ | cut -c1-20)"
exit 5
