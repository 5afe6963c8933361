"""Secrets in command lines, logs and files are replaced in each form; ordinary words remain."""

import base64
import json
import re
import shlex
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.redaction.redactor import MAX_LINE_BYTES, RedactedJson, RedactedStream, Redactor, redacted_tags
from tests.every import every
from tests.examples import some_of

SECRET = "geh3im!x"  # noqa: S105
BASIC = base64.b64encode(f"joe:{SECRET}".encode()).decode()
COMMANDS = rf"""
cassandra-stress write n=1 -mode native cql3 user=joe password={SECRET} -transport truststore-password={SECRET}
load --db-password={SECRET} --n 3
load --TOKEN {SECRET}
load --client-secret '{SECRET} with spaces'
load -password {SECRET}
load password: {SECRET}
load password = {SECRET}
load /password:{SECRET}
nodetool -u joe -pw {SECRET} status
nodetool -pw{SECRET} status
ab -n 10 -A joe:{SECRET} http://h:80/
ab -n 10 -Ajoe:{SECRET} http://h:80/
curl -su joe:{SECRET} http://h:80/
curl --user=joe:{SECRET} http://h:80/
curl -H 'Authorization: Bearer {SECRET}' http://h
curl -H 'authorization: Basic {BASIC}' http://h
curl -H 'Proxy-Authorization: Digest username="joe", response="{SECRET}"' http://h
curl '--header=X-Api-Key: {SECRET}' http://h
curl -H 'Cookie: a=1; session={SECRET}' -b session={SECRET} http://h
curl -H Authorization: Bearer {SECRET} http://h
jmeter -n -Jdbpass={SECRET} -J token={SECRET} -Djavax.net.ssl.trustStorePassword={SECRET} -t plan.jmx
k6 run -e DB_PASS={SECRET} -eAPI_TOKEN={SECRET} script.js
CQL_PASSWORD={SECRET}
env CQL_PASSWORD={SECRET} load
sh -c 'CQL_PASSWORD={SECRET} load'
sh -c "CQL_PASSWORD='{SECRET} y' load --token \"{SECRET}\""
bash -lc "sh -c \"load --token '{SECRET}'\""
ssh host 'load --password {SECRET}'
load '{{"user": "joe", "password": "{SECRET}", "n": 3}}'
load '{{\"token\":\"{SECRET}\"}}'
load cql://joe:{SECRET}@host:9042/ks
load https://joe:p@{SECRET}@host/
load https://:{SECRET}@host
load 'http://h/?n=1&access_token={SECRET}&api_key={SECRET}'
load http://h/?next=x%26password%3D{SECRET}%26n=1
load aws_secret_access_key={SECRET} --aws-secret-access-key {SECRET}
mysql -ujoe -p{SECRET}
sshpass -p {SECRET} ssh host
cqlsh -u joe -p {SECRET}
cqlsh -e "CREATE ROLE joe WITH PASSWORD = '{SECRET}'"
redis-cli -a {SECRET}
docker run -e MYSQL_PWD={SECRET} image
sh -c 'load --password "${{A}}{SECRET}"'
load --passwort={SECRET} --kennwort={SECRET} --apikey {SECRET} --hmac-key={SECRET} --otp {SECRET}
load password = '{SECRET} with spaces'
cqlsh -p '{SECRET} with spaces'
curl -u 'joe:{SECRET} with spaces' -b 'sid={SECRET}; a=b' --cert cert.pem:{SECRET} http://h
sh -c "load --password \$'{SECRET}'"
sh -c "load --password '\${SECRET}'"
sh -c 'x=`load --password {SECRET}`'
sh -c 'echo {SECRET} | docker login --password-stdin'
docker login -u joe -p {SECRET}
tlp-stress run KeyValue -U joe -P {SECRET}
dsbulk load -u joe -p {SECRET}
aws configure set aws_secret_access_key {SECRET}
load --url=joe:{SECRET}@host:9042 dsn=joe:{SECRET}@tcp(h:3306)/db
load --login joe:{SECRET}
python -c 'connect(PlainTextAuthProvider("joe", "{SECRET}"))'
""".strip().splitlines()
ORDINARY = """
load --passes 3 --pass-rate 5 --bypass x --tokens-per-second 7 --num-tokens 16 --token-range 1 --compass north
load --password-file /etc/secret --token-ttl 5s --password-prompt --auth-provider PlainTextAuthProvider
load --ask-pass next --no-password -n 1
load -p 9042 -u joe -A agent --key id --primary-key a --partition-key=b
locust -u 10 -H http://host:8089/users/@me
docker run -u 1000:1000 image
curl -A 'Mozilla/5.0 (X11; rv:1.0)' http://[::1]:80/a@b
load -h 10.0.0.1:9042 --user joe ssh://joe@host
sh -c 'load --token $TOKEN --password "${PASSWORD}" -n 5'
sh -c 'load --password=$(cat file) --token "$1" --secret ${SECRET}'
load --author x --session-count 5 --secretary Ann
load tokens=256 --tokens 256 --cookies 3 --token -3074457345618258603 --secret-name x --credentials-validity 5s
load PWD=/root
rsync -a joe@host:/x/y z
load --scenario login -p 9042 --format zip -P 5 mailto:joe@example.com
docker run img:tag@sha256:abcdef user@host:1 12:34@x
sh -c 'p=$((p+1)); pass=$((pass+1)); while [ $pass -lt 3 ]; do load "$PASS"; done'
""".strip().splitlines()
LINES = rf"""
Password: {SECRET}
password={SECRET}
  truststore-password : {SECRET}
> Authorization: Basic {BASIC}
< Set-Cookie: JSESSIONID={SECRET}; Path=/
X-Auth-Token: {SECRET}
{{"level": "info", "password": "{SECRET}", "api_key": "{SECRET}"}}
msg="{{\"password\":\"{SECRET}\",\"n\":1}}"
Settings{{user=joe, password={SECRET}, port=9042}}
{{Authorization=[Bearer {SECRET}], Accept=[*/*]}}
1600,12,GET /x?token={SECRET},200,OK,true
+ cassandra-stress write 'password={SECRET} y' -rate threads=4
connecting to cql://joe:{SECRET}@h and cql://ann:{SECRET}@g/?sig={SECRET}
load --db-pass {SECRET} --n 3
token=123456789012345678{SECRET}
curl -u joe:{SECRET} http://h:80/
<password>{SECRET}</password>
GET /a;jsessionid={SECRET}?x=1
the secret key: {SECRET}
{{"passwords": ["{SECRET}", "{SECRET}"], "headers": {{"Authorization": ["Bearer {SECRET}"]}}}}
Config {{ user: "joe", password: Some("{SECRET}") }}
{{"name":"Authorization","value":"{SECRET}"}}
args: ["--password", "{SECRET}", "-n"] and [--password, {SECRET}, -n]
{{"command":"password\u003d{SECRET}"}}
<ns:password type="plain">{SECRET}</ns:password>
<password><![CDATA[{SECRET}]]></password>
<property name="password" value="{SECRET}"/>
<stringProp name="HTTPSampler.password">{SECRET}</stringProp>
CREATE USER joe IDENTIFIED BY '{SECRET}'
+ cqlsh -u joe -p {SECRET}
++ mysql -p{SECRET}
$ sshpass -p {SECRET} ssh host
session = cluster.withCredentials("joe", "{SECRET}")
with bearer {SECRET}{SECRET}
connected to joe:{SECRET}@host:9042
blob?sv=1&SharedAccessSignature={SECRET}
[36mpassword[0m={SECRET}
{{[34;1m"password"[0m: [32m"{SECRET}"[0m}}
load --password [1m{SECRET}[0m --n 3
Ünïcode passwörd? password=„{SECRET}“
""".strip().splitlines()
ORDINARY_LINES = """
total,       12345,    1234,    1234,    1234,     0.5,     0.4
Op rate                   :    1,234 op/s  [READ: 617 op/s, WRITE: 617 op/s]
INFO 12:00:00 PasswordAuthenticator.java:45 - Created default superuser role
cat: /etc/passwd: Permission denied
token: -9223372036854775808
token: 9223372036854775807, tokens: [-123, 456], tokens=256, Tokens: 1234567, 2345
allocate_tokens_for_local_replication_factor: 16
credentials_validity: 2000ms
PWD=/root/work
cookies: 0, secrets: 3 found
+ a line of a difference
Password: *suppressed*
12 passes: 3 failed, tokens_per_second=5, keyspace=a
basic authentication is off
from:joe@host:25, user:x@host:1, java.lang.Thread:x@1f2e, repo:tag@sha256:12, npm:x@1.2.3
""".strip().splitlines()


