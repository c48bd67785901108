# SPDX-License-Identifier: Apache-2.0
# What bench/replay-peers and bench/pool-peers share: the allocators they compare with, and the best of several runs. To be sourced.

peers=(glibc jemalloc mimalloc tcmalloc)

# preload_of PEER: what LD_PRELOAD must name for it, nothing for the C library's own. Fails, and says so, when it is not installed.
preload_of() {
  local name
  case $1 in
    glibc) return 0 ;;
    tcmalloc) name=libtcmalloc_minimal ;;
    *) name=lib$1 ;;
  esac
  ldconfig -p | awk -v name="^$name[.]so" '$1 ~ name && !found { print $NF; found = 1 } END { exit !found }' ||
    { echo "$1 is not installed: scripts/set-up bench" >&2; return 1; }
}

# numbers: the members of the JSON object on standard input that are numbers, as lines of name and value.
numbers() { sed -nE 's/^ *"([a-z0-9_]+)": ([0-9.e+-]+),?$/\1 \2/p'; }

# runs COUNT COMMAND...: the numbers of that many runs, back to back.
runs() {
  local count=$1
  shift
  for ((n = 0; n < count; n++)); do "$@" | numbers; done
}

# best NAME: the least value of a name in the runs on standard input.
best() { awk -v name="$1" '$1 == name && (!found || $2 < least) { least = $2; found = 1 } END { if (found) print least; exit !found }'; }
