use super::Base;

#[test]
fn a_file_of_the_base_above_the_limit_is_not_copied_for_a_write_and_the_reply_names_the_limit() {
    Base::each(|base| {
        let test_env = &base.test_env;
        base.line("X", "head -c 8M /dev/zero > big");
        base.managed(&["fork", "X", "--as", "f"]);
        let [option, policy] = test_env.policy("[limits]\nfile_size = \"4MiB\"\n");
        let line = |line: &str| {
            let fork = base.root().join("f");
            let mut command = test_env.carrel();
            command.args(["exec", "--json", "--tier", "full", &option, &policy, "--workspace"]);
            command.arg(fork).args(["-c", line]);
            crate::test_environment::Done::of(command)
        };
        let ended = line("echo more >> big");
        assert_eq!(ended.json["limit"], "file_size", "{test_env}: {ended:?}");
        let refused = line("python3 -c 'open(\"big\", \"r+b\")'");
        assert!(refused.names_limit("file_size"), "{test_env}: {refused:?}");
        // Nothing is copied for these.
        let read = line("wc -c < big; echo small > big; cat big; rm big; ls");
        assert_eq!(read.stdout(), "8388608\nsmall\na\nlink\nsrc\n", "{test_env}");
    });
}