@every("line", COMMANDS)
def test_a_secret_in_a_command_is_replaced_and_known(line: str) -> None:
    words = shlex.split(line)
    redactor = Redactor().knowing_command(words)
    assert SECRET not in shlex.join(redactor.words(words))
    assert BASIC not in shlex.join(redactor.words(words))
    assert "geh3im" not in shlex.join(Redactor().words(words))
    if SECRET in redactor.values:
        assert redactor.text(f"a line with {SECRET}, as it is") == "a line with REDACTED, as it is"
    else:
        # The secret is a part of a longer one.
        assert redactor.values


@every("line", [*COMMANDS, *ORDINARY])
def test_a_redacted_command_remains_as_it_is(line: str) -> None:
    once = Redactor().words(shlex.split(line))
    assert Redactor().words(once) == once
    assert len(once) == len(shlex.split(line))


@every("line", ORDINARY)
def test_an_ordinary_command_is_not_changed(line: str) -> None:
    words = tuple(shlex.split(line))
    assert Redactor().words(words) == words
    assert not Redactor().knowing_command(words).values


@every("line", LINES)
def test_a_secret_in_a_line_is_replaced(line: str) -> None:
    redacted = Redactor().text(line)
    assert SECRET not in redacted
    assert BASIC not in redacted
    assert Redactor().text(redacted) == redacted


