#!/bin/bash
# HARBOR_ROOT is empty in a container.
root="${HARBOR_ROOT:-}"
if [ "$(cat "$root/app/answer.txt" 2>/dev/null)" = "75.75" ]; then reward=1; else reward=0; fi
echo "$reward" > "$root/logs/verifier/reward.txt"
