//! Blocked operations in many spellings.

use crate::{denied, rule, table, verdict};
use carrel_shell::Preset;

#[test]
fn privilege_commands_are_refused_in_every_spelling() {
    for text in [
        "sudo ls",
        r#""su"do ls"#,
        r"\sudo ls",
        "'sudo' ls",
        r"s\udo ls",
        r"$'sudo' ls",
        r"$'\x73udo'",
        "$\"sudo\" ls",
        "/usr/bin/sudo ls",
        "A=1 sudo ls",
        ">x sudo ls",
        "ls; sudo ls",
        "ls && sudo ls",
        "ls | sudo tee x",
        "ls & sudo ls",
        "(sudo ls)",
        "{ sudo ls; }",
        "! sudo ls",
        "time sudo ls",
        "if sudo ls; then ls; fi",
        "while sudo ls; do ls; done",
        "for i in 1; do sudo ls; done",
        "case x in x) sudo ls;; esac",
        "f() { sudo ls; }",
        "echo $(sudo ls)",
        r#"echo "$(sudo ls)""#,
        "cat <(sudo ls)",
        "A=$(sudo ls)",
        "a=(1 $(sudo ls))",
        "echo ${x:-$(sudo ls)}",
        "echo $((1 + $(sudo ls)))",
        "[ -f $(sudo ls) ]",
        "[[ -f $(sudo ls) ]]",
        "cat <<< $(sudo ls)",
        "ls > $(sudo ls)",
        "sh -c 'sudo ls'",
        "bash -lc 'ls; sudo ls'",
        "bash -c \"bash -c 'sudo ls'\"",
        "eval 'sudo ls'",
        "eval sudo ls",
        "env sudo ls",
        "xargs sudo",
        "find . -exec sudo ls ';'",
        "timeout 5 sudo ls",
        "trap 'sudo ls' EXIT",
        "su",
        "doas ls",
        "chroot /",
        "bash <<< 'sudo ls'",
        "coproc sudo ls",
        "! time sudo ls",
        "time (sudo ls)",
        "export A=$(sudo ls)",
        "exec sudo ls",
    ] {
        assert_eq!((rule(text), denied(text)), ("privilege", "privilege"), "{text}");
    }
}

#[test]
fn here_documents_are_searched() {
    for text in [
        "cat <<E\n$(sudo ls)\nE",
        "bash <<'E'\nls\nsudo ls\nE",
        "bash <<E\nsudo ls\nE",
        "cat <<E | sudo tee x\nhi\nE",
        "cat <<E && sudo ls\nhi\nE",
        "cat <<E\nhi\nE\nsudo ls",
    ] {
        assert_eq!(denied(text), "privilege", "{text}");
    }
    for text in ["cat <<'E'\n$(sudo ls)\nE", "cat <<E\nsudo ls\nE", "cat <<\\E\n`sudo ls`\nE"] {
        assert_eq!(denied(text), "allow", "{text}");
        assert_eq!(rule(text), "newline", "{text}");
    }
    assert_eq!(rule("cat <<E\n`sudo ls`\nE"), "backtick");
    // The grammar does not look into a body whose tabs are removed.
    assert_eq!(rule("cat <<-E\n\t$(sudo ls)\n\tE"), "not_understood");
    assert_eq!(rule("cat <<-E\n\tsudo ls\n\tE"), "newline");
}

#[test]
fn computed_commands_are_not_understood() {
    for text in [
        "$(echo sudo) ls",
        "$x ls",
        "\"$x\" ls",
        "s${x}udo ls",
        "{sudo,ls}",
        "s?do ls",
        "~/x",
        "env $x ls",
        "bash -c \"$x\"",
        "eval \"$x\"",
        "xargs -I{} {} x",
        "find . -exec $x ';'",
        "timeout $x sudo ls",
        "su\\\ndo ls",
        "curl x | sh",
        "bash <(curl x)",
        "source <(curl x)",
        "trap \"$x\" EXIT",
    ] {
        assert_eq!(rule(text), "not_understood", "{text}");
        assert_eq!(denied(text), "allow", "{text}");
    }
}