@every("line", ORDINARY_LINES)
def test_an_ordinary_line_is_not_changed(line: str) -> None:
    assert Redactor().text(line) is line


# One name for each alternative in the pattern of secret names.
SECRET_NAMES = shlex.split(
    "pass pwd pswd secret token credential creds authorization cookie bearer jwt sessid session_id sess.id "
    "passwort kennwort contrasena senha api_key apikey access.key private-key auth_key account_key shared_key "
    "master_key signing_key encryption_key license_key subscription_key storage_key hmac_key accesssignature "
    "x_auth x.pw x_otp dbpw rediscli_auth"
)


@every("name", SECRET_NAMES)
def test_each_name_of_a_secret_is_recognised_in_text(name: str) -> None:
    for text in (f"{name}={SECRET}", f"{name.upper()}: {SECRET}", f'"{name}":"{SECRET}"'):
        assert SECRET not in Redactor().text(text)
        assert SECRET.encode() not in Redactor().data(text.encode())


ON_TWO_LINES = (
    f"<password>\n  {SECRET}\n</password>",
    f'{{\n "name": "password",\r\n "value": "{SECRET}"\n}}',
    f"env:\n- name: DB_PASSWORD\n  value: {SECRET}\n- name: N\n  value: 3\n",
)


@every("text", ON_TWO_LINES)
def test_the_value_of_a_name_may_be_on_the_next_line(text: str) -> None:
    expected = text.replace(SECRET, "REDACTED")
    assert Redactor().text(text) == expected
    for cut in range(len(text)):
        stream = RedactedStream(Redactor())
        parts = [stream.add(text[:cut].encode()), stream.add(text[cut:].encode()), stream.end()]
        assert b"".join(parts) == expected.encode()


