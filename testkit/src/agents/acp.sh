#!/usr/bin/env bash
# Plays an agent that speaks the Agent Client Protocol: newline-delimited JSON-RPC on stdin and stdout. The
# argument says what happens in a turn. What is received is kept in the file `received`.
scenario=${1:-success}
session=session-1
turn=0
asked=900
prompt=

say() { printf '{"jsonrpc":"2.0",%s}\n' "$1"; }
answer() { say "\"id\":$id,\"result\":$1"; }
update() { say "\"method\":\"session/update\",\"params\":{\"sessionId\":\"$session\",\"update\":{$1}}"; }
chunk() { update "\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"$1\"}"; }
end() { say "\"id\":$prompt,\"result\":{\"stopReason\":\"$1\"${2:+,\"usage\":$2}}"; prompt=; }
fail() { say "\"id\":$prompt,\"error\":$1"; prompt=; }
done_well() { chunk "${1:-done}"; end end_turn "$2"; }
ask() { asked=$((asked + 1)); say "\"id\":$asked,\"method\":\"$1\",\"params\":{\"sessionId\":\"$session\",$2}"; }

play() {
  case $scenario in
    success)
      chunk 'Let me see.'
      update '"sessionUpdate":"tool_call","toolCallId":"t","title":"ls"'
      chunk do; chunk ne
      end end_turn '{"inputTokens":10,"outputTokens":1,"totalTokens":11}'
      ;;
    failure) fail '{"code":-32603,"message":"Internal error","data":{"details":"no such model"}}' ;;
    limit)
      update '"sessionUpdate":"usage_update","used":1,"size":2'
      fail '{"code":-32603,"message":"Internal error","data":{"details":"slow down","type":"rate_limit_error"}}'
      ;;
    logged_out) fail '{"code":-32000,"message":"Authentication required"}' ;;
    stubborn) trap '' TERM INT HUP QUIT PIPE; while : "$2"; do sleep 1; echo still here; done ;;
    silence) sleep 1000 & wait $! ;;
    slow) for _ in 1 2 3 4 5 6 7; do sleep 0.4; chunk .; done; update '"sessionUpdate":"tool_call","title":"ls"'; done_well ;;
    malformed) printf '{"jsonrpc":\n'; echo 'a line that is no object'; done_well ;;
    long) chunk "$(head -c 1100000 /dev/zero | tr '\0' x)"; end end_turn ;;
    endless) head -c 11000000 /dev/zero | tr '\0' '{'; echo; done_well ;;
    noise) echo '{"half":' >&2; echo 'error: loud' >&2; done_well ;;
    secrets) env >seen; done_well ;;
    orphan)
      setsid sh -c "trap '' TERM; : $2; while :; do sleep 1; done" >/dev/null 2>&1 &
      done_well
      ;;
    exit) echo 'about to fall over' >&2; exit 9 ;;
    input) ask elicitation/create '"message":"Which one?","mode":"form"' ;;
    approval) ask session/request_permission '"toolCall":{"toolCallId":"t","title":"rm x"},"options":[{"optionId":"no","name":"No","kind":"reject_once"},{"optionId":"yes","name":"Yes","kind":"allow_once"}]' ;;
    unknown) ask fs/read_text_file '"path":"/etc/passwd"' ;;
    refusal) end refusal ;;
    waits) ;;
  esac
}

while IFS= read -r line; do
  printf '%s\n' "$line" >>received 2>/dev/null
  id= method=
  [[ $line =~ \"id\":([0-9]+) ]] && id=${BASH_REMATCH[1]}
  [[ $line =~ \"method\":\"([^\"]+)\" ]] && method=${BASH_REMATCH[1]}
  case $method in
    initialize)
      version=1
      [[ $scenario == newer ]] && version=2
      answer "{\"protocolVersion\":$version,\"agentCapabilities\":{\"loadSession\":$([[ $scenario == forgetful ]] && echo false || echo true)}}"
      ;;
    session/new) [[ $scenario == mute ]] || answer '{"sessionId":"session-1"}' ;;
    session/load)
      if [[ $line == *'"sessionId":"session-0"'* ]]; then
        session=session-0
        chunk 'what was said before'
        answer null
      else
        say "\"id\":$id,\"error\":{\"code\":-32002,\"message\":\"Resource not found\"}"
      fi
      ;;
    session/prompt) turn=$((turn + 1)); prompt=$id; play "$@" ;;
    session/cancel) [[ -n $prompt ]] && end cancelled ;;
    '') [[ $id -gt 900 ]] && done_well answered ;;
    *) say "\"id\":$id,\"error\":{\"code\":-32601,\"message\":\"Method not found\"}" ;;
  esac
done
