#!/usr/bin/env bash
# Plays the Codex app server: newline-delimited JSON on stdin and stdout. The argument says what happens
# in a turn. What is received is kept in the file `received`.
scenario=${1:-success}
thread=thread-1
turn=0
asked=900

say() { printf '%s\n' "$1"; }
answer() { say "{\"id\":$id,\"result\":$1}"; }
notice() { say "{\"method\":\"$1\",\"params\":{\"threadId\":\"$thread\",\"turnId\":\"turn-$turn\",$2}}"; }
message() { notice item/completed "\"item\":{\"type\":\"agentMessage\",\"id\":\"m\",\"text\":\"$1\"}"; }
end() { notice turn/completed "\"turn\":{\"id\":\"turn-$turn\",\"status\":\"$1\",\"items\":[],\"error\":${2:-null}}"; }
done_well() { message "${1:-done}"; end completed; }
ask() { asked=$((asked + 1)); say "{\"id\":$asked,\"method\":\"$1\",\"params\":{\"threadId\":\"$thread\",\"turnId\":\"turn-$turn\",\"itemId\":\"i\",$2}}"; }
usage() { notice thread/tokenUsage/updated "\"tokenUsage\":{\"total\":{\"inputTokens\":$1,\"outputTokens\":$2,\"totalTokens\":$(($1 + $2))},\"last\":{\"inputTokens\":$1,\"outputTokens\":$2,\"totalTokens\":$(($1 + $2))}}"; }

play() {
  case $scenario in
    success) usage $((turn * 10)) "$turn"; done_well ;;
    failure) end failed '{"message":"no such model","codexErrorInfo":"modelNotFound"}' ;;
    limit)
      notice account/rateLimits/updated '"rateLimits":{"limitId":"codex","primary":{"usedPercent":100,"resetsAt":1}}'
      end failed '{"message":"slow down","codexErrorInfo":"usageLimitExceeded"}'
      ;;
    stubborn) trap '' TERM INT HUP QUIT PIPE; while : "$2"; do sleep 1; echo still here; done ;;
    silence) sleep 1000 ;;
    slow) for _ in 1 2 3 4 5 6 7; do sleep 0.4; notice item/started '"item":{"type":"reasoning"}'; done; done_well ;;
    malformed) say '{"method":'; say 'a line that is no object'; done_well ;;
    long) message "$(head -c 1100000 /dev/zero | tr '\0' x)"; end completed ;;
    endless) head -c 11000000 /dev/zero | tr '\0' '{'; echo; done_well ;;
    noise) echo '{"half":' >&2; echo 'error: loud' >&2; done_well ;;
    secrets) env >seen; done_well ;;
    orphan)
      setsid sh -c "trap '' TERM; : $2; while :; do sleep 1; done" >/dev/null 2>&1 &
      done_well
      ;;
    exit) echo 'about to fall over' >&2; exit 9 ;;
    input) ask item/tool/requestUserInput '"isBlocking":true,"questions":[{"id":"q","header":"h","question":"Which one?"}]' ;;
    elicitation) ask mcpServer/elicitation/request '"serverName":"s","message":"Who are you?","mode":"form"' ;;
    approval) ask item/commandExecution/requestApproval '"command":"rm x"' ;;
    tool) ask item/tool/call '"callId":"c","tool":"note","arguments":{"text":"hello"}' ;;
    no_tool) ask item/tool/call '"callId":"c","tool":"nothing","arguments":{}' ;;
    failing_tool) ask item/tool/call '"callId":"c","tool":"fail","arguments":{}' ;;
    unknown) ask some/newRequest '"x":1' ;;
    other_threads)
      say '{"method":"turn/completed","params":{"threadId":"another","turn":{"id":"turn-x","status":"failed"}}}'
      done_well
      ;;
    interrupted) end interrupted ;;
  esac
}

while IFS= read -r line; do
  printf '%s\n' "$line" >>received 2>/dev/null
  id= method=
  [[ $line =~ \"id\":([0-9]+) ]] && id=${BASH_REMATCH[1]}
  [[ $line =~ \"method\":\"([^\"]+)\" ]] && method=${BASH_REMATCH[1]}
  case $method in
    initialize)
      [[ $scenario == deaf ]] && sleep 1000
      answer '{"userAgent":"scripted"}'
      ;;
    thread/start)
      # What comes before the reply must not be lost.
      say '{"method":"thread/started","params":{"thread":{"id":"thread-1"}}}'
      case $scenario in
        mute) ;;
        refused) say "{\"id\":$id,\"error\":{\"code\":-32600,\"message\":\"unknown variant\"}}" ;;
        *) answer '{"thread":{"id":"thread-1"}}' ;;
      esac
      ;;
    thread/resume)
      [[ $line == *'"threadId":"thread-0"'* ]] && thread=thread-0
      if [[ $thread == thread-0 ]]; then
        answer '{"thread":{"id":"thread-0"}}'
      else
        say "{\"id\":$id,\"error\":{\"code\":-32600,\"message\":\"no rollout found\"}}"
      fi
      ;;
    turn/start)
      if [[ $scenario == overloaded && ! -e asked_once ]]; then
        touch asked_once
        say "{\"id\":$id,\"error\":{\"code\":-32001,\"message\":\"overloaded\"}}"
        continue
      fi
      turn=$((turn + 1))
      if [[ $scenario == early ]]; then
        # A turn that is over, and a question, before its reply is there.
        ask some/newRequest '"x":1'
        done_well
      fi
      answer "{\"turn\":{\"id\":\"turn-$turn\",\"status\":\"inProgress\"}}"
      [[ $scenario == overloaded ]] && done_well
      play "$@"
      ;;
    turn/interrupt) answer '{}'; end interrupted ;;
    thread/name/set | initialized) ;;
    '')
      # An answer to a question.
      [[ $id -gt 900 && $scenario != early ]] && done_well answered
      ;;
    *) say "{\"id\":$id,\"error\":{\"code\":-32601,\"message\":\"unknown\"}}" ;;
  esac
done
