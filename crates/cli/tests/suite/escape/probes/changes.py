# Changes what is in a directory outside, in every way that has a system call of its own.
outside = given["outside"]
secret, other = f"{outside}/secret", f"{outside}/other"
open("mine", "w").close()
open("mine2", "w").close()


def make_socket():
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"{outside}/socket")


attempt("create", lambda: os.close(os.open(f"{outside}/new", os.O_CREAT | os.O_WRONLY)))
attempt("make a directory", lambda: os.mkdir(f"{outside}/directory"))
attempt("make a link", lambda: os.symlink("/", f"{outside}/link"))
attempt("make a pipe", lambda: os.mkfifo(f"{outside}/pipe"))
attempt("make a socket", make_socket)
attempt("hard link to outside", lambda: os.link("mine", f"{outside}/linked"))
attempt("hard link to inside", lambda: os.link(secret, "stolen"))
attempt("move to outside", lambda: os.rename("mine", f"{outside}/moved"))
attempt("truncate", lambda: os.truncate(other, 0))
attempt("change the mode", lambda: os.chmod(secret, 0o777))
attempt("change the times", lambda: os.utime(secret, (1, 1)))
attempt("set an attribute", lambda: os.setxattr(secret, "user.mine", b"1"))
attempt("replace", lambda: os.rename("mine2", other))
attempt("move to inside", lambda: os.rename(secret, "stolen2"))
attempt("remove", lambda: os.unlink(other))
attempt("remove a directory", lambda: os.rmdir(f"{outside}/empty"))
