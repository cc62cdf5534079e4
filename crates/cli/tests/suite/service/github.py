"""GitHub on loopback: its API, and repositories behind Basic authentication, over TLS.

It also looks, whenever git asks, whether the token stands in the words or variables of any process.
"""
import base64, glob, http.server, json, os, ssl, subprocess

TOKEN = open("token").read()
EXPECTED = "Basic " + base64.b64encode(b"x-access-token:" + TOKEN.encode()).decode()
REPOSITORY = {"name": "app", "full_name": "acme/app", "clone_url": "https://x/acme/app.git", "private": True}


def note(name, text):
    with open(name, "a") as file:
        file.write(text + "\n")


def look_for_leaks():
    for place in glob.glob("/proc/[0-9]*/cmdline") + glob.glob("/proc/[0-9]*/environ"):
        try:
            if TOKEN.encode() in open(place, "rb").read():
                note("leaks", place)
        except OSError:
            pass


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def reply(self, status, body, headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def handle_any(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        note("heard", self.command + " " + self.path)
        if self.path.startswith("/acme/"):
            return self.git(body)
        bearer = self.headers.get("Authorization") or ""
        if self.path == "/orgs/acme/installation" and bearer.count(".") == 2:
            return self.reply(200, b'{"id": 7}')
        if self.path == "/app/installations/7/access_tokens" and bearer.count(".") == 2:
            note("asked", body.decode())
            made = {"token": TOKEN, "expires_at": "2099-01-01T00:00:00Z"}
            return self.reply(201, json.dumps(made).encode())
        if self.path.startswith("/installation/repositories") and bearer == "Bearer " + TOKEN:
            return self.reply(200, json.dumps({"repositories": [REPOSITORY]}).encode())
        if self.path.startswith("/user/repos") and bearer == "Bearer brought-along":
            return self.reply(200, json.dumps([REPOSITORY]).encode())
        self.reply(401, b'{"message": "Bad credentials"}')

    def git(self, body):
        look_for_leaks()
        if self.headers.get("Authorization") != EXPECTED:
            return self.reply(401, b"", [("WWW-Authenticate", 'Basic realm="git"')])
        note("granted", self.path)
        path, _, query = self.path.partition("?")
        env = {"PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": os.getcwd(), "GIT_HTTP_EXPORT_ALL": "1",
               "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
               "PATH_INFO": path, "QUERY_STRING": query, "REQUEST_METHOD": self.command,
               "CONTENT_TYPE": self.headers.get("Content-Type") or "", "CONTENT_LENGTH": str(len(body)),
               "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding") or "",
               "HTTP_GIT_PROTOCOL": self.headers.get("Git-Protocol") or ""}
        done = subprocess.run(["git", "http-backend"], input=body, env=env, stdout=subprocess.PIPE)
        head, _, rest = done.stdout.partition(b"\r\n\r\n")
        fields = [line.decode().split(": ", 1) for line in head.split(b"\r\n")]
        status = next((int(value.split()[0]) for name, value in fields if name == "Status"), 200)
        self.reply(status, rest, [(name, value) for name, value in fields if name != "Status"])

    do_GET = do_POST = handle_any

    def log_message(self, *words):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("cert.pem", "key.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
