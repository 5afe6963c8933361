"""Record a run and a sweep with a secret in each form, and search everything that they leave behind for the secrets.

Each form has a secret of its own, so a leak names its form. The command prints its arguments, and lines with secrets
that only its output and its files contain. The same secrets must not be in what casstat prints, in reports, in a
comparison, or in a run that `casstat runs redact` has cleaned. Nodes are those of a real cluster or, with the argument
`fake`, a recording that is served like an agent's. Takes about two minutes, and starting a cluster.
"""

import gzip
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from collector.runs.run_file import read_run
from tests.faults.swept_node import swept_node
from tests.real.programs import program

GREP = shutil.which("grep") or "grep"
# Each {} is replaced with another secret.
ARGUMENTS = """
cassandra-stress write -mode native cql3 user=joe password={} -transport truststore-password={} KEYSTORE-PASSWORD={}
--password={} --db-pass {} -userpass={} --password:{} --api-token={} --token {} --client-secret={} --secret {}
--PassWord={} -pw {} -tspw {} password: {} password = {} --passwd '{} with spaces' /password:{} --api-key={}
ab -n 1 -A joe:{} -C session={} -P joe:{} http://h/ curl -su joe:{} --user joe:{} --proxy-user=joe:{} -b id={}
curl -H 'Authorization: Bearer {}' -H 'proxy-authorization: Basic {}' -H 'X-Api-Key: {}' -H 'Cookie: a=1; b={}'
--header='X-Auth-Token: {}' -H Authorization: Bearer {}
jmeter -Jdbpass={} -Jdb.password={} -J token={} -Djavax.net.ssl.trustStorePassword={} -Gpassword={}
k6 run -e DB_PASS={} -eAPI_TOKEN={} --env SECRET_KEY={} CQL_PASSWORD={} env A_TOKEN={}
cql://joe:{}@h:9042/ks https://joe:p@{}@h/ 'http://h/?n=1&token={}&api_key={}&sig={}' 'http://h/?u=password%3D{}%26n=1'
'{{"user":"joe","password":"{}","api_key":"{}"}}' '{{\\"token\\":\\"{}\\"}}' "{{'secret': '{}'}}"
aws_secret_access_key={} AWS_SECRET_ACCESS_KEY={} 'CREATE ROLE joe WITH PASSWORD = '"'{}'" '<password>{}</password>'
sh -c 'CQL_PASSWORD={} load --token {} | tee log; PASS="{} x" load' bash -lc "sh -c \\"load --secret '{}'\\""
joe:{}@host:9042 "PlainTextAuthProvider('joe', '{}')" '<entry key="password">{}</entry>' '{{"passwords": ["{}"]}}'
cqlsh -p '{} with spaces' sh -c 'echo {} | docker login --password-stdin' tlp-stress run x -P {}
mysql -p{} sshpass -p {} cqlsh -p {} redis-cli -a {} nodetool -pw{} pin {}
'-----BEGIN PRIVATE KEY-----
{}
-----END PRIVATE KEY-----'
"""
OUTPUT = """
Password: {}
  truststore-password : {}
Connected to cql://joe:{}@h:9042
> Authorization: Basic {}
< Set-Cookie: JSESSIONID={}; Path=/
{{"level":"info","token":"{}","nested":"{{\\"password\\":\\"{}\\"}}"}}
Options{{user=joe, password={}, port=9042}}
+ load --db-password {} --n 3
+ cqlsh -u joe -p {}
<property name="password" value="{}"/>
GET http://h/?access_token={}&n=1 200
pin {}
-----BEGIN RSA PRIVATE KEY-----
{}
{}
-----END RSA PRIVATE KEY-----
"""
# Prints the arguments and the lines in pieces, and writes them to files of the run's directory.
PRINTING = """
import gzip, os, sys, time
lines = open(sys.argv[1]).read()
text = "\\n".join(sys.argv[2:]) + "\\n" + lines + os.environ["LOAD_TOKEN"] + "\\n"
for begin in range(0, len(text), 7):
    sys.stdout.write(text[begin:begin + 7])
    sys.stdout.flush()
folder = os.environ["CASSTAT_RUN_DIR"]
open(folder + "/output.csv", "w").write(text)
gzip.open(folder + "/output.csv.gz", "wt").write(text)
time.sleep(3)
"""


class Secrets:
    """Secrets that differ from each other, each with the text that it was inserted into."""

    def __init__(self) -> None:
        self.forms: dict[str, str] = {}

    def new(self, form: str) -> str:
        secret = f"Gehe1m{len(self.forms):03d}zq"
        self.forms[secret] = form
        return secret

    def filled(self, text: str) -> str:
        """Return the text with a new secret for each `{}`, and with single braces for doubled ones."""
        parts = text.split("{}")
        filled = parts[0]
        for part in parts[1:]:
            filled += self.new(filled[-30:].replace("\n", " ") + "…") + part
        return filled.replace("{{", "{").replace("}}", "}")


