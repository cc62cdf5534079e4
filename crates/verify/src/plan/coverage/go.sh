# Records which Go tests run which lines: each package is compiled once, and each test runs in a process of its own.
#
# Arguments: the directory of the recording, a directory for binaries and profiles, seconds for everything, seconds
# for one test, the most tests, the pattern of their names, flags of the build, the packages to measure with commas
# between them, and the packages to test.
set -u
recording=$1 work=$2 deadline=$(($(date +%s) + $3)) each=$4 most=$5 names=$6 flags=$7 measured=$8
shift 8
export work deadline each
rm -rf "$work"
mkdir -p "$work" || exit 1

is_late() { [ "$(date +%s)" -ge "$deadline" ]; }

compile() { # NUMBER PACKAGE
  # The flags are words of the project's own command, without spaces in them.
  # shellcheck disable=SC2086
  go test $flags -c -cover -covermode=count "-coverpkg=$measured" -o "$work/$1.test" "$2" >"$work/$1.log" 2>&1
}

list() { # NUMBER
  (cd "$(cat "$work/$1.directory")" && timeout "$each" "$work/$1.test" -test.list "$names") 2>/dev/null |
    grep -E '^(Test|Example|Fuzz)[A-Za-z0-9_]*$' | sed "s/^/$1 /"
}

# One test; `-` stands for none, whose counts are those of initialisation.
run='
  [ "$(date +%s)" -lt "$deadline" ] || { echo late >>"$work/late"; exit 0; }
  pattern="^$2\$"
  [ "$2" != - ] || pattern="^\$"
  cd "$(cat "$work/$1.directory")" || exit 0
  timeout -s KILL "$each" "$work/$1.test" -test.run "$pattern" -test.count=1 \
    -test.coverprofile="$work/$1.$2.out" >/dev/null 2>&1 </dev/null
  [ -s "$work/$1.$2.out" ] || echo "$1 $2" >>"$work/lost"
  exit 0
'

# Rows of a profile with a count above that of the profile before.
above='
  BEGIN { while (before != "" && (getline row < before) > 0) { split(row, old, " "); base[old[1]] = old[3] } }
  /^mode:/ { next }
  $3 > base[$1] + 0 { print "P\t" $1 " " $2 " " ($3 - base[$1]) }
'

(IFS=, && go list -e -f 'D	{{.ImportPath}}	{{.Dir}}' $measured) >"$work/packages" 2>/dev/null
go list -e -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}	{{.Dir}}{{end}}' "$@" >"$work/tested" 2>/dev/null
: >"$work/tests"
number=0
while IFS='	' read -r package directory; do
  number=$((number + 1))
  echo "$package" >"$work/$number.package"
  echo "$directory" >"$work/$number.directory"
  if is_late; then
    printf '!\tthere was no time to compile %s\n' "$package" >>"$work/gaps"
  elif ! compile "$number" "$package"; then
    printf '!\t%s does not build with coverage\n' "$package" >>"$work/gaps"
  elif [ -x "$work/$number.test" ]; then
    list "$number" >"$work/$number.list"
    [ ! -s "$work/$number.list" ] || echo "$number -" | cat - "$work/$number.list" >>"$work/tests"
  fi
done <"$work/tested"

all=$(wc -l <"$work/tests")
head -n "$most" "$work/tests" >"$work/chosen"
xargs -P "$(nproc 2>/dev/null || echo 2)" -n 2 sh -c "$run" run <"$work/chosen"

assemble() {
  cat "$work/packages"
  while read -r number test; do
    profile=$work/$number.$test.out
    [ -s "$profile" ] || continue
    if [ "$test" = - ]; then
      printf 'T\t\t\n'
      awk -v before= "$above" "$profile"
    else
      printf 'T\t%s\t%s\n' "$(cat "$work/$number.package")" "$test"
      awk -v before="$work/$number.-.out" "$above" "$profile"
    fi
  done <"$work/chosen"
  [ ! -f "$work/gaps" ] || cat "$work/gaps"
  [ "$all" -le "$most" ] || printf '!\t%s tests are beyond the limit of %s\n' "$((all - most))" "$most"
  [ ! -f "$work/late" ] || printf '!\tthere was no time for %s tests\n' "$(wc -l <"$work/late")"
  [ ! -f "$work/lost" ] || while read -r number test; do
    printf '!\t%s of %s left no profile: it took too long, or its process ended\n' "$test" "$(cat "$work/$number.package")"
  done <"$work/lost"
  echo E
}

assemble | head -c 67108864 | split -a 1 -b 8388608 - "$recording/coverage."
rm -rf "$work"
