# Records which Rust tests run which lines: test binaries are built with instrumentation, and each test runs in a process
# of its own. Documentation tests are left out.
#
# Arguments: the directory of the recording, a directory for binaries and profiles, seconds for everything, seconds
# for one test, the most tests, a part of their names, and the command that builds the test binaries.
set -u
recording=$1 work=$2 deadline=$(($(date +%s) + $3)) each=$4 most=$5 names=$6
shift 6
rm -rf "$work/run"
mkdir -p "$work/run" || exit 1
target=$work/target
work=$work/run
: >"$work/gaps"
: >"$work/chosen"
all=0

# The tools of the toolchain, or those of the machine that have the same version of LLVM.
version=$(rustc -vV 2>/dev/null | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
own=$(rustc --print sysroot 2>/dev/null)/lib/rustlib/$(rustc -vV 2>/dev/null | sed -n 's/^host: //p')/bin
profdata= cov=
if [ -x "$own/llvm-profdata" ] && [ -x "$own/llvm-cov" ]; then
  profdata=$own/llvm-profdata cov=$own/llvm-cov
elif command -v "llvm-profdata-$version" >/dev/null && command -v "llvm-cov-$version" >/dev/null; then
  profdata=llvm-profdata-$version cov=llvm-cov-$version
fi
export work deadline each profdata cov

# NUMBER TEST: the lines of one test as rows, with the names of files before them.
run='
  [ "$(date +%s)" -lt "$deadline" ] || { echo late >>"$work/late"; exit 0; }
  name=$(echo "$2" | tr -c "A-Za-z0-9_\n" "-")-$(echo "$2" | cksum | cut -d" " -f1)
  profile=$work/$1.$name
  cd "$(cat "$work/$1.directory")" || exit 0
  binary=$(cat "$work/$1.binary")
  CARGO_MANIFEST_DIR=$PWD LLVM_PROFILE_FILE=$profile.%p.profraw \
    timeout -s KILL "$each" "$binary" --exact "$2" --test-threads=1 >/dev/null 2>&1 </dev/null
  if "$profdata" merge -sparse "$profile".*.profraw -o "$profile.profdata" 2>/dev/null; then
    { printf "T\t%s\t%s\n" "$(cat "$work/$1.group")" "$2"
      "$cov" export -format=lcov "-instr-profile=$profile.profdata" "$binary" 2>/dev/null |
        sed -n -e "s/^SF:/F	/p" -e "/,0\$/d" -e "s/^DA:\([0-9]*\),\([0-9]*\).*/H	\1-\1:\2/p"
    } >"$profile.rows"
  else
    printf "!\t%s of %s left no profile: it took too long, or its process ended\n" "$2" "$(cat "$work/$1.group")" >>"$work/gaps"
  fi
  rm -f "$profile".*.profraw "$profile.profdata"
  exit 0
'

build() {
  CARGO_TARGET_DIR=$target RUSTFLAGS="${RUSTFLAGS-} -C instrument-coverage" \
    LLVM_PROFILE_FILE=$work/build.%p.profraw "$@" --no-run --message-format=json 2>"$work/log" >"$work/messages"
}

# Names with spaces or quotes, which harnesses other than the standard one may have, cannot be passed on.
list() { # NUMBER
  (cd "$(cat "$work/$1.directory")" &&
    LLVM_PROFILE_FILE=$work/list.%p.profraw timeout "$each" "$(cat "$work/$1.binary")" --list --format terse) 2>/dev/null |
    sed -n 's/: test$//p' | grep -F -e "$names" >"$work/$1.names"
  plain='^[^] "'"'"'\\[:cntrl:]]+$'
  grep -E "$plain" "$work/$1.names" | sed "s/^/$1 /"
  unusual=$(grep -c -v -E "$plain" "$work/$1.names")
  [ "$unusual" -eq 0 ] ||
    printf '!\t%s tests of %s have names with spaces or quotes\n' "$unusual" "$(cat "$work/$1.group")" >>"$work/gaps"
}

if [ -z "$profdata" ]; then
  printf '!\tllvm-profdata and llvm-cov of LLVM %s are missing; run `rustup component add llvm-tools`\n' "$version" >>"$work/gaps"
elif ! build "$@"; then
  printf '!\tthe tests do not build with coverage: %s\n' "$(grep -v '^ *$' "$work/log" | tail -n 1)" >>"$work/gaps"
else
  grep '"reason":"compiler-artifact"' "$work/messages" | grep '"test":true' |
    sed -n 's/.*"manifest_path":"\([^"]*\)\/Cargo.toml".*"kind":\["\([^"]*\)".*"name":"\([^"]*\)".*"executable":"\([^"]*\)".*/\1	\2 \3	\4/p' \
      >"$work/binaries"
  number=0
  while IFS='	' read -r directory group binary; do
    number=$((number + 1))
    echo "$directory" >"$work/$number.directory"
    echo "$group" >"$work/$number.group"
    echo "$binary" >"$work/$number.binary"
    list "$number" >>"$work/tests"
  done <"$work/binaries"
  [ -f "$work/tests" ] || : >"$work/tests"
  all=$(wc -l <"$work/tests")
  head -n "$most" "$work/tests" >"$work/chosen"
  xargs -P "$(nproc 2>/dev/null || echo 2)" -n 2 sh -c "$run" run <"$work/chosen"
fi

assemble() {
  find "$work" -name '*.rows' -exec cat {} +
  cat "$work/gaps"
  [ "$all" -le "$most" ] || printf '!\t%s tests are beyond the limit of %s\n' "$((all - most))" "$most"
  [ ! -f "$work/late" ] || printf '!\tthere was no time for %s tests\n' "$(wc -l <"$work/late")"
  echo E
}

assemble | head -c 67108864 | split -a 1 -b 8388608 - "$recording/coverage."
rm -rf "$work"