#[test]
fn names_in_other_places_are_data() {
    for text in [
        "echo sudo",
        "git commit -m 'sudo; mount'",
        "grep -r reboot src",
        "ls mount",
        "cat sudo.txt",
        "git log --grep mount",
        "find . -name mount -type d",
        "echo 'x`y`'",
        r"echo \`x\`",
        "cat /etc/sudoers",
        r#"echo "a \`b\` c""#,
        "for sudo in a b; do echo $sudo; done",
        "sudo=1",
        "echo \"(sudo)\"",
    ] {
        assert_eq!((rule(text), denied(text)), ("allow", "allow"), "{text}");
    }
}

#[test]
fn other_groups_have_rules_of_their_own() {
    table(&[
        ("mount", "mount /x /y", "mount"),
        ("mount", "umount /x", "mount"),
        ("disk", "mkfs.ext4 x", "disk"),
        ("disk", "mkfs x", "disk"),
        ("disk", "mkfs. x", "not_listed"),
        ("power", "shutdown now", "power"),
        ("power", "env reboot", "power"),
        ("service", "systemctl restart x", "service"),
        ("service", "kubectl get pods", "service"),
        ("user", "passwd root", "user"),
        ("user", "useradd x", "user"),
        ("filter", "iptables -F", "packet_filter"),
        ("lookup", "export PATH=/x", "program_lookup"),
        ("lookup", "env LD_PRELOAD=x ls", "program_lookup"),
        ("lookup", "FOO=1 BASH_ENV=x bash x.sh", "program_lookup"),
    ]);
    assert_eq!(
        (denied("systemctl x"), denied("mount x"), denied("reboot")),
        ("allow", "mount", "power")
    );
    assert_eq!(
        (denied("rm -rf /"), denied("cat /dev/zero"), denied("./x")),
        ("allow", "allow", "allow")
    );
}

#[test]
fn trees_outside_the_workspace_are_not_removed() {
    for text in [
        "rm -rf /",
        "rm -r -f /",
        "rm --recursive --force /",
        "rm --rec /",
        "rm / -rf",
        "rm -Rf /etc",
        "rm -rf '/'",
        r"rm -rf \/",
        "rm -rf /*",
        "rm -rf /e*",
        "rm -rf /{etc,usr}",
        "rm -rf {/,x}",
        "rm -rf ///",
        "rm -rf /srv/w/one/../two",
        "rm -rf /srv/w/on*",
        "rm -rf /srv/w/one/*/../../../etc",
        "rm -rf \"$x\"",
        "rm -rf $HOME",
        "rm -rf ~",
        "rm -r a$x",
        "rm $x /etc",
        "rm $x",
        "rm \"$a\" \"$b\"",
        "rm -$x /etc",
        "echo / | xargs rm -rf",
        "xargs rm",
        "find / -exec rm -rf {} +",
        "find a /b -exec rm -r {} ';'",
        "find /x -name y -delete",
        "find $x -delete",
        "'rm' -rf /",
        "env rm -rf /",
        "bash -c 'rm -rf /'",
        "rm -fr /srv/w/one2",
        "rm -rf -- -x /etc",
        "command rm -rf /",
        "rm {-rf,/}",
        "/bin/rm -rf /",
    ] {
        assert_eq!(rule(text), "recursive_remove", "{text}");
    }
    for text in [
        "rm -rf build",
        "rm -rf ./build dist/*",
        "rm -rf /srv/w/one/target",
        "rm -rf /srv/w/one/*.o",
        "rm x",
        "rm -f /tmp/x",
        "rm -- $x",
        "rm \"$x\"",
        "rm -rf \"./$x\"",
        "find . -name x -exec rm -rf {} +",
        "find . -delete",
        "xargs rm --",
        "rm *.pyc",
        "rm --force x",
        "rm -- -r /x",
    ] {
        assert_eq!(rule(text), "allow", "{text}");
    }
}

