#!/bin/sh
# SessionStart: what the agent should know of its stores, and its memory. What this prints becomes part of the
# context. ENGRAMFS_SESSION is the session (engramfs session open prints its id).
set -eu
cat >/dev/null # the event, of which nothing is needed
[ -n "${ENGRAMFS_SESSION:-}" ] || exit 0
exec engramfs prompt --session "$ENGRAMFS_SESSION"
