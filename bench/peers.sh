# SPDX-License-Identifier: Apache-2.0
# Common to bench/replay-peers and bench/pool-peers: the allocators they compare with, and the best of several
# runs. To be sourced.

peers=(glibc jemalloc mimalloc tcmalloc)

# preload_of PEER: prints the library for LD_PRELOAD, nothing for the C library's own malloc. Fails with a
# message when it is not installed.
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

# numbers: prints the numeric members of the JSON object on standard input, as lines of name and value.
numbers() { sed -nE 's/^ *"([a-z0-9_]+)": ([0-9.e+-]+),?$/\1 \2/p'; }

# runs COUNT COMMAND...: prints the numbers of that many consecutive runs.
runs() {
  local count=$1
  shift
  for ((n = 0; n < count; n++)); do "$@" | numbers; done
}

# best NAME: prints the minimum of a name over the runs on standard input.
best() { awk -v name="$1" '$1 == name && (!found || $2 < least) { least = $2; found = 1 } END { if (found) print least; exit !found }'; }