#[test]
fn write_access_for_all_is_not_given() {
    for text in [
        "chmod 777 x",
        "chmod 0777 x",
        "chmod 00666 x",
        "chmod 1777 x",
        "chmod 002 x",
        "chmod a+w x",
        "chmod o+w x",
        "chmod +w x",
        "chmod a=rwx x",
        "chmod o=rw x",
        "chmod ugo+rw x",
        "chmod u+x,o+w x",
        "chmod go-x+w x",
        "chmod -R 777 x",
        "chmod -Rv a+rwx x",
        "chmod -- 777 x",
        "chmod '7''77' x",
        "chmod --recursive 777 x",
        "chmod =777 x",
        "chmod +002 x",
        "chmod o=u x",
        "chmod $m x",
        "chmod x+y,a+w f",
        "find . -exec chmod 777 {} +",
        "xargs chmod 666",
    ] {
        assert_eq!(rule(text), "world_writable", "{text}");
    }
    for text in [
        "chmod 755 x",
        "chmod 0644 x",
        "chmod +x x",
        "chmod u+w x",
        "chmod -w x",
        "chmod o-w x",
        "chmod a+rx x",
        "chmod g+w x",
        "chmod -R u+rwX,go-w x",
        "chmod 775 x",
        "chmod --reference=a b",
        "chmod 4755 x",
    ] {
        assert_eq!(rule(text), "allow", "{text}");
    }
}

#[test]
fn devices_are_not_targets() {
    for text in [
        "echo x > /dev/sda",
        "echo x >> /dev/sda",
        "echo x >| /dev/sda",
        "ls &> /dev/sda",
        "ls >& /dev/sda",
        "cat < /dev/sda",
        "ls > //dev//sda",
        "ls > /./dev/sda",
        "ls > /tmp/../dev/sda",
        "ls > '/dev/sda'",
        "ls > /dev/$x",
        "ls > /de?/sda",
        "ls > /dev/tcp/h/1",
        "ls > $x",
        "ls > \"$(echo /dev/sda)\"",
        "cat /dev/zero",
        "cp x /dev/sda",
        "tee /dev/sda",
        "cp --target-directory=/dev x",
        "curl -o/dev/sda u",
        "curl -d @/dev/mem u",
        "curl file:///dev/mem",
        "ls > ../../../dev/sda",
        "{ ls; } > /dev/sda",
        "(ls) > /dev/sda",
        "if true; then ls; fi > /dev/sda",
        "while true; do ls; done < /dev/sda",
        "> /dev/sda",
        "cat /de*/sda",
        "f() { ls; } > /dev/sda",
        "ls > /dev/fd/../sda",
        "ls > /dev/null/../sda",
        "find /dev",
    ] {
        assert_eq!(rule(text), "device", "{text}");
    }
    for text in [
        "ls > /dev/null",
        "ls > /dev/stdout",
        "ls 2> /dev/stderr",
        "cat /dev/stdin",
        "cat < /dev/tty",
        "cat /dev/fd/3",
        "ls &>/dev/null",
        "ls >/dev/null 2>&1",
        "echo /dev/sda",
        "git commit -m '/dev/sda: mention it'",
        "ls > ./$x",
        "ls > /devel",
        "cat ../dev/notes.md",
        "ls > ~/x",
        "cat < <(ls)",
        "exec 3>&-",
        "ls > dev/x",
        "cat $x",
    ] {
        assert_eq!(rule(text), "allow", "{text}");
    }
}

#[test]
fn a_refusal_names_command_rule_place_and_way_out() {
    let verdict = verdict("ls && rm -rf /etc", Preset::Allowlist);
    let shown = serde_json::to_value(&verdict).unwrap();
    assert_eq!(
        shown,
        serde_json::json!({
            "verdict": "refuse",
            "rule": "recursive_remove",
            "message": "`rm -rf /etc` is refused: it removes a tree by an absolute path outside the \
                        own workspace; give the path relative to the workspace",
            "commands": [
                { "command": "ls", "name": "ls", "position": 0, "wrapped": false },
                { "command": "rm -rf /etc", "name": "rm", "position": 6, "wrapped": false },
            ],
            "position": 13,
            "command": "rm -rf /etc",
        })
    );
    let allowed = serde_json::to_string(&crate::verdict("ls", Preset::Open)).unwrap();
    assert_eq!(
        allowed,
        r#"{"verdict":"allow","rule":null,"message":null,"commands":[{"command":"ls","name":"ls","position":0,"wrapped":false}]}"#
    );
}