@pytest.mark.parametrize("part", ["hunter2 ", "hunter2"])
@pytest.mark.parametrize("before", ["", "first\n"])
def test_the_value_on_the_next_line_may_be_very_long(part: str, before: str) -> None:
    stream = RedactedStream(Redactor())
    lines = [f"{before}<password>\n", *[part * (MAX_LINE_BYTES // 100)] * 20, "\n</password>\n"]
    written = b"".join([*(stream.add(line.encode()) for line in lines), stream.end()])
    assert written.decode() == f"{before}<password>\nREDACTED\n</password>\n"


def test_a_value_on_the_next_line_may_precede_a_private_key() -> None:
    stream = RedactedStream(Redactor())
    lines = [
        "<password>\n",
        f"{SECRET} -----BEGIN RSA PRIVATE KEY-----\n",
        "MIIabc\n",
        "-----END RSA PRIVATE KEY-----\n",
    ]
    written = b"".join([*(stream.add(line.encode()) for line in lines), stream.end()])
    assert written == Redactor().data("".join(lines).encode())
    assert SECRET.encode() not in written


def test_a_script_may_have_several_lines() -> None:
    script = f"load --password \\\n  {SECRET} --n 3\ncqlsh -p {SECRET}"
    assert Redactor().words(["sh", "-c", script])[2] == "load --password \\\n  REDACTED --n 3\ncqlsh -p REDACTED"


def test_the_value_of_a_name_in_xml_is_on_the_same_line() -> None:
    text = f'<property name="password" value="{SECRET}"/>\n<a key="token">\n<b>1</b>'
    assert Redactor().text(text) == text.replace(SECRET, "REDACTED")


def test_what_follows_a_secret_remains() -> None:
    redacted = Redactor().words(shlex.split(f"cassandra-stress write password={SECRET} -rate threads=4"))
    assert redacted == ("cassandra-stress", "write", "password=REDACTED", "-rate", "threads=4")
    script = Redactor().words(["sh", "-c", f"A_TOKEN={SECRET} load --rate 5 | tee 'my log'"])
    assert script[2] == "A_TOKEN=REDACTED load --rate 5 | tee 'my log'"
    assert Redactor().text(f"1600,12,login password={SECRET},200,OK") == "1600,12,login password=REDACTED,200,OK"
    assert Redactor().text(f'{{"password":"{SECRET}","n":1}}') == '{"password":"REDACTED","n":1}'


def test_a_known_secret_is_replaced_in_each_encoding() -> None:
    redactor = Redactor().knowing(["ä 'q\"&<x/1"])
    for text in (
        "ä 'q\"&<x/1",
        "%C3%A4%20%27q%22%26%3Cx%2F1",
        "%c3%a4%20%27q%22%26%3cx%2f1",
        "%C3%A4+%27q%22%26%3Cx%2F1",
        "\\u00e4 'q\\\"&<x/1",
        "ä &#x27;q&quot;&amp;&lt;x/1",
        "ä '\"'\"'q\"&<x/1",
        base64.b64encode("ä 'q\"&<x/1".encode()).decode(),
    ):
        assert redactor.text(f"<{text}>") == "<REDACTED>"


def test_a_secret_may_contain_half_a_surrogate_pair() -> None:
    redactor = Redactor().knowing_command(["load", "--password", "geh3im\ud800"])
    assert redactor.text("x geh3im\ud800 y") == "x REDACTED y"
    assert redactor.data(b"geh3im") == b"geh3im"


def test_a_percent_encoded_password_is_known_as_it_is_decoded() -> None:
    redactor = Redactor().knowing_command(["load", "http://joe:geh%40im1@host/"])
    assert redactor.text("geh@im1 geh%40im1") == "REDACTED REDACTED"


def test_short_and_ordinary_secrets_are_replaced_only_where_their_form_shows_them() -> None:
    words = ["cassandra-stress", "write", "user=cassandra", "password=cassandra", "--token", "12", "--pass", "1234"]
    redactor = Redactor().knowing_command(words)
    assert redactor.words(words)[:4] == ("cassandra-stress", "write", "user=cassandra", "password=REDACTED")
    assert redactor.text("total, 12, 1234, 51234.5") == "total, 12, 1234, 51234.5"


def test_numbers_that_contain_a_secret_are_not_changed() -> None:
    redactor = Redactor().knowing(["123456", "abcd"])
    assert (
        redactor.text("123456 1234567 0.123456 123456.5 abcd abcde")
        == "REDACTED 1234567 0.123456 123456.5 REDACTED abcde"
    )


def test_json_remains_json() -> None:
    text = json.dumps(["password:", "x", "--token", "y", {"token": SECRET, "n": 1}], indent=1)
    content = json.loads(Redactor().text(text))
    assert content[-1] == {"token": "REDACTED", "n": 1}


def test_lists_and_objects_remain_json() -> None:
    content = {"tokens": ["a1b2", "c"], "auth": {"user": "joe", "n": 1}, "secrets": [], "passwords": {}, "n": 1}
    assert json.loads(Redactor().text(json.dumps(content))) == {
        "tokens": ["REDACTED", "REDACTED"],
        "auth": {"user": "REDACTED", "n": 1},
        "secrets": [],
        "passwords": {},
        "n": 1,
    }
    indented = json.dumps({"password": ["x"], "tokens": {"read": 1}}, indent=1)
    json.loads(Redactor().text(indented))


def test_the_names_of_fields_remain_whatever_they_contain() -> None:
    fields = {"a=b token": SECRET, "a=c token": SECRET, "token": SECRET, "a=b": "3", "": "3"}
    redacted = {"a=b token": "REDACTED", "a=c token": "REDACTED", "token": "REDACTED", "a=b": "3", "": "3"}
    assert RedactedJson(Redactor(), ()).redacted(fields) == redacted
    assert RedactedJson(Redactor(), ()).redacted(redacted) == redacted
    assert redacted_tags(fields, Redactor()) == redacted


def test_the_names_of_tags_contain_no_secrets() -> None:
    tags = {f"password={SECRET}": SECRET, f"{SECRET}=": "3"}
    assert SECRET not in str(redacted_tags(tags, Redactor().knowing([SECRET])))


def test_patterns_name_other_secrets() -> None:
    redactor = Redactor((re.compile(r"pin (\d+)"), re.compile("x{3,}?y|")))
    assert redactor.words(["load", "pin", "4711", "axxxyb"]) == ("load", "pin", "REDACTED", "aREDACTEDb")
    assert redactor.text("pin 99, xxxy") == "pin REDACTED, REDACTED"
    assert redactor.knowing_command(["pin", "471111"]).text("a 471111") == "a REDACTED"


def test_secret_variables_of_the_environment_are_known() -> None:
    environ = {
        "K6_TOKEN": "abcdefg",
        "AWS_SECRET_ACCESS_KEY": "/abC+defGH1234",
        "HOME": "/root",
        "PWD": "/root/work",
        "SSH_ASKPASS": "/usr/bin/ssh-askpass",
        "GOOGLE_APPLICATION_CREDENTIALS": "/etc/key.json",
        "PASSWORD_STORE_DIR": "folder",
        "SSH_AUTH_SOCK": "/run/s",
        "N": "12345678",
    }
    assert Redactor().knowing_environment(environ).values == {
        "abcdefg": "REDACTED",
        "/abC+defGH1234": "REDACTED",
    }


def test_values_of_a_parameter_are_numbered() -> None:
    redactor = Redactor(placeholders=frozenset(["pw"])).numbering(["first1", "b"])
    assert redactor.words(["load", "password={pw}"]) == ("load", "password={pw}")
    assert redactor.words(["load", "password=first1"]) == ("load", "password=REDACTED-1")
    assert redactor.words(["load", "--password", "b"]) == ("load", "--password", "REDACTED-2")
    assert redactor.text("with first1") == "with REDACTED-1"


KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\ndef==\n-----END RSA PRIVATE KEY-----"
OUTPUT = f"caf\u00e9 password={SECRET}\r50%\r\n{KEY}\nx\udcff\npw: {SECRET}".encode(errors="surrogateescape")


@given(st.lists(st.integers(0, len(OUTPUT))))
def test_output_may_arrive_in_parts(cuts: list[int]) -> None:
    stream = RedactedStream(Redactor())
    places = [0, *sorted(cuts), len(OUTPUT)]
    parts = [stream.add(OUTPUT[begin:end]) for begin, end in pairwise(places)]
    assert b"".join([*parts, stream.end()]) == (
        b"caf\xc3\xa9 password=REDACTED\r50%\r\n-----BEGIN RSA PRIVATE KEY-----REDACTED-----END RSA PRIVATE KEY-----\n"
        b"x\xff\npw: REDACTED"
    )


def test_a_complete_line_is_available_at_once_and_a_very_long_one_does_not_fill_the_memory() -> None:
    stream = RedactedStream(Redactor())
    assert stream.add(b"first\nsec") == b"first\n"
    written = b"".join(stream.add(b"x" * 1000 + b" ") for _ in range(2 * MAX_LINE_BYTES // 1000))
    assert len(written) >= MAX_LINE_BYTES // 2
    assert len(written) + len(stream.end()) == 3 + 1001 * (2 * MAX_LINE_BYTES // 1000)


@pytest.mark.parametrize("line", [f'"password": "{SECRET}",', f'"password":"{SECRET}",', f"{SECRET}", f"{SECRET} "])
def test_no_secret_is_divided_with_a_very_long_line(line: str) -> None:
    for length in some_of(range(MAX_LINE_BYTES - len(line), MAX_LINE_BYTES)):
        stream = RedactedStream(Redactor().knowing([SECRET]))
        output = b"x" * length + line.encode() + b"y" * 9000
        written = b"".join(stream.add(output[at : at + 4096]) for at in range(0, len(output), 4096)) + stream.end()
        assert SECRET.encode() not in written
        assert written.replace(b"REDACTED", SECRET.encode()) == output


def test_a_secret_that_is_longer_than_a_very_long_line_is_replaced() -> None:
    stream = RedactedStream(Redactor())
    written = b"".join(stream.add(b"Authorization: " * (not at) + b"abc " * 1000) for at in range(50)) + stream.end()
    assert written == b"Authorization: REDACTED"


@pytest.mark.parametrize("part", ["http://", "http://a:", "+ a ", "echo a | ", "<a ", 'Auth("', 'password=["'])
def test_a_long_line_of_unfinished_forms_is_examined_once(part: str) -> None:
    line = "auth: " + part * (50_000 // len(part))
    assert len(Redactor().text(line)) > 10
    assert Redactor().words(["sh", "-c", line])


@given(st.text(max_size=200))
def test_any_text_can_be_redacted_twice(text: str) -> None:
    once = Redactor().text(text)
    assert Redactor().text(once) == once
