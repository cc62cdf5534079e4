#!/usr/bin/env bash
# Plays an agent that is a plain command: the prompt on stdin, lines on stdout, an exit status. The
# argument says what happens.
scenario=${1:-success}
cat >received

case $scenario in
  success) echo '{"event":"usage","input_tokens":10,"output_tokens":1}'; echo done ;;
  failure) echo 'no such model' >&2; exit 1 ;;
  limit)
    echo '{"event":"rate_limits","limits":{"limitId":"plain","primary":{"usedPercent":100}}}'
    echo '{"event":"rate_limited","retry_after_seconds":1,"message":"slow down"}'
    exit 1
    ;;
  stubborn) trap '' TERM INT HUP QUIT PIPE; while : "$2"; do sleep 1; echo still here; done ;;
  silence) sleep 1000 ;;
  slow) for _ in 1 2 3 4 5 6 7; do sleep 0.4; echo still at it; done; echo done ;;
  malformed) echo '{"event":'; echo done ;;
  long) head -c 1100000 /dev/zero | tr '\0' x; echo ;;
  endless) head -c 11000000 /dev/zero | tr '\0' '{'; echo; echo done ;;
  noise) echo '{"half":' >&2; echo 'error: loud' >&2; echo done ;;
  secrets) env >seen; echo done ;;
  orphan)
    setsid sh -c "trap '' TERM; : $2; while :; do sleep 1; done" >/dev/null 2>&1 &
    echo done
    ;;
  exit) echo 'about to fall over' >&2; kill -KILL $$ ;;
  input) echo '{"event":"input_required","question":"Which one?"}' ;;
esac