def leaks(folder: Path, secrets: Secrets, printed: str = "") -> list[str]:
    """Return where secrets are: in files, found with `grep -r`, in files compressed with gzip, in names, or printed."""
    found = []
    names = "\n".join(str(path.relative_to(folder)) for path in folder.rglob("*"))
    zipped = [path for path in folder.rglob("*.gz") if path.is_file()]
    unzipped = b"".join(gzip.decompress(path.read_bytes()) for path in zipped).decode(errors="replace")
    for secret, form in secrets.forms.items():
        done = subprocess.run([GREP, "-r", "-l", "-a", secret, folder], capture_output=True, text=True, check=False)
        places = done.stdout.split()
        places += [
            place for place, text in (("names", names), ("gzip", unzipped), ("printed", printed)) if secret in text
        ]
        found += [f"{secret} ({form}): {', '.join(places)}"] if places else []
    return found


def run(*arguments: str | Path, environ: dict[str, str] | None = None) -> str:
    """Run casstat, which must succeed; return what it prints on stderr, and what a query prints on stdout."""
    done = subprocess.run(
        program(*arguments),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={**os.environ, **(environ or {})},
    )
    assert done.returncode == 0, done.stderr
    is_command = "--" in arguments
    return done.stderr if is_command else done.stderr + done.stdout


@contextmanager
def nodes(folder: Path, *, is_fake: bool) -> Iterator[Sequence[str]]:
    """Yield the addresses of the nodes' agents."""
    if is_fake:
        with swept_node(folder / "node") as node:
            yield [node.address]
        return
    from acceptance.client_hosts import PLAN, cluster

    with cluster(folder):
        yield PLAN.addresses()


def unredacted(folder: Path, words: Sequence[str]) -> None:
    """Put secrets back into a run, as an earlier version would have recorded it."""
    content = json.loads((folder / "run.json").read_text())
    content["command"]["words"] = list(words)
    (folder / "run.json").write_text(json.dumps(content, indent=1))
    (folder / "report.md").write_text((folder / "report.md").read_text() + shlex.join(words))
    (folder / "command.log").write_text("\n".join(words))


def main() -> int:
    """Record the run and the sweep; return the exit status."""
    secrets, problems = Secrets(), []
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        words = shlex.split(secrets.filled(ARGUMENTS))
        lines = folder / "lines"
        lines.write_text(secrets.filled(OUTPUT))
        environ = {"LOAD_TOKEN": secrets.new("environment")}
        command = [sys.executable, "-c", PRINTING, str(lines), *words]
        options = ["--tag", f"token={secrets.new('tag')}", "--name", secrets.filled("load password={}")]
        options += ["--redact", r"pin (\w+)"]
        with nodes(folder, is_fake="fake" in sys.argv[1:]) as addresses:
            first, sweep = folder / "run", folder / "sweep"
            printed = run("record", *addresses, "-o", first, *options, "--", *command, environ=environ)
            values = ",".join(secrets.new("parameter") for _ in range(2))
            beside: list[str | Path] = [
                "--before",
                secrets.filled("true --token {}"),
                "--after",
                secrets.filled("sh -c ': PASSWORD={}'"),
            ]
            parameters = ["-P", f"pw={values}", *beside, *options]
            swept = [word.replace("{", "{{").replace("}", "}}") for word in command]
            printed += run(
                *("sweep", *addresses, "-o", sweep, *parameters, "--", *swept, "--password={pw}"), environ=environ
            )
        output = (first / "command.log").read_text()
        problems += [] if "REDACTED" in output else ["the command's output is missing"]
        printed += (
            run("runs", "show", first) + run("runs", "show", first, "--format", "json") + run("runs", sweep / "runs")
        )
        printed += run("report", first, "--baseline", shutil.copytree(first, folder / "copy"))
        for place in (first, sweep):
            problems += leaks(place, secrets, printed)
        run_words = read_run(first).command
        problems += [] if run_words and len(run_words.words) == len(command) else ["words of the command are missing"]
        unredacted(first, command)
        before = len(leaks(first, secrets))
        printed = run("runs", "redact", first, "--redact", r"pin (\w+)")
        problems += [f"runs redact: {leak}" for leak in leaks(first, secrets, printed)]
        print(f"{len(secrets.forms)} secrets, {before} of them in the run before `runs redact`, {len(problems)} leaks")
    print(*(f"DEFECT: {problem}" for problem in problems), sep="\n")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
