#!/bin/sh
# A digest agent in plain sh: says what is new in the files that its owner wants read.
#
#     AGENT_ROOT=/engramfs sh agent.sh
#
# AGENT_ROOT is where the session is attached; without it, at /. There it
#
#     reads   mnt/memory/preferences/sources    NAME PATH, one source a line; # begins a comment
#     keeps   mnt/memory/state/bookmarks/NAME   how many lines of it have been told
#             mnt/memory/state/ledger.tsv       what came of every source in every run
#             mnt/memory/state/proposals/       what it would change in the preferences, which it cannot
#
# A source that cannot be read is reported as that, never as one with nothing new. The exit code is 0, 1 when
# a source could not be read, 2 when there is nothing to work with.
set -eu

root=${AGENT_ROOT:-}
preferences=$root/mnt/memory/preferences/sources
state=$root/mnt/memory/state
snapshot=$state/.tmp-source # names that begin like this stay out of the log
patience=3                  # runs in a row in which a source cannot be read, before dropping it is proposed
unreadable=0

say() { printf '%s\n' "$1"; }

fail() {
    say "agent: $1" >&2
    exit 2
}

# save FILE: replace it by standard input in one step, so that whoever reads it sees the old or the new.
save() {
    temporary=$(dirname "$1")/.tmp-$(basename "$1")
    cat >"$temporary"
    mv "$temporary" "$1"
}

# record NAME OUTCOME DETAIL: one line in the ledger.
record() {
    printf '%s\t%s\t%s\t%s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$1" "$2" "$3" >>"$state/ledger.tsv"
}

# located PATH: where it is for this process. What is in the session is found at AGENT_ROOT.
located() {
    case $1 in
        /mnt/context/* | /mnt/memory/* | /memories/*) say "$root$1" ;;
        *) say "$1" ;;
    esac
}

# read_source NAME PATH: tell its new lines, then move the bookmark; in this order nothing is ever skipped.
read_source() {
    if ! reason=$(cat -- "$(located "$2")" 2>&1 >"$snapshot"); then
        unreadable=1
        say "$1: UNREADABLE: $reason"
        record "$1" unreadable "$reason"
        propose_to_drop "$1" "$reason"
        return
    fi
    lines=$(wc -l <"$snapshot")
    told=$(cat "$state/bookmarks/$1" 2>/dev/null || say 0)
    if [ "$told" -gt "$lines" ]; then
        say "$1: shorter than before, so from the start"
        told=0
    fi
    if [ "$lines" -eq "$told" ]; then
        say "$1: nothing new"
        record "$1" nothing ""
        return
    fi
    say "$1: $((lines - told)) new"
    head -n "$lines" "$snapshot" | tail -n "+$((told + 1))" | sed 's/^/    /'
    say "$((lines))" | save "$state/bookmarks/$1"
    record "$1" new "$((lines - told))"
}

# propose_to_drop NAME REASON: after too many failures in a row, and once: a patch that the owner may apply.
propose_to_drop() {
    proposal=$state/proposals/drop-$1.patch
    failures=$(awk -F '\t' -v name="$1" \
        '$2 == name { n = $3 == "unreadable" ? n + 1 : 0 } END { print n + 0 }' "$state/ledger.tsv")
    if [ "$failures" -lt "$patience" ] || [ -e "$proposal" ]; then return; fi
    {
        say "Read $1 no longer? It could not be read $failures times in a row: $2"
        awk -v name="$1" '$1 != name' "$preferences" | diff -u "$preferences" - |
            sed -e '1s/.*/--- a\/sources/' -e '2s/.*/+++ b\/sources/'
    } | save "$proposal"
    say "$1: proposed to drop it, in ${proposal#"$root"}"
}

[ -r "$preferences" ] || fail "no preferences at $preferences; their owner imports memory/AGENT/preferences"
mkdir -p "$state/bookmarks" "$state/proposals" || fail "no state to keep at $state"
trap 'rm -f "$snapshot"' EXIT

while read -r name path; do
    case $name in
        '' | '#'*) continue ;;
        .* | *[!A-Za-z0-9._-]*) fail "$preferences names a source $name; use letters, digits, dots and dashes" ;;
    esac
    read_source "$name" "$path"
done <"$preferences"
exit "$unreadable"
